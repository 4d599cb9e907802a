"""Scalar variables of kernels: what the verifier refuses."""

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
