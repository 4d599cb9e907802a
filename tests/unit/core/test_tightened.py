"""Loops that begin and end where conditions do: every element counts once, and what is left has lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.calculus.affine import axis_index
from ilang.core.check.kernel import verify
from ilang.core.diagnostic import InternalError
from ilang.core.ir.ids import VariableId
from ilang.core.ir.kernel import Block, For, Program, map_statements, statements_within
from ilang.core.record import replace
from tests.shares import one_in

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)


def tightened(text: str) -> str:
    graph = pipeline.graph_of(pipeline.text_component(text), "program")
    return pipeline.loops_text(pipeline.lower(pipeline.infer(graph)))


@pytest.mark.parametrize(
    ("guard", "ends"),
    [
        ("j<=i", "min(2048, n_j - (2048j), i-2048j+1)"),
        ("j<i", "min(2048, n_j - (2048j), i-2048j)"),
        ("i<=j", "max(0, i-2048j)..min(2048, n_j - (2048j))"),
        ("i+2<j", "max(0, i-2048j+3)..min(2048, n_j - (2048j))"),
        ("i<=j+3", "max(0, i-2048j-3)..min(2048, n_j - (2048j))"),
        ("j<=i,i<j+3", "max(0, i-2048j-2)..min(2048, n_j - (2048j), i-2048j+1)"),
        ("j<=4", "min(2048, n_j - (2048j), -2048j+5)"),
        ("i+j<9", "min(2048, n_j - (2048j), -i-2048j+9)"),
    ],
)
def test_a_sum_ends_with_its_condition_and_has_lanes(guard: str, ends: str) -> None:
    text = tightened(f"+ij[{guard}]~i")
    assert f"{ends} in 16 lanes" in text
    assert "if " not in text


def test_a_multiple_of_the_axis_ends_in_steps() -> None:
    assert "min(n_j, ceil((i+1) / 3))" in tightened(">ij[3j<=i]~i")


def test_short_loops_stay_whole() -> None:
    assert "if u <= i" in tightened("*(2i+u:3)[u<=i]~i")


CAUSAL = "(I & >ij[j<=i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<=i]~i)"


def test_what_is_read_to_an_end_is_filled_to_it() -> None:
    """Exponentials to the right of the diagonal are not computed: the sum and the quotient read none of them."""
    text = tightened(f"{CAUSAL} >> ij[j<=i]/i~ij")
    loop = text.index("i-2048j+1) in 16 lanes")
    assert loop < text.index("exp(") < text.index("reduce the 16 lanes")


def test_what_is_read_further_is_filled() -> None:
    for end in (f"{CAUSAL} >> ij/i~ij", f"{CAUSAL} >> ij[j<i]/i~ij"):
        text = tightened(end)
        assert "for j in 0..n_j\n    difference = in0[i,j] - maximum" in text


GUARDS = (
    *("j<=i", "i<j", "i+2<j", "i<=j+3", "j<=i+3", "3j<=i", "2i<j", "i+j<9", "i+j>=9"),
    *("j<=i,i<j+3", "j==i", "j<=700i", "700i<=j", "j<=i-4"),
)


@pytest.mark.parametrize("guard", one_in(3, GUARDS))
def test_values(guard: str) -> None:
    programs = (
        f"+ij[{guard}]~i",
        f">ij[{guard}]~i",
        f"+ij[{guard}]~j",
        f"+ij[{guard}]~.",
        f"-ij~ij >> +ij[{guard}]~i",
        f"(I & >ij[{guard}]~i) >> ij-i~ij >> +ij[{guard}]~i",
        f"(I & >ij[{guard}]~i) >> ij-i~ij >> (I & >ij[{guard}]~i) >> ij[{guard}]-i~ij",
    )
    component = i(" & ".join(f"({text})" for text in programs))
    for shape in ((9, 11), (11, 8), (20, 33), (12, 4200)):
        x = RNG.integers(-4, 5, shape).astype(np.float32)
        wanted = component(x, target="numpy")
        for threads in (1, 3):
            for text, got, want in zip(
                programs, component(x, threads=threads), wanted, strict=True
            ):
                assert np.array_equal(got, want), (text, shape)


def test_a_loop_ends_by_what_is_known_outside() -> None:
    graph = pipeline.graph_of(pipeline.text_component(">ij[j<=i]~i"), "program")
    program = pipeline.lower(pipeline.infer(graph))
    verify(program)
    loops = [s for s in statements_within(program.kernels[0].body) if isinstance(s, For)]
    (inner,) = (loop for loop in loops if loop.within)

    def ended(body: Block) -> Block:
        later = axis_index(VariableId(inner.variable + 1))
        end = inner.end.among("min", ((later, 1),))
        return map_statements(
            body, lambda s: replace(s, end=end) if isinstance(s, For) and s.within else s
        )

    kernel = program.kernels[0]
    wrong: Program = replace(program, kernels=(replace(kernel, body=ended(kernel.body)),))
    with pytest.raises(InternalError, match="a loop ends by what is known outside it"):
        verify(wrong)
