"""Indices of arrays: numbers, ranges, arrays of places and conditions in the place of axes.

x[0, 1:]     0(1+j:2)~j x
x[ids]       u@ij~uj ids x
x[x > 2]     the places where it holds, computed at once, and these looked up
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.dtype import INTEGERS
from ilang.icli.array_functions import Array, MismatchError, NoSpellingError, axes_of, reshaped
from ilang.icli.array_functions import looked_up as look_up
from ilang.icli.filled import is_filled
from ilang.icli.python_nodes import (
    is_number,
    is_whole,
    no_place,
    places_listed,
    sliced,
    whole_number,
    whole_numbers,
)
from ilang.icli.shapes import shape_text

if TYPE_CHECKING:
    from ilang.icli.foreign import NamedSteps

LOOKED_UP = (
    ast.Name, ast.List, ast.Call, ast.Subscript, ast.BinOp, ast.Compare, ast.UnaryOp, ast.BoolOp,
)  # fmt: skip
"""Parts of an expression that may be the places of elements that are looked up."""


def where_it_holds(steps: NamedSteps, array: Array, holds: Array, axis: int) -> Array:
    """Elements of an array along axes where a condition of these holds, which is computed at once."""
    place = len(holds.shape)
    if array.shape[axis : axis + place] != holds.shape or not place:
        message = f"the condition {holds.named()} does not fit {array.named()} at axis {axis}"
        raise MismatchError(
            message, "a condition has the sizes of the axes whose elements it chooses"
        )
    if place > 1:
        before, after = array.shape[:axis], array.shape[axis + place :]
        size = math.prod(holds.shape)
        array = steps.step(reshaped(array, [*before, size, *after]), array)
        holds = steps.step(reshaped(holds, []), holds)
    return looked_up(steps, array, steps.programs.places(holds, steps.steps), axis)


def indexed(steps: NamedSteps, array: Array, index: ast.expr) -> Array:
    """Numbers and ranges in the place of axes: one expression for each."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    rank = len(array.shape)
    new = [part for part in parts if ast.unparse(part) in ("None", "np.newaxis")]
    dots = [n for n, part in enumerate(parts) if ast.unparse(part) == "..."]
    if dots:
        whole = [ast.Slice()] * (rank - len(parts) + len(new) + 1)
        parts = [*parts[: dots[0]], *whole, *parts[dots[0] + 1 :]]
    if new:
        kept = [part for part in parts if part not in new]
        result = indexed(steps, array, ast.Tuple(kept)) if kept else array
        left = [part for part in parts if part in new or whole_number(part) is None]
        return steps.widened(result, [n for n, part in enumerate(left) if part in new])
    looked = [
        n for n, each in enumerate(parts) if isinstance(each, LOOKED_UP) and not is_number(each)
    ]
    if looked:
        return indexed_by_array(steps, array, parts, looked)
    if rank < len(parts):
        number = f"{rank} ax{'is' if rank == 1 else 'es'}"
        message = f"{array.named()} has {number}, and {len(parts)} indices are given"
        raise MismatchError(message, "give an index for each axis, or for the first ones")
    expressions, shape, axis = [], list(array.shape), 0
    for place, part in enumerate(parts):
        if is_whole(part):
            axis += 1
            continue
        letters = axes_of(Array("", tuple(shape)))
        before, after = letters[:axis], letters[axis + 1 :]
        if isinstance(part, ast.Slice):
            walk, shape[axis] = sliced(part, letters[axis], shape[axis])
            expressions.append(f"{before}({walk}){after}~{letters}")
            axis += 1
            continue
        (at,) = whole_numbers([part])
        if not -shape[axis] <= at < shape[axis]:
            raise no_place(array, place, at)
        expressions.append(f"{before}{at % shape[axis]}{after}~{before + after or '.'}")
        del shape[axis]
    if not expressions:
        return array
    return steps.step(" >> ".join(expressions), array)


