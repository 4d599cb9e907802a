"""The story of a graph, stage by stage: every row, what fixed it and when, and how each result is written."""

from __future__ import annotations

import numpy as np

from ilang import tensor
from ilang.core.explain.story import Story
from ilang.core.infer.solver import STAGES


def arange(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)


def layer() -> Story:
    x = tensor.data(None, (20,), (), (2,), "x")
    w, b = tensor.param("w"), tensor.param("b", output=(16,))
    return tensor.solve(tensor.relu(w @ x + b)).story()


def test_rows_of_every_tensor_are_told() -> None:
    told = {rows.name: (rows.text(), rows.formula) for rows in layer().tensors}
    assert told["w"] == ("2->16", "parameter")
    assert told["x"] == ("20|2", "data")
    assert told["t1"] == ("20|16", "w @ x")


def test_events_name_the_stage_the_value_and_the_reason() -> None:
    events = {event.subject: event for event in layer().events}
    inner = events["input axis 0 of w"]
    assert (inner.stage, inner.value) == (1, "2")
    assert inner.why == "`w @ x` meets output axis 0 of x"
    assert inner.span is not None
    assert inner.span.text() == "w @ x"
    output = events["output row of w"]
    assert (STAGES[output.stage - 1], output.value) == (
        "leaves take what their uses ask for",
        "[16]",
    )
    ends = [event for event in layer().events if event.subject == "no further axes"]
    assert [event.stage for event in ends] == [4, 5]
    assert "input row of b" in ends[0].value


def test_what_stretches_and_what_is_computed_is_told() -> None:
    x = tensor.data(None, (), (), (9,), "x")
    y = tensor.einsum("2*o<+k; k => o", x, tensor.param("k", output=(3,)))
    mean = tensor.einsum("... => 0", y)
    events = {event.subject: event for event in tensor.solve(y - mean).story().events}
    assert (events["axis o of t1"].stage, events["axis o of t1"].value) == (1, "4")
    kept = events["axis 0 of t2"]
    assert (kept.stage, kept.value) == (7, "1, which stretches")
    assert kept.why.startswith("`0` in")


def test_projections_tell_how_a_result_is_written() -> None:
    first, *_, last = layer().projections
    assert first.loops == (("b0", 20), ("o0", 16), ("k0", 2))
    assert first.reduced == ("k0",)
    assert [row.cells for row in first.rows] == [("·", "0", "1"), ("0", "·", "1"), ("0", "1", "·")]
    assert (first.injective, first.surjective, first.start) == (False, True, 0)
    assert (last.injective, last.surjective, last.start) == (True, True, None)
    diagonal = tensor.solve(tensor.einmax("i => ii", tensor.data(arange(3)))).story()
    (walk,) = diagonal.projections
    assert (walk.injective, walk.surjective, walk.start) == (True, False, -np.inf)
    joined = tensor.concat("a; b => a^b", tensor.data(arange(2)), tensor.data(arange(3)))
    parts = tensor.solve(joined).story().projections
    assert [walk.part for walk in parts] == [("a",), ("b",)]
    assert parts[1].rows[-1].index == "[b+2]"


def test_lines_are_aligned_and_stages_are_named() -> None:
    lines = str(layer()).split("\n")
    assert "t1  20|16  w @ x" in lines
    assert "3 leaves take what their uses ask for" in lines
    assert "  t1    0      1      ·     k0 is reduced, so elements start from 0" in lines


def test_a_story_is_bounded() -> None:
    h = tensor.data(None, (20,), (), (16,), "x")
    for n in range(400):
        h = tensor.relu(tensor.param(f"w{n}", output=(16,)) @ h)
    program = tensor.solve(h)
    story = program.story(limit=10)
    assert (len(story.tensors), len(story.events), len(story.projections)) == (10, 10, 10)
    assert story.more[0] == 1201 - 10
    assert len(str(story)) < 4000
    assert len(program.story(limit=None).tensors) == 1201
