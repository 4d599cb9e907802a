"""Functions that lack an axis of their loops: values of their own, and right ones."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import Component, einx, i
from ilang.core import pipeline
from ilang.core.explain.kernel import loops_text
from ilang.core.pipeline import graph_of, infer, lower, text_component


def functions(program: Component, *shapes: tuple[int, ...]) -> list[str]:
    """The functions that have become values, each with its dimensions."""
    text = pipeline.shaped_stage_text(program.shaped([*shapes]), "collapsed")
    lines = [line.partition("]")[0].split(maxsplit=1) for line in text.splitlines()]
    ends = ("_ln", "_exp", "_tanh")
    return [f"{name} {dims[3:]}]" for name, dims in lines if name.endswith(ends)]


CASES = [
    ('elementwise("f: x[i,j], s[j] -> x - ln(s)")', [(30, 40), (40,)], ["out_ln [40]"]),
    ('elementwise("f: x[i,j], s[j] -> x - ln(s)")', [(3, 40), (40,)], []),  # is computed thrice
    ('elementwise("f: x[i,j], s[j] -> x * exp(s) + tanh(x)")', [(30, 40), (40,)], ["out_exp [40]"]),
    ('einx.logsumexp("i [j]")', [(30, 40)], []),  # leaves its loop
]


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize(("text", "shapes", "expected"), CASES)
def test_functions_of_few_axes(
    text: str, shapes: list[tuple[int, ...]], expected: list[str]
) -> None:
    program = i(text)
    assert functions(program, *shapes) == expected
    arrays = [np.random.default_rng(0).random(shape, np.float32) + 0.5 for shape in shapes]
    assert np.allclose(program(*arrays), program(*arrays, target="numpy"), rtol=1e-5)


@pytest.mark.usefixtures("compiled_quickly")
def test_softmax_in_the_middle() -> None:
    program = i('einx.log_softmax("b [c] h")')
    assert functions(program, (4, 17, 50)) == ["out_ln [4, 50]"]
    x = np.random.default_rng(0).standard_normal((4, 17, 50)).astype(np.float32)
    expected = x - np.log(np.exp(x.astype(np.float64)).sum(1, keepdims=True))
    assert np.allclose(einx.log_softmax("b [c] h", x), expected, atol=1e-5)


def loops(text: str, *shapes: tuple[int, ...]) -> str:
    """The loops of a program of f32 arrays."""
    graph = graph_of(text_component(text), "program")
    return loops_text(lower(infer(graph, shapes=shapes)))


def test_the_logarithm_of_a_row_is_taken_once() -> None:
    text = loops('einx.log_softmax("i [j]")', (30, 100))
    assert text.count("ln(") == 1
    assert text.index("ln(") < text.rindex("for j")


def test_an_element_of_the_loops_around_is_read_before() -> None:
    """In a loop over i the element of i is there, and its exponential leaves the loop over j."""
    text = loops("i*ij~ij << (^i~i | I)", (300,), (300, 900))
    assert text.index("exp(") < text.index("for j")


@pytest.mark.parametrize(
    "text",
    [
        "(I & ^ij~ij) >> ij*ij~ij",  # of the loop's own elements
        "^(i+1)~i",  # of an element that may lie outside
    ],
)
def test_what_changes_stays(text: str) -> None:
    shapes = [(40, 50)] if "j" in text else [(40,)]
    assert loops(text, *shapes).index("for ") < loops(text, *shapes).index("exp(")


def test_values_are_those_of_the_loops_as_they_were() -> None:
    """Empty rows among them, and functions of functions, which leave several loops."""
    draw = np.random.default_rng(0)
    programs = [
        'einx.log_softmax("i [j]")',
        'f(x[i,j], s[i]) = (ij-i~ij >> +ij~i)(x, elementwise("f: s -> exp(tanh(s))")(s))',
        'f(x[i,j,k], s[i]) = (ijk*i~ijk >> >ijk~ij)(x, elementwise("f: s -> exp(s)")(s))',
        'f(x[i,j], s[i]) = elementwise("c: x, s -> where(gt(x, 0), exp(s), x * exp(s) + tanh(s))")(x, s)',
    ]
    for text in programs:
        component = i(text)
        for i_, j in ((7, 37), (3, 0), (0, 3), (16, 256)):
            ranks = [3, 1] if "ijk" in text else [2, 1]
            shapes = [(i_, j, 5)[: ranks[0]], (i_,)][: 1 if "einx" in text else 2]
            arrays = [draw.standard_normal(shape).astype(np.float32) for shape in shapes]
            if not j and "log_softmax" in text:
                continue
            got, want = component(*arrays), component(*arrays, target="numpy")
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)