def indexed_by_array(
    steps: NamedSteps, array: Array, parts: Sequence[ast.expr], looked: Sequence[int]
) -> Array:
    """An array of places, or a condition, in the place of one axis, and numbers and ranges in that of others.

    Raises: NoSpellingError (NumPy moves the axis to the front).
    """
    if 1 < len(looked):
        return indexed_by_arrays(steps, array, parts, looked)
    (place,) = looked
    fixed = [n for n, each in enumerate(parts) if not isinstance(each, ast.Slice)]
    if place and len(fixed) <= fixed[-1] - fixed[0]:
        raise NoSpellingError
    rest = [ast.Slice() if n == place else part for n, part in enumerate(parts)]
    axis = sum(isinstance(each, ast.Slice) for each in parts[:place])
    return taken(steps, indexed(steps, array, ast.Tuple([*rest])), parts[place], axis)


def indexed_by_arrays(
    steps: NamedSteps, array: Array, parts: Sequence[ast.expr], looked: Sequence[int]
) -> Array:
    """The elements at pairs of places, ``x[rows, columns]``: places of neighboring axes, which are made one axis.

    Raises: MismatchError (there are other arrays, or other indices beside them).
    """
    first, count = looked[0], len(looked)
    one, other = (ast.unparse(parts[n]) for n in looked[:2])
    are_whole = all(is_whole(part) for n, part in enumerate(parts) if n not in looked)
    refused = MismatchError(
        f"`{one}` and `{other}` are both arrays of places",
        f"one after the other: `{array.text}[{one}][:, {other}]` has all pairs",
        "E0821",
    )
    if (
        [*looked] != [*range(first, first + count)]
        or not are_whole
        or len(array.shape) < len(parts)
    ):
        raise refused
    places = [_places(steps, array, parts[n], n) for n in looked]
    if any(each.dtype == "bool" or not each.shape for each in places):
        raise refused
    for at, n in enumerate(looked):
        if not isinstance(
            parts[n], ast.List
        ):  # a place beyond one axis would be one of another row
            positions = Array(f"i64:arange({array.shape[n]})", (array.shape[n],), "i64")
            places[at] = looked_up(steps, positions, places[at], 0)
    place = places[0]
    for n, each in zip(looked[1:], places[1:], strict=True):
        axes = axes_of(place)
        place = steps.step(f"(I | {array.shape[n]}) >> {axes}*.~{axes}", place)
        try:
            place = steps.between("+", place, each)
        except MismatchError:
            counts = " and ".join(shape_text(each.shape) for each in places)
            message = f"`{one}` and `{other}` have other numbers of places, {counts}"
            raise MismatchError(message, "places are taken in pairs", "E0505") from None
    before, merged = array.shape[:first], array.shape[first : first + count]
    whole = (*before, math.prod(merged), *array.shape[first + count :])
    return looked_up(steps, steps.step(reshaped(array, whole), array), place, first)


def taken(steps: NamedSteps, array: Array, chosen: ast.expr, axis: int) -> Array:
    """The elements at places along an axis."""
    at = whole_number(chosen)
    if at is not None:
        return indexed(steps, array, ast.Tuple([*[ast.Slice()] * axis, chosen]))
    places = _places(steps, array, chosen, axis)
    if places.dtype == "bool":
        return where_it_holds(steps, array, places, axis)
    return looked_up(steps, array, places, axis)


def _places(steps: NamedSteps, array: Array, chosen: ast.expr, axis: int) -> Array:
    """The places along an axis that a list or an array names, counted from 0 on, or a condition.

    Raises: MismatchError (they are no integers).
    """
    if isinstance(chosen, ast.List | ast.Tuple) and not _of_truths(chosen):
        return steps.step("i64", places_listed(ast.List(chosen.elts), array, axis))
    places = steps.array(chosen)
    if is_filled(places.text) and "." not in places.text:
        places = steps.step("i64", places)
    if places.dtype not in (*INTEGERS, "bool"):
        message = f"{places.named()} is of {places.dtype}, and indices are integers"
        raise MismatchError(message, f"`i64({places.text})` is {places.text} as integers")
    if places.dtype != "bool" and steps.programs.may_be_negative(places):
        size = steps.step("i64", Array(str(array.shape[axis]), ()))
        places = steps.kernel("from_start", places, size)
    return places


def looked_up(steps: NamedSteps, array: Array, places: Array, axis: int) -> Array:
    """The elements at places along an axis, which are integers from 0 on."""
    return steps.step(look_up(array, places, axis), places, array)


def _of_truths(node: ast.List | ast.Tuple) -> bool:
    """Whether a list is one of conditions that are written out."""
    return any(
        isinstance(each, ast.Constant) and isinstance(each.value, bool) for each in node.elts
    )
