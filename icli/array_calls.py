"""Calls of functions that array libraries have, as steps that are programs: ``np.sum(x, axis=0)``, ``x.argmax()``.

A call means what NumPy means by it, and ``torch.std`` what PyTorch does; ``array_functions.py`` has the programs.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import DataError
from ilang.icli.array_functions import (
    ALIASES,
    ALONG,
    BINARY,
    CONDITIONS,
    COUNTS,
    CUMULATIVE,
    EXTREMES,
    FLIPPED,
    JOINED,
    JOINED_ALONG,
    PLACES,
    PRODUCTS,
    REDUCERS,
    SHAPED,
    SHOWN,
    SPREAD,
    UNARY,
    Array,
    NoSpellingError,
    along,
    axes_of,
    combined,
    cumulative,
    flipped,
    joined,
    place_of,
    places_of,
    require_ranks,
    reshaped,
)
from ilang.icli.filled import MAKERS, filled_shape, is_filled
from ilang.icli.python_nodes import called, first_of, whole_numbers

if TYPE_CHECKING:
    from ilang.icli.foreign import NamedSteps

AXES = ("axis", "dim", "dims")
COUNTED = ("sum", "prod", "mean")
"""Reductions of conditions to numbers: true counts as 1."""
CORRECTIONS = ("ddof", "correction")
"""Keywords of the number that is taken off the number of elements in a variance."""


class ArrayCall:
    """A call: its function, its arguments, and what it says of axes."""

    def __init__(self, steps: NamedSteps, node: ast.Call) -> None:
        """A call after some steps. Raises: NoSpellingError."""
        self.steps, self.node = steps, node
        name, self.arguments = called(node, steps.arrays)
        self.name = ALIASES.get(name, name)
        self.fewer, keywords = _correction(self.name, node)
        self.is_extreme = (
            self.name in EXTREMES and len(self.arguments) == 2 and isinstance(node.func, ast.Name)
        )
        self.axes: Sequence[int] | None = None
        self.keeps = False
        if not self.is_extreme:
            self.axes, self.keeps = _axes_named(self.name, keywords, self.arguments)

    def array(self) -> Array:
        """The result. Raises: NoSpellingError, MismatchError."""
        if self.name == "load":
            return _file(self.node)
        if self.name in MAKERS:
            return _filled(MAKERS[self.name], self.arguments)
        if len(self.arguments) == 2 and (self.is_extreme or self.name in (*BINARY, *PRODUCTS)):
            return self.between()
        takes_axes = self.name in (*REDUCERS, "var", "std", *FLIPPED, "flip")
        if not takes_axes and (self.keeps or 1 < len(self.axes or ())):
            raise NoSpellingError
        for names, method in FAMILIES:
            if self.name in names:
                return method(self)
        return self.of_elements()

    @property
    def axis(self) -> int | None:
        """The one axis that is given."""
        return self.axes[0] if self.axes else None

    def whole(self) -> Array:
        """The array that a function of one array has."""
        return self.steps.array(first_of(self.arguments))

    def flat(self, array: Array) -> Array:
        """The elements of an array in order, where no axis is given."""
        if self.axes or len(array.shape) == 1:
            return array
        return self.steps.step(reshaped(array, []), array)

    def between(self) -> Array:
        """A function of two arrays: of their elements, or a product."""
        if self.is_extreme or self.name in BINARY:
            signs = EXTREMES if self.is_extreme else BINARY
            return self.steps.binary(signs[self.name], *self.arguments)
        one, other = map(self.steps.array, self.arguments)
        if self.name == "dot" and 2 < max(len(one.shape), len(other.shape)):
            raise NoSpellingError
        return self.steps.product(one, other)

    def reduced(self) -> Array:
        """A reduction, whose axes may stay with size 1."""
        whole = self.whole()
        result = self.reduction(self.name, whole, self.fewer)
        return self.steps.widened(result, places_of(whole, self.axes)) if self.keeps else result

    def reduction(self, name: str, array: Array, fewer: int = 0) -> Array:
        """All elements, or those along some axes, in one: their sum, their mean, how far they are apart.

        A mean divides by their number less ``fewer``, of squares in ``var`` and ``std``.
        """
        axes, rank = axes_of(array), len(array.shape)
        dropped = places_of(array, self.axes)
        if not dropped:
            raise NoSpellingError
        step = self.steps.step
        left = [n for n in range(rank) if n not in dropped]
        kept = "".join(axes[n] for n in left) or "."
        if name in ("var", "std"):
            mean = self.reduction("mean", array)
            apart = step(f"{axes}-{kept}~{axes}", array, mean)
            square = step(f"{axes}*{axes}~{axes}", apart, apart)
            variance = self.reduction("mean", square, fewer)
            root = f"(I | 0.5) >> {kept}^.~{kept}"
            return step(root, variance) if name == "std" else variance
        if array.dtype == "bool" and REDUCERS[name] in EXTREMES.values():
            return step(f"{CONDITIONS[REDUCERS[name]]}{axes}~{kept}", array)
        if array.dtype == "bool" and name in COUNTED:
            array = step("i64", array)
        program = f"{REDUCERS[name]}{axes}~{kept}"
        if name == "mean":
            count = max(0, math.prod(array.shape[n] for n in dropped) - fewer)
            program = f"({program} | {count}) >> {kept}/.~{kept}"
        return step(program, array)

    def flipped(self) -> Array:
        """The elements in reverse order along axes, by default along all."""
        whole, axes = self.whole(), self.axes
        if self.keeps:
            raise NoSpellingError
        chosen = places_of(whole, [FLIPPED[self.name]] if self.name in FLIPPED else axes)
        return self.steps.step(flipped(whole, chosen), whole)

    def along(self) -> Array:
        """An operation along an axis, or the place of an extreme: by default of all elements in order."""
        whole = self.whole()
        if self.name in PLACES:
            whole = self.flat(whole)
        return self.steps.step(along(self.name, whole, self.axis), whole)

    def cumulative(self) -> Array:
        """The reductions up to each place of an axis, by default of all elements in order."""
        whole = self.flat(self.whole())
        axis = place_of(whole, self.axis or 0)
        return self.steps.step(cumulative(self.name, whole, axis), whole)

    def taken(self) -> Array:
        """Elements by their places along an axis."""
        if len(self.arguments) < 2:
            raise NoSpellingError
        array, places = map(self.steps.array, self.arguments[:2])
        return self.steps.taken(array, places, self.axes or whole_numbers(self.arguments[2:]))

    def count(self) -> Array:
        """A number of an array, such as its size."""
        if len(self.arguments) != 1:
            raise NoSpellingError
        return Array(str(COUNTS[self.name](self.whole().shape)), ())

    def shaped(self) -> Array:
        """The elements in another shape, or the axes in another order."""
        if len(self.arguments) == 1 and self.name not in ("flatten", "ravel", "transpose"):
            raise NoSpellingError
        whole = self.whole()
        return self.steps.step(SHAPED[self.name](whole, whole_numbers(self.arguments[1:])), whole)

    def joined(self) -> Array:
        """Arrays behind one another along an axis of theirs; ``stack`` along a new one."""
        match self.arguments:
            case [ast.List(parts) | ast.Tuple(parts)] if parts:
                arrays = [self.steps.array(each) for each in parts]
            case [first, _, *_] if not isinstance(first, ast.List | ast.Tuple):
                arrays = [self.steps.array(each) for each in self.arguments]
            case _:
                raise NoSpellingError
        result, *rest = arrays
        for each in rest:
            require_ranks(result, each)
        rank = len(result.shape)
        if self.name == "stack":
            new: int | None = place_of(Array("", (1, *result.shape)), self.axis or 0)
            place = new or 0
        elif self.name in JOINED_ALONG:
            new, place = None, place_of(result, self.axis or 0)
        elif self.axes:
            raise NoSpellingError
        else:
            new, usual = JOINED[self.name]
            new = new if rank == 1 else None
            place = min(usual, rank - (new is None))
        if new is not None:
            result, *rest = (self.steps.widened(each, [new]) for each in (result, *rest))
        for each in rest:
            result = self.steps.step(joined(result, each, place), result, each)
        return result

    def of_elements(self) -> Array:
        """A function of each element, one that gives another type, or one that the help writes out."""
        name, arguments = self.name, self.arguments
        if name in ("astype", "to", "type") and len(arguments) == 2:
            name, arguments = ast.unparse(arguments[1]).rpartition(".")[2].strip("'"), arguments[:1]
        if len(arguments) > 1 or name not in (*UNARY, *SHOWN, "sqrt"):
            operands = [self.steps.array(each) for each in arguments]
            return self.steps.step(combined(name, operands, self.axis), *operands)
        argument = first_of(arguments)
        if name == "sqrt":
            return self.steps.binary("^", argument, ast.Constant(0.5))
        array = self.steps.array(argument)
        return self.steps.unary(UNARY[name], array) if name in UNARY else array


FAMILIES: tuple[tuple[Container[str], Callable[[ArrayCall], Array]], ...] = (
    ((*REDUCERS, "var", "std"), ArrayCall.reduced),
    ((*FLIPPED, "flip"), ArrayCall.flipped),
    ((*SPREAD, *PLACES), ArrayCall.along),
    (CUMULATIVE, ArrayCall.cumulative),
    ((*JOINED, *JOINED_ALONG), ArrayCall.joined),
    (("take",), ArrayCall.taken),
    (COUNTS, ArrayCall.count),
    (SHAPED, ArrayCall.shaped),
)
"""Functions by their names, and what computes them; any other one is of each element."""


def _correction(name: str, node: ast.Call) -> tuple[int, Sequence[ast.keyword]]:
    """By how much the number of elements is corrected in a variance, and the other keywords of a call."""
    given = {each.arg: each.value for each in node.keywords if each.arg in CORRECTIONS}
    others = [each for each in node.keywords if each.arg not in CORRECTIONS]
    if name not in ("var", "std"):
        return 0, node.keywords
    numbers = whole_numbers([*given.values()])
    is_torch = ast.unparse(node.func).startswith("torch.")
    return (numbers[0] if numbers else int(is_torch)), others


def _axes_named(
    name: str, keywords: Sequence[ast.keyword], arguments: list[ast.expr]
) -> tuple[Sequence[int] | None, bool]:
    """The axes that a call names, which leave its arguments, and whether it keeps them with size 1.

    Julia counts ``dims`` from 1.
    """
    named = {each.arg: each.value for each in keywords}
    keeps = [ast.unparse(named.pop(key)) for key in ("keepdims", "keepdim") if key in named]
    if named.keys() - {*AXES}:
        raise NoSpellingError
    takes = (*REDUCERS, "var", "std", *SPREAD, *PLACES, *ALONG, *CUMULATIVE, "flip", *JOINED_ALONG)
    is_listed = name not in JOINED_ALONG or isinstance((*arguments, None)[0], ast.List | ast.Tuple)
    given = [*named.values()] or (arguments[1:2] if name in takes and is_listed else [])
    if not named and given:
        del arguments[1:2]
    first = int("dims" in named)
    axes = [axis - first if axis > 0 else axis for axis in whole_numbers(given)]
    return axes if given else None, keeps == ["True"]


def _filled(name: str, arguments: Sequence[ast.expr]) -> Array:
    """An array of numbers that follow from few, or of random ones."""
    text = f"{name}({', '.join(ast.unparse(each) for each in arguments)})"
    if not is_filled(text):
        raise NoSpellingError
    try:
        return Array(text.replace(" ", ""), filled_shape(text))
    except DataError:
        raise NoSpellingError from None


def _file(node: ast.Call) -> Array:
    """The array of a file that a call reads: a file stands where an array does."""
    match node.args:
        case [ast.Constant(value=str() as path)] if path.endswith(".npy") and " " not in path:
            return Array(path, ())
        case _:
            raise NoSpellingError
