"""Components of the library ``std`` along the axes of a call, for ``ilang/lib.py``; each is kept for calls like it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from operator import index
from typing import Any

from ilang.codegen.call.arguments import shape_of
from ilang.codegen.call.named_arrays import OPTIONS
from ilang.codegen.components import einx
from ilang.codegen.components.component import Component, from_text
from ilang.core.diagnostic import DataError, ElementTypeError
from ilang.core.library.std import AXES, NUMBERS, PLAIN, text_of

PIECES = {**dict.fromkeys(PLAIN, ()), **AXES}
"""The functions, and the axis that each goes along by default; () where it goes along none."""
TRUTHS = {"max": 'max(x) = einx.any("[...]")', "min": 'min(x) = einx.all("[...]")'}
"""The extremes of conditions, which are conditions."""
LETTERS = "abcdefghijklmnopqrstuvwxy"


@cache
def piece(text: str) -> Component:
    """The component of a definition, along its own axes; messages call it as a call does: ``lib.matmul``."""
    return from_text(text, f"lib.{text.partition('(')[0]}")


@cache
def along(text: str, rank: int, axes: tuple[int, ...], keeps: bool) -> Component:
    """The component of a text along axes of an array of a rank; with ``keeps``, reduced axes stay with extent 1."""
    given = [f"[a{n}]" if n in axes else f"a{n}" for n in range(rank)]
    reduces = not piece(text).shapes((1,))[0]
    left = [word for n, word in enumerate(given) if not (reduces and n in axes)]
    left = (
        ["1" if reduces and n in axes else word for n, word in enumerate(given)] if keeps else left
    )
    mapping = f"{' '.join(given)} -> {' '.join(left)}"
    mapped: Component = einx.component(("vmap", piece(text)), mapping, {})
    return mapped


@cache
def one_hot(rank: int, classes: int) -> Component:
    """The component that gives rows of so many numbers, 1 at the numbers of an array of a rank.

    A class is looked up among the numbers that there are, so that one that there is not is an index out of range.
    """
    letters = LETTERS[:rank]
    looked_up = f"(I | @(z:{classes})~z) >> {letters or '.'}@z~{letters or '.'}"
    head = f"one_hot(x[{','.join(letters)}])" if rank else "one_hot(x)"
    return from_text(
        f"{head} = {looked_up} >> {letters or '.'}==@(z:{classes})~{letters}z >> f32", "lib.one_hot"
    )


@cache
def product(left: int, right: int) -> Component:
    """The product of arrays of two ranks, as that of NumPy: a vector is a row on the left and a column on the right.

    Axes before the last two are those of both arrays, aligned at the last.
    """
    batch = LETTERS.translate(dict.fromkeys(map(ord, "ijk")))[: max(left, right, 2) - 2]
    rows, columns = ("i" * (1 < left), "k" * (1 < right))
    first, second = (batch[len(batch) - max(rank - 2, 0) :] for rank in (left, right))
    subscripts = f"{first}{rows}j,{second}j{columns}->{batch}{rows}{columns}"
    return piece(f'matmul(x, y) = einsum("{subscripts}")')


def called(name: str, arrays: tuple[Any, ...], axis: Any, options: Mapping[str, Any]) -> Any:
    """A function on arrays, along an axis, several, or those of the component.

    Raises:
        Error: DataError E0777 (axes), and what a call of a component refuses.
    """
    try:
        return _called(name, arrays, axis, options)
    except ElementTypeError as error:
        if error.code != "E0602":
            raise
        raise error.with_help(f"convert it: lib.{name}(x.astype(np.float32))") from None


def _called(name: str, arrays: tuple[Any, ...], axis: Any, options: Mapping[str, Any]) -> Any:
    known = NUMBERS.get(name, {})
    taken = 2 if name in ("matmul", "conv2d") else 1
    if name not in AXES and known and len(arrays) > taken and isinstance(arrays[taken], int):
        key = next(iter(known))
        hint = f"lib.{name}({', '.join('xw'[:taken])}, {key}={arrays[taken]})"
        raise DataError("E0777", f"the {key} of {name} is given by its name", help=hint)
    by_order = name in AXES and len(arrays) == 2 and isinstance(arrays[1], int)
    if by_order or not options.keys().isdisjoint(("dim", "keepdim")):
        number = options.get("dim", arrays[1] if by_order else -1)
        more = ", keepdims=True" * ("keepdim" in options)
        message = f"the axis of {name} is given by its name, axis"
        raise DataError("E0777", message, help=f"lib.{name}(x, axis={number}{more})")
    keeps = options.get("keepdims", False)
    rest = {key: value for key, value in options.items() if key != "keepdims"}
    if name == "one_hot":
        classes = _whole(axis, "the number of classes", "lib.one_hot(x, 10)")
        if classes < 1:
            raise DataError("E0777", f"there are no {classes} classes", help="lib.one_hot(x, 10)")
        try:
            return one_hot(len(shape_of("x", arrays[0])), classes)(*arrays, **rest)
        except DataError as error:
            raise (
                error.with_help(f"classes are 0 to {classes - 1}")
                if error.code == "E0746"
                else error
            ) from None
    takes = (*("axis", "keepdims") * (name in AXES), *known, *OPTIONS)
    if unknown := [key for key in rest if key not in takes]:
        raise DataError(
            "E0747", f"{name} takes no {unknown[0]}", help=f"by name it takes {', '.join(takes)}"
        )
    if not isinstance(keeps, bool):
        raise DataError(
            "E0777",
            f"keepdims is True or False, not {keeps!r}",
            help=f"lib.{name}(x, keepdims=True)",
        )
    numbers = {key: _number(name, key, rest.pop(key)) for key in known if key in rest}
    if "size" in numbers:  # windows lie side by side, where nothing else is said
        numbers.setdefault("stride", numbers["size"])
    text = text_of(name, numbers)
    if name in TRUTHS and str(getattr(arrays[0] if arrays else None, "dtype", "")).endswith("bool"):
        text = TRUTHS[name]
    if axis == PIECES[name] and not keeps:
        return _plain(name, text, arrays)(*arrays, **rest)
    if name not in AXES or len(arrays) != 1:
        message = f"{name} goes along no axis of a call"
        raise DataError("E0777", message, help=f"leave the axis out: lib.{name}(x)")
    rank = len(shape_of("x", arrays[0]))
    return along(text, rank, _axes(name, axis, rank), bool(keeps))(*arrays, **rest)


def _number(name: str, key: str, value: Any) -> float:
    """A number of a call. Raises: DataError E0777 (it is none, or too small)."""
    if key == "eps":
        if isinstance(value, float | int) and 0 <= value:
            return float(value)
        message = f"eps is a number from 0 on, not {value!r}"
        raise DataError("E0777", message, help=f"lib.{name}(x, eps=1e-5)")
    number = _whole(value, key, f"lib.{name}(x, {key}=1)")
    least = int(key not in ("ddof", "padding"))
    if number < least:
        message = f"{key} is a whole number from {least} on, not {number}"
        raise DataError("E0777", message, help=f"lib.{name}(x, {key}=1)")
    return number


def _plain(name: str, text: str, arrays: tuple[Any, ...]) -> Component:
    """The component of a name and its text along its own axes, for arrays of any ranks that it takes in NumPy."""
    if name == "matmul" and len(arrays) == 2:
        left, right = (len(shape_of(each, array)) for each, array in zip("xy", arrays, strict=True))
        if left and right and (left != right or left == 1):
            return product(left, right)
    return piece(text)


def _axes(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    """The axes that a call means, from the first, in order."""
    given = range(rank) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    example = f"lib.{name}(x, axis=-1)"
    numbers = [_whole(each, "an axis", example) for each in given]
    for number in numbers:
        if not -rank <= number < rank:
            message = f"there is no axis {number}: the array has {rank}"
            raise DataError("E0777", message, help=f"axes are from {-rank} to {rank - 1}")
    axes = tuple(sorted({number % rank for number in numbers}))
    if len(axes) < len(numbers):
        raise DataError("E0777", f"one axis is named twice in {axis}", help="name each axis once")
    if AXES[name] is not None and len(axes) != 1:
        message = f"{name} goes along one axis, and {axis} is not one"
        raise DataError("E0777", message, help=example)
    return axes


def _whole(value: Any, subject: str, example: str) -> int:
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise DataError("E0777", f"{subject} is a whole number, not {value!r}", help=example)
