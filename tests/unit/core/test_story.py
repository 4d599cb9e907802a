"""The story of an inference: every axis and every result has a reason."""

from __future__ import annotations

from ilang.core.notation.files.module import parse_module
from ilang.core.pipeline import explain, graph_of, module_graph, text_component
from ilang.core.source import Source


def story(text: str, shapes: list[tuple[int, ...]] | None = None) -> dict[str, str]:
    page = explain(graph_of(text_component(text), "f"), shapes, verbose=True)
    return {row.subject: row.says for row in page.story}


def test_a_shared_axis_names_every_dimension_it_walks() -> None:
    told = story("ik*kj~ijk >> +ijk~ij")
    assert told["axis k"] == "one extent: dimension 1 of in0, dimension 0 of in1"
    assert "k is reduced" in told["out"]
    assert "start from 0, in f64" in told["out"]
    assert "written once" in told["product"]


def test_known_extents_are_told() -> None:
    assert story("+ij~i", [(2, 3)])["axis j"] == "dimension 1 of in0; `--shape` gives 3"


def test_a_derived_extent_tells_its_formula() -> None:
    told = story("(2y+u-1)*u~yu >> +yu~y")
    assert told["axis y"] == "follows from the index (2y+u-1): ⌊(yu + 2 - (u - 1) - 1) / 2⌋ + 1"


def test_a_fixed_index_tells_its_bound() -> None:
    assert story("2j~j")["axis n"] == "dimension 0 of in0; read at 2, so more than that"


def test_numbers_are_put_into_a_formula() -> None:
    told = story("(i+k-1)*k~ik >> +ik~i", [(10,), (3,)])
    assert told["axis i"] == (
        "follows from the index (i+k-1): ik + 2 - (k - 1) = 10 + 2 - (3 - 1) = 10"
    )
    told = story("(2y+u-1)*u~yu >> +yu~y", [(10,), (3,)])
    assert told["axis y"].endswith(
        "⌊(yu + 2 - (u - 1) - 1) / 2⌋ + 1 = ⌊(10 + 2 - (3 - 1) - 1) / 2⌋ + 1 = 5"
    )


def test_only_what_is_written_is_called_written() -> None:
    told = story("+(i+u:3)~i", [(10,)])
    assert told["axis iu"] == "dimension 0 of in0; `--shape` gives 10"
    assert told["axis i"] == "follows from the index (i+u:3): iu - (u - 1) = 10 - (3 - 1) = 8"
    assert told["axis u"] == "written as 3, column 5"
    assert story("+(i+u:3)~i")["axis i"].endswith("iu - (u - 1) = iu - (3 - 1)")


def test_a_number_of_a_definition_is_told_with_its_place() -> None:
    module = parse_module(Source("m.i", "g(a[4]) = ^i~i\n\nf(x[n,4]) = (I >> +ij~j) >> g\n"))
    told = {r.subject: r.says for r in explain(module_graph(module, "f"), None, True).story}
    assert told["axis j"].startswith("dimension 1 of x; written as 4, line ")


def test_a_size_of_an_einsum_is_told_with_its_numbers() -> None:
    told = story('einsum("y+u; u => y")', [(10,), (3,)])
    assert any(says.startswith("follows from") and says.endswith("= 8") for says in told.values())
