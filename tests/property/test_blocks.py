"""Blocks and threads in written schedules: followed on a GPU or refused, with a legal one told; nothing on a CPU."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ilang.codegen.system.files import read_module
from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.graph import Graph
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.syntax import Einsum, Expression
from ilang.core.machine import GPU
from ilang.core.notation.files.module import exports
from ilang.core.pipeline import explain_shaped, graph_of, infer, lower, module_graph, text_component
from ilang.core.record import replace
from tests.golden.test_golden import FOLDER, graph_in, texts
from tests.property import schedules
from tests.property.checking import check
from tests.property.checking import graph_of as trial_graph
from tests.property.schedules import RULES, draw, refusal
from tests.property.test_schedules import PASTES
from tests.shares import share

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "samples").glob("[0-9]*.i"))
GOLDEN = texts(FOLDER, FOLDER / "cuda")


FEW = 2000
"""Elements of an array that a block each, of 256 threads, is emulated for in a moment."""


def shaped_of(text: str, shapes: tuple[tuple[int, ...], ...] | None = None) -> Shaped:
    return infer(graph_of(text_component(text), "f"), shapes=shapes)


def refused(text: str, shapes: tuple[tuple[int, ...], ...] | None = None) -> ScheduleError:
    """Why a text is refused for a GPU; what is told instead must be legal."""
    with pytest.raises(ScheduleError) as caught:
        lower(shaped_of(text, shapes), GPU)
    error: ScheduleError | None = caught.value
    steps = 0
    while error is not None:
        assert error.fix is not None
        text = text[: error.fix.span.start] + error.fix.text + text[error.fix.span.end :]
        steps += 1
        assert steps < PASTES
        try:
            lower(shaped_of(text, shapes), GPU)
            error = None
        except ScheduleError as other:
            error = other
    return caught.value


@pytest.mark.parametrize(
    ("text", "code", "numbers", "instead"),
    [
        ("ij+ij~ij | j:1025 | i j j'", "E0332", ("1,025", "1,024"), "| j:1024 | i j j'"),
        (
            "ij+ij~ij | j:1025 | i j j' | j':tx",
            "E0332",
            ("1,025", "1,024"),
            "| j:1024 | i j j' | j':tx",
        ),
        (
            "ij+ij~ij | i:64,j:64 | i j i' j' | i':ty,j':tx",
            "E0332",
            ("4,096", "1,024", "64 of i' x 64 of j'"),
            "| i:64,j:16 | i j i' j' | i':ty,j':tx",
        ),
        ("ij~ij | i:65 | i j i' | i':tz", "E0332", ("65 of i'", "64"), "| i:64 | i j i' | i':tz"),
        (
            "-ij~ij | i:2,j:512 | i j i' j' | j':t >> -ij~ij | i:2,j:512 | i j 0 i' j' | i':tz",
            "E0332",
            ("512", "64"),
            "| i:2,j:512 | i j i' j' | j':q",
        ),
        (
            "ij~ji | i:128,j:128 | j i 0 j' i' | i':tx,j':u",
            "E0333",
            ("67,584", "49,152", "in0_copy"),
            "| i:128,j:64 | j i 0 j' i' | i':tx,j':u",
        ),
        ("+ij~j || i j | i:tx", "E0335", (), "|| i j"),
        (
            "-ij~ij | i:16,j:8 | i i' j j' | j':tx >> +ij~i | i:16 | i i' 0 j | i':tx",
            "E0336",
            (),
            "| i:16 | 0 i i' j | i':tx",
        ),
    ],
)
def test_what_no_block_can_do_is_refused(
    text: str, code: str, numbers: tuple[str, ...], instead: str
) -> None:
    error = refused(text)
    assert error.code == code
    assert all(number in error.message for number in numbers), error.message
    assert error.fix is not None
    assert error.fix.text == instead


def test_a_grid_has_few_blocks_along_y() -> None:
    error = refused("i-ij~ij || i j | i:y", ((70000,), (70000, 4)))
    assert error.code == "E0334"
    assert "70,000" in error.message
    assert "65,535" in error.message
    lower(shaped_of("i-ij~ij || i j | i:y"), GPU)  # known at run time only: blocks take turns


@pytest.mark.batches(1)
def test_suggested_blocks_are_legal(batch: int) -> None:
    """Pasting what a refusal suggests, again where another schedule is wrong too, gives a program for a GPU."""
    pasted = 0
    for seed in range(30 * batch, 30 * batch + 30):
        trial = draw(seed)
        error = refusal(trial, GPU)
        if error is None:
            continue
        assert error.code in RULES
        for _ in range(PASTES):
            if error is None or error.fix is None:
                break
            trial = schedules.pasted(trial, error.fix)
            error = refusal(trial, GPU)
            pasted += 1
        assert error is None, f"{error}\n{trial.written.text}"
    assert pasted >= 2


@pytest.mark.parametrize("path", share(GOLDEN, 2), ids=lambda path: path.stem)
def test_printed_schedules_of_golden_programs_give_the_same_cuda(path: Path) -> None:
    graph = graph_in(path)
    same(graph, infer(graph))


@pytest.mark.parametrize("path", share(SAMPLES, 1), ids=lambda path: path.stem)
def test_printed_schedules_of_samples_give_the_same_cuda(path: Path) -> None:
    module = read_module(str(path))
    for definition in exports(module):
        graph = module_graph(module, definition.name)
        shaped = infer(graph)
        same(graph, shaped)


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")
def test_schedules_are_right_on_a_gpu() -> None:
    """Random legal ones, many of which name blocks, threads or lanes: every access checked, in any order of threads."""
    drawn = [draw(seed) for seed in range(100, 130)]
    small = [trial for trial in drawn if max(a.size for r in trial.runs for a in r) <= FEW]
    legal = [trial for trial in small if refusal(trial, GPU) is None]
    assert len(legal) >= 10
    tally = check(legal, "cuda-checked")
    assert not tally.failures, tally.told()
    assert tally.counts["refused_schedules"] == 0


def test_printed_schedules_give_the_same_cuda() -> None:
    for seed in share(range(100), 3):
        trial = schedules.bare(draw(seed))
        same(trial_graph(trial, "f"), infer(trial_graph(trial, "f"), trial.dtypes(), trial.ranks()))


def same(graph: Graph, shaped: Shaped) -> None:
    """What is printed for a program, written back, gives the same text."""
    nodes, page = list(shaped.nodes), explain_shaped(graph, shaped, machine=GPU)
    if page.execution.definition is not None:
        again = schedules.defined(page.execution.definition, shaped.name)
        assert schedules.same_code(shaped, again, GPU)
        return
    rows = {row.number: row for row in page.execution.schedule}
    assigned = [(v, node) for v, node in enumerate(nodes) if isinstance(node, Assignment)]
    for (value, node), step in zip(assigned, page.steps, strict=True):
        row = rows.get(step.number)
        # conversions have no text of their own, operations in einx notation no schedule, parts of an expression no line
        if (
            row is not None
            and "~" in row.text
            and " of " not in row.text
            and not row.text.startswith("einx.")
        ):
            tree = text_component(f"{row.text} {row.schedule}")
            assert isinstance(tree, Expression | Einsum)
            nodes[value] = replace(node, schedule=tree.schedule)
    again = replace(shaped, nodes=tuple(nodes))
    assert schedules.same_code(shaped, again, GPU)


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("ij+ij~ij | j:32 | i j j'", "i:y,j:x,j':tx"),
        ("+ij~i || i j", "i:x,j:l"),
        ("ij~ji | i:32,j:8 | j i 0 j' i'", "j:y,i:x,j':ty,i':tx,0:s"),
    ],
)
def test_a_cpu_ignores_them(text: str, roles: str) -> None:
    assert schedules.code(shaped_of(f"{text} | {roles}")) == schedules.code(shaped_of(text))


def bound(text: str) -> Program:
    return lower(shaped_of(text), GPU)


def test_dimensions_are_those_of_the_launch() -> None:
    text = schedules.code(shaped_of("ij+ij~ij | i:4,j:32 | i j i' j' | i:y,j:x,i':ty,j':tx"), GPU)
    assert (
        "dim3(il_blocks_of(n_j_32, 1, 2147483647), il_blocks_of(n_i_4, 1, 65535), 1), dim3(32, 4, 1)"
        in text
    )
    assert re.search(r"j1_? = threadIdx\.x;\s+const int i1 = threadIdx\.y;", text)


def test_a_warp_takes_a_row() -> None:
    (spread,) = bound("+ij~i || i j | j:l").kernels[0].body
    assert isinstance(spread, ThreadLoop)
    assert spread.over == "warps"
    text = schedules.code(shaped_of("+ij~i || i j | j:l"), GPU)
    assert "__syncthreads" not in text
    assert "__shfl_xor_sync" in text
