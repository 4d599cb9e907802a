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
        at = _position(part)
        if not -shape[axis] <= at < shape[axis]:
            raise no_place(array, place, at)
        expressions.append(f"{before}{at % shape[axis]}{after}~{before + after or '.'}")
        del shape[axis]
    if not expressions:
        return array
    return steps.step(" >> ".join(expressions), array)


def _position(part: ast.expr) -> int:
    """The place that a number in an index is. Raises: MismatchError (it has a fraction), NoSpellingError."""
    if is_number(part) and whole_number(part) is None:
        message = f"`{ast.unparse(part)}` is no index"
        raise MismatchError(message, "indices are integers, the first is 0", "E0821")
    (at,) = whole_numbers([part])
    return at


def indexed_by_array(
    steps: NamedSteps, array: Array, parts: Sequence[ast.expr], looked: Sequence[int]
) -> Array:
    """An array of places, or a condition, in the place of one axis, and numbers and ranges in that of others.

    Raises: MismatchError (there are several), NoSpellingError (NumPy moves the axis to the front).
    """
    if 1 < len(looked):
        one, other = (ast.unparse(parts[n]) for n in looked[:2])
        message = f"`{one}` and `{other}` are both arrays of places"
        hint = f"one after the other: `{array.text}[{one}][:, {other}]` has all pairs"
        raise MismatchError(message, hint, "E0821")
    (place,) = looked
    fixed = [n for n, each in enumerate(parts) if not isinstance(each, ast.Slice)]
    if place and len(fixed) <= fixed[-1] - fixed[0]:
        raise NoSpellingError
    rest = [ast.Slice() if n == place else part for n, part in enumerate(parts)]
    axis = sum(isinstance(each, ast.Slice) for each in parts[:place])
    return taken(steps, indexed(steps, array, ast.Tuple([*rest])), parts[place], axis)


def taken(steps: NamedSteps, array: Array, chosen: ast.expr, axis: int) -> Array:
    """The elements at places along an axis."""
    at = whole_number(chosen)
    if at is not None:
        return indexed(steps, array, ast.Tuple([*[ast.Slice()] * axis, chosen]))
    if isinstance(chosen, ast.List | ast.Tuple) and not _of_truths(chosen):
        places = steps.step("i64", places_listed(ast.List(chosen.elts), array, axis))
        return looked_up(steps, array, places, axis)
    places = steps.array(chosen)
    if is_filled(places.text) and "." not in places.text:
        places = steps.step("i64", places)
    if places.dtype == "bool":
        return where_it_holds(steps, array, places, axis)
    if places.dtype not in INTEGERS:
        message = f"{places.named()} is of {places.dtype}, and indices are integers"
        raise MismatchError(message, f"`i64({places.text})` is {places.text} as integers")
    if steps.programs.may_be_negative(places):
        size = steps.step("i64", Array(str(array.shape[axis]), ()))
        places = steps.kernel("from_start", places, size)
    return looked_up(steps, array, places, axis)


def looked_up(steps: NamedSteps, array: Array, places: Array, axis: int) -> Array:
    """The elements at places along an axis, which are integers from 0 on."""
    return steps.step(look_up(array, places, axis), places, array)


def _of_truths(node: ast.List | ast.Tuple) -> bool:
    """Whether a list is one of conditions that are written out."""
    return any(
        isinstance(each, ast.Constant) and isinstance(each.value, bool) for each in node.elts
    )
