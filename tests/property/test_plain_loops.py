"""The loops and formulas of ``i explain`` are right: read as text and computed, they give what the program gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ilang.core import pipeline
from ilang.core.diagnostic import Error
from ilang.core.explain.meaning import LoopLine, Meaning
from ilang.core.explain.simple_loops import simple_loops
from ilang.core.machine import CPU, GPU
from ilang.core.notation.files.module import parse_module
from ilang.core.source import Source
from tests.golden.test_golden import FOLDER, graph_in
from tests.property import plain_checking
from tests.property.plain_checking import DRAWN, check, page_of, wrong
from tests.property.plain_loops import run_formulas, run_loops
from tests.property.plain_values import State, Unclear

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    path
    for folder in ("samples", "samples/digits", "bench/programs")
    for path in sorted((ROOT / folder).glob("*.i"))
]
GOLDEN = sorted([*FOLDER.glob("*.md"), *(FOLDER / "cuda").glob("*.md")])
COUNT = {"op, cd": 2}
"""Programs of a batch; 8 of a notation where it is not said."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.deep if n % 4 else ())
        for n, path in enumerate(FILES)
    ],
)
def test_files(path: Path) -> None:
    module = parse_module(Source(path.name, path.read_text("utf-8")))
    tried = 0
    for definition in module.definitions:
        try:
            shaped = pipeline.infer(pipeline.module_graph(module, definition.name))
        except Error:  # a definition that only others give its ranks
            continue
        for seed in range(3):
            found = wrong(shaped, seed)
            tried += found is not None
            assert not found, "\n".join([definition.name, *found, page_of(shaped)])
    assert tried or not module.definitions


def test_golden_programs() -> None:
    tried = 0
    for path in GOLDEN:
        shaped = pipeline.infer(graph_in(path))
        found = wrong(shaped, 0)
        tried += found is not None
        assert not found, "\n".join([path.name, *found, page_of(shaped)])
    assert 0.8 * len(GOLDEN) < tried


@pytest.mark.batches(3)
@pytest.mark.parametrize("notation", DRAWN)
def test_random_programs(notation: str, batch: int) -> None:
    size = COUNT.get(notation, 8)
    count, failures = check(notation, range(size * batch, size * (batch + 1)))
    assert not failures, "\n\n".join(failures)
    assert size / 3 < count


def drawn(*lines: str, notes: tuple[str, ...] = (), **arrays: object) -> State:
    state = State({"n": 3, "m": 2}, notes)
    for name, array in arrays.items():
        state.give(name, array)
    run_loops([((len(e) - len(e.lstrip())) // 2, e.strip(), "") for e in lines], state)
    return state


def test_lines_are_read_as_a_person_reads_them() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    state = drawn(
        "for i in 0..n",
        "  total = Σ_j x[i,j]",
        "  for j in 0..m",
        "    out[i,j] = (x[i,j] if j <= i else 0) − x[i,j]² / total − 2·j",
        x=x,
    )
    j, i = np.meshgrid(range(2), range(3))
    want = np.where(j <= i, x, 0) - x**2 / x.sum(1, keepdims=True) - 2 * j
    assert np.allclose(state.array("out", (3, 2)).astype(float), want)


def test_a_reduction_takes_the_product_that_follows_it() -> None:
    x = np.array([1.0, 2.0, 4.0])
    state = drawn(
        "a = Σ_i x[i]·x[i] + 1", "b = max_i[1 <= i] (−x[i])", "c = 1 / Σ_i[i in 0..2] x[i]", x=x
    )
    assert [float(state.read(name, ())) for name in "abc"] == [22, -2, 1 / 3]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("out = Σ_i x[i+1]", "how far does i go?"),
        ("out = x[3]", "is outside"),
        ("out = y[0]", "y is read before it is there"),
        ("out = x[0] > 1 > 0", "two comparisons"),
        ("out = x[0] x[1]", "no one reads"),
        ("out = x[0,0]", "1 dimensions"),
        ("for i in 0..n 2", "how often is this done"),
    ],
)
def test_what_a_reader_cannot_tell(line: str, says: str) -> None:
    with pytest.raises(Unclear, match=says.replace("?", r"\?")):
        drawn(line, x=np.zeros(3))


def test_a_wrong_page_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sign in the text of a formula, or the range of a loop, makes another program."""
    shaped = pipeline.infer(pipeline.graph_of(pipeline.text_component("+ij~i >> i*2~i"), "f"))
    assert wrong(shaped, 0) == []
    right = plain_checking._run

    def other(kind: str, page: Meaning, running: Sequence[LoopLine], state: State) -> None:
        right(kind, page, running, state)
        state.values["out"] = {at: -value - 1 for at, value in state.values["out"].items()}

    monkeypatch.setattr(plain_checking, "_run", other)
    assert len(wrong(shaped, 0) or ()) == 4  # formulas, loops, and those that run on both machines


def test_a_letter_in_the_place_of_another_is_no_extent() -> None:
    """Where ``j`` is an extent in an index, its loop has another letter: not ``i`` around ``for k in 0..i``."""
    assert check("mixed", [107]) == (1, [])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("ik*kj~ijk >> +ijk~ij", "j'"),
        ("hik*hkj~hijk >> +hijk~hij", "j'"),
        ("ik*jk~ijk >> +ijk~ij", "j'"),
        ("ij~ji", "j"),  # a copy of a whole tile is one line
    ],
)
def test_parts_of_an_axis_have_strokes_as_splits_have(text: str, part: str) -> None:
    shaped = pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "f"))
    for machine in (CPU, GPU):
        loops = simple_loops(pipeline.lower(shaped, machine), {})
        heads = [each.text[4:] for each in loops if each.text.startswith("for ")]
        names = [word.split()[0] for head in heads for word in head.split(" and ")]
        assert not [name for name in names if re.match(r"[a-z]\d", name)]
        assert part in names


def test_parts_of_an_axis_with_a_number_have_strokes() -> None:
    text = (ROOT / "samples" / "14_multi_head.i").read_text()
    module = parse_module(Source("m.i", text))
    shaped = pipeline.infer(pipeline.module_graph(module, "multi_head"))
    loops = simple_loops(pipeline.lower(shaped, GPU), {})
    heads = " ".join(each.text for each in loops if each.text.startswith("for "))
    assert "d2'' in 0..16" in heads
    assert "d22" not in heads


def test_an_axis_that_is_written_twice_has_letters() -> None:
    text = 'einx.sum("b i i -> b")'
    page = page_of(pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "f")))
    assert "out[b] = Σ_jk in0[b,j,k]" in page
    assert "i2" not in page.partition("\n\n")[0]


def test_a_divisor_makes_no_test_that_its_quotient_makes() -> None:
    """A row of nothing but -inf is NaN, said once; the sum in the divisor is itself."""
    text = (ROOT / "samples" / "22_online.i").read_text()
    module = parse_module(Source("m.i", text))
    program = pipeline.lower(pipeline.infer(pipeline.module_graph(module, "attention")))
    last = simple_loops(program, {})[-1].text
    assert last.count("−inf") == 1
    assert last.startswith(
        "out[m+m',d] = (nan if shift_maximum_run[m'] == −inf else (0 if norm_sum_run[m'] == 0 "
    )


def test_formulas_are_read_in_order() -> None:
    state = State({"n": 3})
    state.give("x", np.array([0, 2, 2]))
    formulas = [("t[i] = 0", ("n",)), ("t[x[i]] += i + 1", ("n",)), ("out[i] = 2·t[i]", ("n",))]
    run_formulas(formulas, state)
    assert state.array("out", (3,)).tolist() == [2, 0, 10]
