"""The solved graph: its listing, its verifier, and a story for whatever mixture a graph is."""

from __future__ import annotations

import pytest

from ilang.core import pipeline
from ilang.core.calculus.affine import axis_index
from ilang.core.check.solved import verify
from ilang.core.diagnostic import InternalError
from ilang.core.explain.extents import extents_text
from ilang.core.infer.solved import Solved
from ilang.core.ir.graph import Graph
from ilang.core.record import replace
from tests.mixing import Mixing


def solved(text: str) -> Solved:
    """The solved graph of a program text."""
    return pipeline.solve(pipeline.graph_of(pipeline.text_component(text), "f"))


def mixed() -> Graph:
    """An index expression, a specification and a composition, with extents of both kinds."""
    m = Mixing(2)
    weights = m.leaf((), None, (4,), kind="parameter")
    valid = m.einsum("o<+k; k => o", m.index("i~i", 0), 1)
    product = m.operation("compose", weights, valid)
    return m.graph(m.index("+i~.", product))


def test_values_have_extents_loops_and_reads() -> None:
    lines = extents_text(solved("(i+u-1)*u~iu >> +iu~i")).split("\n")
    assert lines == [
        "n0  [iu]",
        "n1  [u]",
        "n2  [i, u]  for i u: n0[i+u-1] if inside, n1[u]",
        "n3  [i]     for i u: n2[i,u]",
        "",
        "iu  dimension 0 of in0",
        "u   dimension 0 of in1",
        "i   follows from the index (i+u-1): iu + 2 - (u - 1)",
    ]


def test_parts_have_a_line_each() -> None:
    lines = extents_text(solved('einsum("a; b => a^b")')).split("\n")
    assert lines[2:4] == [
        "n2  [ab]  for a: n0[a] into n2[a]",
        "          for b: n1[b] into n2[b+a]",
    ]


def test_rows_of_operations_are_divided() -> None:
    text = extents_text(pipeline.solve(mixed(), ranks=[1, 1, 2]))
    assert "n2  [o -> 4]" in text
    assert "for o0 k0: n2[o0,k0], n4[k0]" in text
    assert "o  dimension 1 of leaf; follows from" in text


def test_a_program_of_numbers_has_no_run_time_extents() -> None:
    assert "\n\n" not in extents_text(solved("@(i:3)~i"))


def test_the_verifier_names_what_does_not_hold() -> None:
    wrong = solved("ij*jk~ijk")
    node = wrong.graph.nodes[2]
    nodes = (*wrong.graph.nodes[:2], replace(node, target=tuple(map(axis_index, (1, 0, 2)))))
    wrong.graph = replace(wrong.graph, nodes=nodes)
    with pytest.raises(InternalError, match="the size of the dimension that it walks"):
        verify(wrong)
    missing = solved("(i+u-1)*u~iu")
    missing.derived = ()
    with pytest.raises(InternalError, match="every extent is known"):
        verify(missing)


def test_a_story_is_told_of_any_mixture() -> None:
    story = pipeline.story(mixed(), 200)
    assert {t.name: t.text() for t in story.tensors} == {
        "in0": "i", "in1": "k", "leaf": "o->4", "t1": "i", "t2": "o", "t3": "4", "t4": "()",
    }  # fmt: skip
    assert ("o", "dimension 1 of leaf; follows from o<+k: i - k + 1") in [
        (r.subject, r.says) for r in story.sizes
    ]
    events = {event.subject: event.value for event in story.events}
    assert events["input row of leaf"] == "1 axis or more"
    assert [c.reduced for c in story.projections] == [(), ("k",), ("k0",), ("i",)]
    assert "extents that come at run time" in str(story)
