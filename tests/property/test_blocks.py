"""Blocks and threads in written schedules: followed on a GPU or refused, with a legal one told; nothing on a CPU."""

from __future__ import annotations

import re
import shutil

import pytest

from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import GPU
from ilang.core.pipeline import graph_of, infer, lower, text_component
from tests.property import schedules
from tests.property.checking import check
from tests.property.schedules import RULES, draw, refusal
from tests.property.test_schedules import PASTES

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
        "dim3(il_blocks_of(n_j_32, 1, INT32_MAX), il_blocks_of(n_i_4, 1, 65535), 1), dim3(32, 4, 1)"
        in text
    )
    assert re.search(r"j_1 = threadIdx\.x;\s+const int i1 = threadIdx\.y;", text)


def test_a_warp_takes_a_row() -> None:
    (spread,) = bound("+ij~i || i j | j:l").kernels[0].body
    assert isinstance(spread, ThreadLoop)
    assert spread.over == "warps"
    text = schedules.code(shaped_of("+ij~i || i j | j:l"), GPU)
    assert "__syncthreads" not in text
    assert "__shfl_xor_sync" in text
