"""Affine and fixed indices: convolution, stride, dilation, padding, pooling, against plain Python loops."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import Error, i
from ilang.core.pipeline import graph_of, infer, lower, text_component
from tests.shares import one_in

Array = npt.NDArray[Any]
TARGETS = ("c", "numpy")


def random(*shape: int) -> Array:
    """Small whole numbers: float32 sums of them are exact."""
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float32)


def convolution(x: Array, w: Array, stride: int, step: int, pad: int) -> Array:
    """X (n, c, H, W), w (o, c, U, V) -> (n, o, Y, X)."""
    n, c, height, width = x.shape
    o, _, u_count, v_count = w.shape
    padded = np.zeros((n, c, height + 2 * pad, width + 2 * pad), np.float64)
    padded[:, :, pad : pad + height, pad : pad + width] = x
    y_count = (height + 2 * pad - step * (u_count - 1) - 1) // stride + 1
    x_count = (width + 2 * pad - step * (v_count - 1) - 1) // stride + 1
    out = np.zeros((n, o, y_count, x_count))
    for y, q, u, v in itertools.product(*map(range, (y_count, x_count, u_count, v_count))):
        out[:, :, y, q] += (
            padded[:, :, stride * y + step * u, stride * q + step * v] @ w[:, :, u, v].T
        )
    return out


def index(position: str, window: str, stride: int, step: int, pad: int) -> str:
    times = {1: ""}
    padding = f"-{pad}" if pad else ""
    return f"({times.get(stride, stride)}{position}+{times.get(step, step)}{window}{padding})"


@pytest.mark.parametrize("pad", one_in(2, [0, 1, 2]))
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("stride", one_in(2, [1, 2, 3]))
def test_convolution(stride: int, step: int, pad: int) -> None:
    rows, columns = index("y", "u", stride, step, pad), index("x", "v", stride, step, pad)
    f = i(f"nc{rows}{columns}*ocuv~noyxcuv >> +noyxcuv~noyx")
    for height, width, u, v in [
        (5, 7, 3, 3),
        (8, 8, 1, 1),
        (9, 6, 2, 3),
        (1, 1, 1, 1),
        (6, 5, 3, 2),
    ]:
        x, w = random(2, 3, height, width), random(4, 3, u, v)
        if height + 2 * pad < step * (u - 1) + 1 or width + 2 * pad < step * (v - 1) + 1:
            continue
        for target in TARGETS:
            np.testing.assert_array_equal(
                f(x, w, target=target), convolution(x, w, stride, step, pad)
            )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("pad", [0, 1])
def test_pooling_skips_what_is_outside(pad: int, target: str) -> None:
    padding = "-1" if pad else ""
    f = i(f">nc(2y+u:3{padding})(2x+v:3{padding})~ncyx")
    x = -1 - np.abs(random(2, 3, 8, 9))  # a zero of padding would win
    z = f(x, target=target)
    for y, q in itertools.product(range(z.shape[2]), range(z.shape[3])):
        top, left = 2 * y - pad, 2 * q - pad
        window = x[:, :, max(0, top) : top + 3, max(0, left) : left + 3]
        np.testing.assert_array_equal(z[:, :, y, q], window.max(axis=(2, 3)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1j~j", lambda m: m[1]),
        ("i2~i", lambda m: m[:, 2]),
        ("(2i)j~ij", lambda m: m[::2]),
        ("(i+1)j~ij", lambda m: m[1:]),
        ("(-i:3+2)j~ij", lambda m: m[::-1]),
        (
            "(2i:5-3)j~ij",
            lambda m: np.vstack([np.zeros((2, 4), m.dtype), m[1:2], np.zeros((2, 4), m.dtype)]),
        ),
        ("+(i+u:3-1)j~ij", lambda m: np.stack([m[:2].sum(0), m.sum(0), m[1:].sum(0)])),
        ("-ij~ij >> +(i+u:3-1)j~ij", lambda m: -np.stack([m[:2].sum(0), m.sum(0), m[1:].sum(0)])),
        (
            "(I & +(i+u:3-1)j~ij) >> ij-ij~ij",
            lambda m: m - np.stack([m[:2].sum(0), m.sum(0), m[1:].sum(0)]),
        ),
    ],
)
def test_indices(text: str, expected: Any, target: str) -> None:
    m = random(3, 4)
    np.testing.assert_array_equal(i(text)(m, target=target), expected(m))


@pytest.mark.parametrize("target", TARGETS)
def test_a_window_of_one_element_is_copied_as_long_as_its_array(target: str) -> None:
    """Once its loop has no iterations to walk, an index is an axis whose extent is that of the copy."""
    rows = np.arange(30.0).reshape(6, 5)
    for text in (">(n+t:1)(2u+1)~nu || 0 n u t", ">(n+t:1)(2u+1)~nu | n:4 | n 0 n' u t"):
        np.testing.assert_array_equal(i(text)(rows, target=target), rows[:, 1::2])
        np.testing.assert_array_equal(i(text).dynamic()(rows, target=target), rows[:, 1::2])


@pytest.mark.parametrize("target", TARGETS)
def test_empty_windows_and_dimensions(target: str) -> None:
    f = i("(y+u)*u~yu >> +yu~y")
    assert f(np.ones(0, np.float32), np.ones(1, np.float32), target=target).shape == (0,)
    np.testing.assert_array_equal(f(random(4), np.ones(0, np.float32), target=target), np.zeros(5))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stride", ["", "2"])
@pytest.mark.parametrize("extent", [0, 1, 2])
def test_a_window_fits_at_least_once_at_every_stride(stride: str, extent: int, target: str) -> None:
    x = np.ones(extent, np.float32)
    for f, more in ((i(f"({stride}k+l:3)~kl"), []), (i(f"({stride}k+l)*l~kl"), [random(3)])):
        with pytest.raises(Error) as caught:
            f(x, *more, target=target)
        assert caught.value.code == "E0572"
        assert f"3 positions does not fit into an extent of {extent}" in caught.value.message
        assert f(np.ones(3, np.float32), *more, target=target).shape == (1, 3)


@pytest.mark.parametrize(
    ("text", "shapes", "code"),
    [
        ("5j~j", [(3, 4)], "E0574"),
        ("(y+u)~yu", [(4,)], "E0570"),
        ("(-y+u:2)~yu", [(4,)], "E0571"),
        ("(y+u)*u~yu", [(4,), (9,)], "E0572"),
        ("(I & (+(i+u:2)j~ij)) >> ij+ij~ij", [(3, 4)], "E0573"),
        (">(2i+u:3)(2j+u:2)~ij", [(8, 8)], "E0207"),
    ],
)
def test_refusals(text: str, shapes: list[tuple[int, ...]], code: str) -> None:
    with pytest.raises(Error) as caught:
        i(text).shapes(*shapes)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "text", ["(I & I) >> (3)i*j(k+j:3)~ijk", "(I & I) >> (-i:4+3)(1)*j(j+i:4)[j<1]~ij >> (9)i~i"]
)
def test_an_index_outside_is_refused_before_arrays_are_known(text: str) -> None:
    with pytest.raises(Error) as caught:
        infer(graph_of(text_component(text), "f"))
    assert caught.value.code == "E0574"


def test_an_index_that_stays_inside_is_not_guarded() -> None:
    def text(program: str) -> str:
        return str(lower(infer(graph_of(text_component(program), "f"))).kernels[0].body)

    assert "Select" not in text("(2y+u)*u~yu >> +yu~y")
    assert "Select" in text("(2y+u-1)*u~yu >> +yu~y")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(i:4)~i", [1, 2, 3, 0]),
        ("(i:2)~i", [1, 2]),
        ("(i+0)~i", [1, 2, 3]),
        ("(i:4+1)~i", [2, 3, 0, 0]),
        ("(2i:4)~i", [1, 3, 0, 0]),
        ("+(i:2)~.", 3),
        (">(i:5)~.", 3),
    ],
)
def test_a_group_of_one_axis_is_a_window(text: str, expected: Any, target: str) -> None:
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(i(text)(x, target=target), expected)


def test_a_shorter_axis_meets_a_group() -> None:
    x, y = np.array([1, 2], np.float32), np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(i("i+(i+0)~i")(x, y), [2, 4])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(2i+1)~i", [1, 3, 5, 7]),
        ("(3i+1)~i", [1, 4, 7]),
        ("(i+3)~i", [3, 4, 5, 6, 7]),
        ("(i+8)~i", []),
        ("+(2i+1)~.", 16),
        ("(i:3-1)~i", [0, 0, 1]),
    ],
)
def test_an_offset_of_one_axis_is_a_shift(text: str, expected: Any, target: str) -> None:
    np.testing.assert_array_equal(i(text)(np.arange(8, dtype=np.float32), target=target), expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("text", "one", "other"),
    [("(2i+1)*(2i)~i", 8, 9), ("(i+u:3)+(i+u)~iu", 9, 8), ("(i+u:3)+(i+v:2)~iuv", 9, 9)],
)
def test_two_groups_give_an_axis_one_extent(text: str, one: int, other: int, target: str) -> None:
    """Whatever the order of the operands, at compile time and at run time."""
    left, rest = text.split(")", 1)[0] + ")", text.partition("~")[2]
    operator, right = text[len(left)], text[len(left) + 1 :].partition("~")[0]
    arrays = np.ones(one, np.float32), np.ones(other, np.float32)
    for turned, given in ((text, arrays), (f"{right}{operator}{left}~{rest}", arrays[::-1])):
        with pytest.raises(Error) as failure:
            i(turned)(*given, target=target)
        assert failure.value.code == "E0573"
        with pytest.raises(Error) as failure:
            i(turned).source("c", *(array.shape for array in given))
        assert failure.value.code == "E0573"
