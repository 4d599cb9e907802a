"""Scalar variables of kernels: which have lanes, which wrap, and what verifies that."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ilang.core import pipeline
from ilang.core.check.kernel import verify
from ilang.core.diagnostic import InternalError
from ilang.core.ir.kernel import Program, Variable
from ilang.core.record import replace


def program_of(text: str) -> Program:
    tree = pipeline.text_component(text)
    return pipeline.lower(pipeline.infer(pipeline.graph_of(tree, "program")))


def variables_of(text: str) -> list[Variable]:
    """The variables of the only kernel that reductions accumulate in."""
    (kernel,) = program_of(text).kernels
    return [local for local in kernel.locals if local.name != "values"]


def test_integers_that_are_added_or_multiplied_wrap() -> None:
    assert variables_of("i32 >> +ij~i") == [
        Variable("out_acc", lanes=16, wrapping=True, tensor="out")
    ]
    assert variables_of("i64 >> *ij~i") == [
        Variable("out_acc", lanes=16, wrapping=True, tensor="out")
    ]
    assert variables_of("i32 >> >ij~i") == [Variable("out_acc", lanes=32, tensor="out")]


def test_a_sum_of_f32_has_lanes_in_chunks() -> None:
    assert variables_of("f32 >> +ij~i") == [
        Variable("out_acc", tensor="out"),
        Variable("out_lanes", lanes=16, tensor="out"),
    ]


def test_what_is_known_of_variables_is_printed() -> None:
    text = pipeline.loops_text(program_of("i32 >> +ij~i"))
    assert "out_acc = 0 in each of 16 lanes wrapping\n" in text


def wrapping(variable: Variable) -> Variable:
    return replace(variable, wrapping=True)


def narrower(variable: Variable) -> Variable:
    return replace(variable, lanes=8)


@pytest.mark.parametrize(
    ("text", "spoil", "invariant"),
    [
        ("f64 >> +ij~i", wrapping, "what wraps is an integer"),
        ("i32 >> >ij~i", wrapping, "what wraps is added to, or multiplied"),
        ("i32 >> +ij~i", narrower, "all lanes of a variable are folded"),
    ],
)
def test_verified(text: str, spoil: Callable[[Variable], Variable], invariant: str) -> None:
    program = program_of(text)
    (kernel,) = program.kernels
    variable, *others = kernel.locals
    spoiled = replace(kernel, locals=(spoil(variable), *others))
    with pytest.raises(InternalError, match=invariant):
        verify(replace(program, kernels=(spoiled,)))
