"""What a call of ``einsum`` in NumPy's spelling does beside computing: views, layouts, casts, outputs, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ilang
from ilang import DataTypeError, Error, einsum

Array = npt.NDArray[Any]


def evaluated(*given: Any, **asked: Any) -> Any:
    return einsum(*given, target="numpy", **asked)


# views


ARRANGED = [
    ("...", (2, 3)), ("ij", (2, 3)), ("ji", (2, 3)), ("ijk->jik", (2, 3, 4)), ("ii->i", (3, 3)), ("iii->i", (3, 3, 3)),
    ("...ii->...i", (2, 3, 3)), ("i...i->i...", (3, 2, 3)), ("iji->ji", (3, 2, 3)), ("abab->ba", (2, 3, 2, 3)),
    ("aabb->ba", (2, 2, 3, 3)), ("abaa->ab", (2, 1, 2, 2)), ("...->...", (0, 2)), ("ii->i", (0, 0)),
    ("baab->ab", (3, 2, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shape"), ARRANGED)
@pytest.mark.parametrize(
    "given",
    [
        lambda array: array,
        lambda array: array[::-1] if array.ndim else array,
        lambda array: array.astype(np.int8),
    ],
)
def test_what_is_arranged_is_a_view(
    text: str, shape: tuple[int, ...], given: Callable[[Array], Array]
) -> None:
    array = given(np.random.default_rng(1).integers(0, 99, shape).astype(np.float32))
    for _ in range(2):  # a later call takes another way
        view, expected = einsum(text, array), np.einsum(text, array)
        assert view.strides == expected.strides
        assert view.base is expected.base
        assert view.flags.writeable
        np.testing.assert_array_equal(view, expected)


def test_a_view_is_written_through_where_the_array_is() -> None:
    array = np.zeros((3, 3))
    einsum("ii->i", array)[...] = 1
    np.testing.assert_array_equal(array, np.eye(3))
    array.flags.writeable = False
    for text in ("ii->i", "ij->ji"):
        assert not einsum(text, array).flags.writeable


@pytest.mark.parametrize("asked", [{"order": "C"}, {"order": "F"}, {"dtype": "f8"}])
def test_what_is_computed_is_no_view(asked: dict[str, Any]) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = evaluated("ij->ij", array, **asked)
    assert not np.shares_memory(result, array)
    np.testing.assert_array_equal(result, array)


# numbers, layouts, types


def test_results_of_rank_0_are_numbers() -> None:
    array = np.arange(4.0)
    for text, given in (
        ("i->", (array,)),
        ("i,i", (array, array)),
        ("", (array[2],)),
        (",", (3, 4)),
    ):
        for _ in range(2):
            result, expected = evaluated(text, *given), np.einsum(text, *given)
            assert type(result) is type(expected)
            assert result == expected


@pytest.mark.parametrize(
    ("order", "fortran", "is_fortran"),
    [
        ("C", True, False),
        ("f", False, True),
        ("A", True, True),
        ("a", False, False),
        (None, True, False),
    ],
)
def test_layouts(order: str | None, fortran: bool, is_fortran: bool) -> None:
    layout: Any = "F" if fortran else "C"
    x, y = (np.ones(shape, order=layout) for shape in ((2, 3, 5), (4, 3)))
    result = evaluated("...ft,mf->...mt", x, y, order=order)
    assert (result.flags.f_contiguous, result.flags.c_contiguous) == (is_fortran, not is_fortran)
    np.testing.assert_array_equal(result, np.einsum("...ft,mf->...mt", x, y))


def test_casts() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    narrow = evaluated("ij,jk", x, y, dtype="f4", casting="same_kind")
    assert narrow.dtype == np.float32
    whole = np.empty((2, 4), np.int8)
    assert evaluated("ij,jk", x, y, out=whole, casting="unsafe") is whole
    np.testing.assert_array_equal(whole, x @ y)
    for asked, code in (
        ({"dtype": "f4"}, "E0749"),
        ({"out": np.empty((2, 4), np.float32)}, "E0708"),
        ({"dtype": "f8", "out": np.empty((2, 4), np.int64), "casting": "same_kind"}, "E0708"),
    ):
        with pytest.raises(TypeError) as caught:
            evaluated("ij,jk", x, y, **asked)
        assert isinstance(caught.value, DataTypeError)
        assert caught.value.code == code


@pytest.mark.parametrize("value", [None, object(), {}, "ij"])
@pytest.mark.parametrize("text", ["ij->", "ij=>i"])
def test_what_is_no_array_is_so_called(text: str, value: Any) -> None:
    with pytest.raises(DataTypeError, match=f"in0 is of type {type(value).__name__}, not an array"):
        einsum(text, value)


def test_a_wider_output_is_computed_in_its_type() -> None:
    large = np.full(4, 2**31 - 1, np.int32)
    out = np.array(0)
    evaluated("i->", large, out=out)
    assert out == 4 * (2**31 - 1)


@pytest.mark.parametrize("dtype", [np.uint64, np.longdouble, np.complex64, object, "U3"])
def test_specifications_take_the_types_that_expressions_do(dtype: Any) -> None:
    x = np.ones((2, 3)).astype(dtype)
    helps = []
    for component in (ilang.i("+ij~i"), ilang.i('einsum("ij=>i")')):
        with pytest.raises(DataTypeError) as caught:
            component(x)
        helps.append(caught.value.help)
    with pytest.raises(DataTypeError) as caught:
        einsum("ij=>i", x)
    assert caught.value.code == "E0703"
    assert {caught.value.help} == {*helps}
    swapped = np.arange(6, dtype=np.int32).reshape(2, 3).astype(">i4")
    np.testing.assert_array_equal(einsum("ij=>i", swapped), swapped.sum(1))


def test_truth_values() -> None:
    small = np.array([0.5, 0.0, np.nan])
    result = evaluated("i,i->i", small, small, dtype=bool, casting="unsafe")
    np.testing.assert_array_equal(result, [True, False, True])
    out = np.zeros(2, bool)
    evaluated("ij->i", np.array([[True, True], [False, False]]), out=out)
    np.testing.assert_array_equal(out, [True, False])


def test_objects_are_numbers_where_a_type_says_so() -> None:
    things = np.array([1, 2.5, True], dtype=object)
    assert evaluated("i->", things, dtype="f8", casting="unsafe") == 4.5
    with pytest.raises(DataTypeError, match="E0702"):
        evaluated("i->", np.array(["x", None], object), dtype="f8", casting="unsafe")
    with pytest.raises(DataTypeError, match="E0703"):
        evaluated("i->", things)


# outputs


@pytest.mark.parametrize("swapped", [False, True])
def test_an_output_may_overlap_an_operand(swapped: bool) -> None:
    x, y = np.arange(9.0).reshape(3, 3), np.arange(9.0, 18).reshape(3, 3)
    expected = x @ y
    out = x.T if swapped else y
    assert evaluated("ij,jk->ik", x, y, out=out) is out
    np.testing.assert_array_equal(out, expected)


def test_outputs_that_nothing_is_written_to() -> None:
    x = np.ones((2, 3))
    fixed = np.empty(2)
    fixed.flags.writeable = False
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for out, code, kind in (
        ("test", "E0706", TypeError),
        ((np.empty(2),), "E0706", TypeError),
        (fixed, "E0710", ValueError),
        (masked, "E0704", ValueError),
        (np.empty((2, 1)), "E0707", ValueError),
    ):
        with pytest.raises(kind) as caught:
            evaluated("ij->i", x, out=out)
        assert isinstance(caught.value, Error)
        assert caught.value.code == code


# errors


@pytest.mark.parametrize(
    ("given", "asked", "kind", "code"),
    [
        (("ij,j?", np.ones((2, 2)), np.ones(2)), {}, ValueError, "E0140"),
        (("ij->ii", np.ones((2, 2))), {}, ValueError, "E0152"),
        (("i", np.ones((2, 2))), {}, ValueError, "E0503"),
        (("ii", np.ones((2, 3))), {}, ValueError, "E0505"),
        (("i,i", np.ones(2)), {}, ValueError, "E0150"),
        (("i", np.ones(2)), {"order": "W"}, ValueError, "E0748"),
        (("i", np.ones(2)), {"casting": "same_value"}, ValueError, "E0748"),
        (("i", np.ones(2)), {"dtype": "no_type"}, TypeError, "E0703"),
        (("i", np.ones(2)), {"dtype": "c16"}, TypeError, "E0703"),
        (("i,i", np.ones(2), ["a", "b"]), {}, TypeError, "E0703"),
        (("ij->ji", [["a", "b"]]), {}, TypeError, "E0703"),
        (("i,i", np.ones(2), np.array(["2020"] * 2, "M8")), {}, TypeError, "E0703"),
        ((0, 0), {}, TypeError, "E0716"),
        ((None, None, None), {}, TypeError, "E0716"),
        ((np.ones(2), ["a"]), {}, TypeError, "E0716"),
        ((np.ones(2), [0.5]), {}, TypeError, "E0716"),
        ((np.ones(2), [52]), {}, ValueError, "E0716"),
        ((np.ones(2), [-1]), {}, ValueError, "E0716"),
        (("i => i", np.ones(2)), {"order": "F"}, ValueError, "E0748"),
        (("i => i", np.ones(2)), {"dtype": "f4"}, ValueError, "E0748"),
    ],
)
def test_errors_are_of_the_class_that_numpys_are(
    given: tuple[Any, ...], asked: dict[str, Any], kind: type[Exception], code: str
) -> None:
    with pytest.raises(kind) as caught:
        evaluated(*given, **asked)
    assert isinstance(caught.value, Error)
    assert caught.value.code == code


def test_masks_are_not_dropped() -> None:
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for text in ("i->", "i => 0"):
        with pytest.raises(Error) as caught:
            evaluated(text, masked)
        assert caught.value.code == "E0704"


def test_classes_of_errors() -> None:
    for name in ilang.__all__:
        kind = getattr(ilang, name)
        if isinstance(kind, type) and issubclass(kind, Error):
            ours = kind in (Error, ilang.ToolError, ilang.InternalError, ilang.CommandError)
            assert ours != issubclass(kind, ValueError | TypeError)


def test_a_specification_after_the_arrays_is_told_where_it_belongs() -> None:
    x = np.ones((2, 2))
    with pytest.raises(DataTypeError) as caught:
        einsum(x, x, "i j, j k -> i k")
    assert caught.value.code == "E0716"
    assert "ilang.einops.einsum" in (caught.value.help or "")
