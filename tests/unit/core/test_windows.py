"""Staged values that are read through affine indices: intervals, values, notes, and lanes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ilang import i
from ilang.core.pipeline import explain, graph_of, text_component
from tests.shares import one_in


def loops(text: str) -> str:
    return i(text).loops()


def test_the_interval_of_a_window() -> None:
    assert loops("-i~i >> +(i+u:3)~i || i 0 u") == (
        "memory negative f32[3] private\n"
        "parallel for i in 0..n_i2\n"
        "  as out_i(n_i; in0, out) writing out, keeping negative\n"
        "  shared by time 3·n_i2\n"
        "  for i2 in 0..min(3, n_i - (i))\n"
        "    negative[i2] = -in0[i2+i]\n"
        "  out_acc = 0\n"
        "  for u in 0..3\n"
        "    out_acc += f64(negative[u])\n"
        "  out[i] = f32(out_acc)"
    )


def test_the_interval_of_a_tile() -> None:
    """16 positions at stride 2, three elements each: 33 elements."""
    text = loops("-i~i >> >(2i+u:3)~i | i:16 | i 0 i' u")
    assert "for i2 in 0..min(33, n_i - (32i))" in text


def test_padding_is_not_computed() -> None:
    text = loops("-i~i >> +(i+u:3-1)~i || i 0 u")
    assert "if 0 <= i+i2-1 < n_i\n      negative[i2] = -in0[i2+i-1]" in text


def test_intervals_of_intervals() -> None:
    """What a tile of the second window needs of the first, and that of the input."""
    text = loops("-i~i >> +(i+u:3)~i || i 0 u >> +(2i+v:3)~i | i:4 | i 0 i' v")
    assert "for i2 in 0..min(9, n_iv - (8i))" in text
    assert "for i3 in 0..min(3, n_i - (8i+i2))" in text


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
