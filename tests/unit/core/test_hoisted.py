"""Functions of what a loop does not change: computed before it, and nothing else is, whatever loops do."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import i
from ilang.core.explain.kernel import loops_text
from ilang.core.pipeline import graph_of, infer, lower, text_component


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
