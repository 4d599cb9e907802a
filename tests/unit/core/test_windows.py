"""Staged values that are read through affine indices: values, notes, and lanes where windows have few places."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ilang import i
from ilang.core.pipeline import explain, graph_of, text_component
from tests.shares import one_in


def test_a_fixed_index_of_what_is_fused_is_explained() -> None:
    """The element that a constant index picks, in the terms of the reader."""
    (found,) = explain(graph_of(text_component("-ij~ij >> 0i~i"), "f")).projections
    assert [(row.tensor, row.index) for row in found.rows] == [("in0", "[0,i]"), ("out", "")]


@pytest.mark.parametrize(
    "text",
    [
        "+ij~i >> >(i+u:3-1)~i | i:16 | i 0 i' u | 0:c",
        "-ij~ij >> ij*kj~ijk || i j 0 k | 0:c >> +ijk~ik || i j k 0",
        "-ij~ij || i j >> ij-ij~ij || j 0 1 i | 0:c",
        "-ij~ij >> +(i+u:3)j~ij | i:4 | i 0 j i' u",
        "-ij~ij >> +(i+u:3-1)j~ij | i:4,j:3 | j i 0 j' i' u",
        "-ij~ij | i:2 | j i i' >> +(2i+3u:2)j~ij | i:4 | j i 0 i' u",
        "+ij~i || j i >> >(i+u:3-1)~i | i:4 | i 0 i' u",
        "+ij~i || j i 0 >> >(i+u:3-1)~i | i:4 | i 0 i' u",
        "ik*jk~ijk >> +ijk~ij >> >(i+u:3-1)(j+v:3-1)~ij | i:4,j:4 | i j 0 i' j' u v",
        "ik*jk~ijk | k:4 | 1 i j k k' >> +ijk~ij | k:4 | i j k 0 k' >> +(i+u:2)j~ij | i:4 | i 0 j i' u",
        "-ij~ij || i 0 j >> ^ij~ij || i 0 j >> +(i+u:3-1)j~ij || i 0 u j >> +(i+v:3-1)j~ij || i 0 j v",
        "ij/i~ij >> +(i+u:2)j~ij || i 0 j u",
        "-ij~ij >> +(i+u:3)j~ij | i:4 | i 0 j i' u | i:p",
    ],
)
@pytest.mark.parametrize("extent", one_in(3, [4, 6, 9, 17, 5, 33]))
def test_results(text: str, extent: int) -> None:
    draw = np.random.default_rng(extent)
    component = i(text)
    arrays = [draw.normal(size=(extent, 5)).astype(np.float32) for _ in range(component.takes())]
    if text.startswith("ij/i"):
        arrays[1] = arrays[1][:, 0]
    expected = component(*arrays, target="numpy")
    np.testing.assert_allclose(component(*arrays, threads=2), expected, rtol=1e-5, atol=1e-5)


CONVOLUTION = "nc(h+r)(w+s)*kcrs~nkhwcrs >> +nkhwcrs~nkhw"


@pytest.mark.parametrize(
    ("image", "weights", "rows"),
    [
        ((1, 24, 11, 11), (7, 24, 5, 5), 8),
        ((2, 5, 6, 9), (3, 5, 3, 3), 3),
        ((1, 40, 6, 6), (1, 40, 3, 3), None),  # no element is used for several results
        ((1, 9, 5, 5), (7, 9, 3, 3), None),  # places for less than half of a vector
    ],
)
def test_few_places_are_lanes_of_a_tile_with_few_channels(
    image: tuple[int, ...], weights: tuple[int, ...], rows: int | None
) -> None:
    component = i(CONVOLUTION)
    held = re.findall(r"tile f32\[(\d+),16\]", str(component.loops(image, weights)))
    assert held == ([] if rows is None else [str(rows)])
    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=shape).astype(np.float32) for shape in (image, weights)]
    expected = component(*arrays, target="numpy")
    np.testing.assert_allclose(component(*arrays, threads=2), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("places", "lanes"), [(16, 16), (17, 32), (100, 64)])
def test_short_rows_have_no_more_lanes_than_vectors_need(places: int, lanes: int) -> None:
    component = i(">abc~b")
    assert f"in0_copy f32[5,{lanes}]" in str(component.loops((300, places, 5)))
    array = np.random.default_rng(places).normal(size=(300, places, 5)).astype(np.float32)
    np.testing.assert_array_equal(component(array), array.max((0, 2)))


def test_a_note_never_says_that_an_extent_is_itself() -> None:
    same = str(i("f(x[n]) = (I & +(i+k:3-1)~i) >> i*i~i").explain())
    wider = str(i("f(x[n]) = +(i+k:3-2)~i").explain())
    assert "n = n\n" not in same
    assert "i = n+2\n" in wider
