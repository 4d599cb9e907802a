"""What goes row by row on a GPU: one kernel, a block for each row, or several where rows are not all there is."""

from __future__ import annotations

import pytest

from ilang.core import pipeline
from ilang.core.ir.schedule import Scheduled
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import GPU
from ilang.core.notation.files.module import parse_module
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from ilang.core.source import Source

SOFTMAX = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"
NORM = "(I & (+ij~i >> (I | 0.5) >> i*.~i)) >> ij-i~ij >> (I & ((I & I) >> ij*ij~ij >> +ij~i)) >> ij/i~ij"


def shaped_of(text: str) -> Shaped:
    """A component, or a definition, inferred."""
    if text.startswith("f("):
        graph = pipeline.module_graph(parse_module(Source("f.i", text)), "f")
    else:
        graph = pipeline.graph_of(pipeline.text_component(text), "f")
    return pipeline.infer(graph)


def scheduled(text: str) -> Scheduled:
    """The schedule of a component or a definition."""
    return shaped_to_schedule(shaped_of(text), GPU)


@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        (SOFTMAX, 1),
        (NORM, 1),
        ("(I & +ij~i) >> ij/i~ij", 1),
        ("+ij~i >> -i~i", 1),  # a number for each row
        ("(I & +ijk~i) >> ijk/i~ijk", 1),  # rows of two dimensions
        (f"{SOFTMAX} >> (I & >ij~i) >> ij-i~ij", 1),  # four passes over each row
        ("ik*kj~ijk >> +ijk~ij >> (I & >ij~i) >> ij-i~ij", 2),  # a contraction is before its rows
        ("(I & +ij~j) >> ij-j~ij", 2),  # columns
        ("(I & +ij~i) >> ij/i~ji", 2),  # stored in columns
        ("(I & +ij~i) >> ij/j~ij", 2),  # a row that is read along another one
        ("(I & +ij~.) >> ij/.~ij", 2),  # no rows
        ("(I & +ij~i) >> (ij/i~ij & ~(I | I))", 3),  # each result has its own
        (">ij~i & ((I & >ij~i) >> ij-i~ij)", 2),
        ("(I & +nchw~c) >> nchw-c~nchw", 2),  # what is reduced does not follow the rows
        ("f(x[2,100000]) = (I & >ij~i) >> ij-i~ij", 2),  # two rows are too few
        ("f(x[2,1000]) = (I & >ij~i) >> ij-i~ij", 1),  # but short
        ("f(x[300,100000]) = (I & >ij~i) >> ij-i~ij", 1),
        ("f(x[m,4]) = (I & >ij~i) >> ij-i~ij", 2),  # nothing for threads to share
    ],
)
def test_kernels(text: str, kernels: int) -> None:
    assert len(scheduled(text).groups) == kernels


def test_what_would_be_computed_too_often_is_stored() -> None:
    """Each of these passes over its row for the maximum, and again for the result: that of five before is stored."""
    centered = "(I & >ij~i) >> ij-i~ij"
    counts = [len(scheduled(" >> ".join([centered] * n)).groups) for n in range(3, 7)]
    assert counts == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        ("-ij~ij >> <@ij~i", 2),
        ("-ij~ij >> (I & >ij~i) >> ij==i~ij", 2),
        ("<@ij~i", 1),  # what is given is the same each time
        ('^ij~ij >> einx.logsumexp("a [b]")', 1),  # equal to a number alone
    ],
)
def test_what_is_compared_with_its_reduction_is_computed_once(text: str, kernels: int) -> None:
    assert len(scheduled(text).groups) == kernels


def test_a_result_that_has_terms_of_its_own_loops_over_them() -> None:
    text = "(einsum('20|1 ; dd| ; r21| => r') >> einsum('j,;z,k|->;=>j,z')) >> einsum('..vv.._=>1..vv..')"
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    shaped = pipeline.infer(graph, ["i64"] * 5, [3, 2, 3, 2, 0])
    chosen = shaped_to_schedule(shaped, GPU)
    for node, nest in zip(shaped.nodes, chosen.nests, strict=True):
        if isinstance(node, Assignment) and nest is not None:
            assert {loop.axis for loop in nest.order} == set(range(len(node.axes)))
