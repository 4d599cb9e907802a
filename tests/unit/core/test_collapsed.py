"""Axes that every access walks side by side are one; others stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.schedule.collapsing import shaped_to_collapsed


def axes(
    text: str, machine: Machine = GPU, shapes: list[tuple[int, ...]] | None = None
) -> list[str]:
    """The axes of each assignment of a program, after the step."""
    graph = pipeline.program_graph(pipeline.text_program(text))
    return axes_of(shaped_to_collapsed(pipeline.infer(graph, shapes=shapes), machine))


def axes_of(shaped: Shaped) -> list[str]:
    nodes = [node for node in shaped.nodes if isinstance(node, Assignment)]
    return [" ".join(axis.name for axis in node.axes) for node in nodes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+ij~.", ["ij"]),
        ("ij+ij~ij", ["ij"]),
        ("ij*ij~ij >> +ij~. >> ^.~.", ["ij", "ij", ""]),
        ("+ijk~i", ["i jk"]),
        ("+ijk~ij", ["ij k"]),
        ("+ijk~j", ["j i k"]),
        ("bik*kj~bikj >> +bikj~bij", ["bi k j", "bi j k"]),
        ("ijk~kij", ["k ij"]),
        ("ij~ji", ["j i"]),
        ("ij+j~ij", ["i j"]),
        ("ij+ji~ij", ["i j"]),
        ("-ij~ij >> (I & +ij~j) >> ij-j~ij", ["i j", "j i", "i j"]),
        ("-ij~ij >> (I & +ij~i) >> ij/i~ij", ["i j", "i j", "i j"]),
        ("ij[j<=i]~ij", ["i j"]),
        ("(i+1)j~ij", ["i j"]),
        ("+ij~. || i j", ["i j"]),
        ("-ij~ij >> ij+ij~ij || j i", ["i j", "i j"]),
    ],
)
def test_axes_on_a_gpu(text: str, expected: list[str]) -> None:
    assert axes(text) == expected


@pytest.mark.parametrize(
    ("shape", "expected"), [((1000, 3), ["ij"]), ((3, 1000), ["ij"]), ((1000, 1024), ["i j"])]
)
def test_a_processor_collapses_short_axes(shape: tuple[int, ...], expected: list[str]) -> None:
    assert axes("ij/ij~ij", CPU, [shape, shape]) == expected
    assert axes("+ij~.", CPU, [shape]) == ["ij"]
    assert axes("+ij~.", CPU) == ["i j"]


def test_what_is_chosen_may_be_written() -> None:
    graph = pipeline.program_graph(pipeline.text_program("-ij~ij >> +ij~."))
    rows = pipeline.explain(graph, machine=GPU).execution.schedule
    assert [row.text for row in rows] == ["-ij~ij", "+ij~."]
    assert axes(" >> ".join(f"{row.text} {row.schedule}" for row in rows)) == axes(
        "-ij~ij >> +ij~."
    )
    assert axes(f"-ij~ij >> {rows[1].text} {rows[1].schedule}") == axes("-ij~ij >> +ij~.")


def test_the_parts_of_a_full_sum_are_parts_of_all_extents() -> None:
    graph = pipeline.program_graph(pipeline.text_program("+ij~."))
    text = pipeline.stage_text(graph, "host", machine=GPU)
    assert "ij = i * j" in text
    assert "out_blocks = blocks of ij terms" in text


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        (
            "nc(h+r)(w+s)*kcrs~nkhwcrs >> +nkhwcrs~nkhw",
            [(1, 32, 9, 9), (8, 32, 1, 1)],
            ["k hw c"] * 2,
        ),
        ("bik*bkj~bikj >> +bikj~bij", [(1, 40, 80), (1, 80, 40)], ["i k j", "i j k"]),
        ("+ij~i", [(50, 1)], ["i"]),
        ("+ij~i", [(1, 50)], ["j"]),
        ("ik*kj~ijk >> +ijk~ij", [(70, 1), (1, 50)], ["i j"] * 2),
        ("-ij~ij >> (I & +ij~i) >> ij-i~ij", [(1, 70)], ["j"] * 3),
        ("+i(j+u:3)~ij", [(70, 3)], ["i u"]),
        ("(i+1)j~ij", [(2, 70)], ["j"]),
        ("ij[j<1]~ij", [(1, 1)], ["j"]),
        ("ij+ij~ij || i j", [(1, 70), (1, 70)], ["j"]),
        ("ij+ij~ij | j:16 | j i j'", [(1, 70), (1, 70)], ["i j"]),
    ],
)
def test_an_axis_over_one_element_is_left_out(
    text: str, shapes: list[tuple[int, ...]], expected: list[str]
) -> None:
    assert axes(text, CPU, shapes) == expected


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("nc(h+r)(w+s)*kcrs~nkhwcrs >> +nkhwcrs~nkhw", [(1, 5, 7, 7), (3, 5, 1, 1)]),
        ("nc(h+r)(w+s)*kcrs~nkhwcrs >> +nkhwcrs~nkhw", [(2, 1, 7, 1), (3, 1, 3, 1)]),
        ("nc(2h+r)(2w+s)*kcrs~nkhwcrs >> +nkhwcrs~nkhw", [(1, 5, 7, 7), (3, 5, 1, 1)]),
        ("nc(h+r-1)(w+s-1)*kcrs~nkhwcrs >> +nkhwcrs~nkhw", [(1, 5, 1, 7), (3, 5, 3, 3)]),
        ("-ij~ij >> (I & +ij~i) >> ij-i~ij", [(1, 7)]),
        ("-ij~ij >> (I & +ij~i) >> ij-i~ij", [(7, 1)]),
        ("ij*jk~ijk >> +ijk~ik >> (I & +ik~k)", [(1, 4), (4, 6)]),
        ("ij*jk~ijk >> +ijk~ik >> (I & +ik~k)", [(1, 1), (1, 6)]),
        (">ij~j >> (I & -j~j)", [(1, 9)]),
        ("+ij~ji >> (I & (i+1)j~ij)", [(3, 1)]),
        ("ij[i<j]~ij >> +ij~j", [(1, 6)]),
        ("+ij~.", [(1, 1)]),
        ("+ij~i", [(7, 1)]),
        (">ij~i & <ij~i & *ij~i", [(7, 1)]),
        ("(>>ij~ij >> &&ij~i) & (>>ij~ij >> ||ij~i) & (i32 >> +ij~i)", [(7, 1)]),
        ("ik*kj~ijk >> +ijk~ij", [(3, 1), (1, 5)]),
        ("i(0)~i", [(1, 3)]),
        ("(0)(0)~.", [(1, 3)]),
        ("-ij~ij >> (0)(1)~.", [(1, 3)]),
    ],
)
def test_values_are_those_of_the_evaluator(
    text: str, shapes: list[tuple[int, ...]], target: str
) -> None:
    numbers = np.random.default_rng(1)
    arrays = [numbers.integers(-9, 9, shape).astype(np.float32) for shape in shapes]
    arrays = [np.where(array == 0, np.float32(-0.0), array) for array in arrays]
    open_extents = i(text).dynamic()(*arrays, target="numpy")
    known = i(text)(*arrays, target=target)
    for one, other in zip(_several(open_extents), _several(known), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


def _several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("adc*dcb~abcd >> +abcd~ab", ["a b dc", "a b dc"]),
        ("adc*dcb~abcd >> +abcd~b", ["a b dc", "a b dc"]),
        ("ij*ij~ji >> +ji~.", ["ij", "ij"]),
        ("ij*ij~ji >> +ji~i", ["i j", "i j"]),
        ("ij*ij~ji", ["j i"]),
        ("cbd*cda~badc >> +badc~ba", ["b a d c", "b a d c"]),
    ],
)
def test_products_have_the_dimensions_of_their_factors(text: str, expected: list[str]) -> None:
    found = [sorted(each.split()) for each in axes(text)]
    assert found == [sorted(each.split()) for each in expected]
    draw = np.random.default_rng(5)
    first, _, rest = text.split(maxsplit=1)[0].partition("*")
    given = [
        draw.standard_normal([2 + ord(letter) % 5 for letter in word])
        for word in (first, rest[: rest.index("~")])
    ]
    for machine in ("c", "cuda-emulated"):
        np.testing.assert_allclose(
            i(text)(*given, target=machine), i(text)(*given, target="numpy"), 1e-12
        )


def test_arrays_have_no_dimension_of_one_element_where_nothing_is_collapsed() -> None:
    graph = pipeline.program_graph(pipeline.text_program('einx.sum("a [b] c")'))
    shaped = shaped_to_collapsed(pipeline.infer(graph, shapes=[(886, 602, 1)]), CPU)
    (node,) = (node for node in shaped.nodes if isinstance(node, Assignment))
    assert [len(read.index) for read in node.reads] == [2]


def test_a_result_that_is_a_view_has_collapsed_axes_too() -> None:
    """Rows and columns of images are one axis in all of a norm of groups of channels, whose result has them apart."""
    text = """norm(x[n,c,h,w]) = {
      y = einx.subtract("n (g k) h w, n g -> n (g k) h w", g=8)(x, einx.mean("n (g [k]) [h w] -> n g", g=8)(x))
      z = (nchw*nchw~nchw >> einx.sum("n (g [k]) [h w] -> n g", g=8))(y, y)
      einx.divide("n (g k) h w, n g -> n (g k) h w", g=8)(y, z)
    }"""
    shaped = shaped_to_collapsed(i(text).program.shaped(((3, 16, 5, 7),), None), CPU)
    assert not any({"h", "w"} & {*each.split()} for each in axes_of(shaped)), axes_of(shaped)
    x = np.random.default_rng(0).standard_normal((3, 16, 5, 7))
    np.testing.assert_allclose(i(text)(x), i(text)(x, target="numpy"), rtol=1e-12, atol=1e-12)
    assert i(text).grad()(x, x)[0].shape == x.shape[1:]
