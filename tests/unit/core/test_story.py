"""The story of an inference: every axis and every result has a reason."""

from __future__ import annotations

from ilang.core.pipeline import graph_of, infer, text_component
from ilang.core.story import tell


def story(text: str, shapes: list[tuple[int, ...]] | None = None) -> dict[str, str]:
    shaped = infer(graph_of(text_component(text), "f"), shapes=shapes)
    return {row.subject: row.says for row in tell(shaped)}


def test_a_shared_axis_names_every_dimension_it_walks() -> None:
    told = story("ik*kj~ijk >> +ijk~ij")
    assert told["axis k"] == "one extent: dimension 1 of in0, dimension 0 of in1"
    assert "k is reduced" in told["out"]
    assert "start from 0, in f64" in told["out"]
    assert "written once" in told["t1"]


def test_known_extents_are_told() -> None:
    assert story("+ij~i", [(2, 3)])["axis j"] == "dimension 1 of in0; it is 3"


def test_a_derived_extent_tells_its_formula() -> None:
    told = story("(2y+u-1)*u~yu >> +yu~y")
    assert told["axis y"] == "follows from the index (2y+u-1): ⌊(yu + 2 - (u - 1) - 1) / 2⌋ + 1"


def test_a_fixed_index_tells_its_bound() -> None:
    assert story("2j~j")["axis n"] == "dimension 0 of in0; read at 2, so more than that"
