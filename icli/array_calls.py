"""Calls of functions that array libraries have, as steps that are programs: ``np.sum(x, axis=0)``, ``x.argmax()``.

A call means what NumPy means by it, and ``torch.std`` what PyTorch does; ``signatures.py`` says what functions take,
``array_functions.py`` has the programs.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import DataError, enumerated
from ilang.core.notation.guidance import named as guidance_of
from ilang.core.suggestion import nearest
from ilang.icli.array_functions import (
    ALIASES,
    BINARY,
    CONDITIONS,
    CONVERSIONS,
    COUNTS,
    CUMULATIVE,
    EXTREMES,
    FLIPPED,
    JOINED,
    JOINED_ALONG,
    KERNELS,
    KNOWN,
    PLACES,
    PRODUCTS,
    REDUCERS,
    SHAPED,
    SHOWN,
    SPREAD,
    UNARY,
    Array,
    MismatchError,
    NoExpressionError,
    NoSpellingError,
    along,
    axes_of,
    combined,
    cumulative,
    flipped,
    joined,
    permuted,
    place_of,
    places_of,
    repeated,
    require_ranks,
    reshaped,
    rolled,
)
from ilang.icli.filled import MAKERS, filled_shape, is_filled
from ilang.icli.folded import Replaced, SizesFolded
from ilang.icli.python_nodes import called, whole_number, whole_numbers
from ilang.icli.signatures import EXPANSIONS, SIGNATURES, bound, parameters_of

if TYPE_CHECKING:
    from ilang.icli.foreign import NamedSteps

LIKE = {"zeros_like": "0", "ones_like": "1", "empty_like": "0"}
"""Arrays of the shape of another one, and their elements."""
MIDDLE = "where(any(a != a, axis), nan, ({}))"
"""A value between sorted elements, of which none is ``nan``."""


class ArrayCall:
    """A call: its function, and what it gives for the parameters of it."""

    def __init__(self, steps: NamedSteps, node: ast.Call) -> None:
        """A call after some steps. Raises: NoSpellingError, MismatchError (it has other parameters)."""
        self.steps, self.node = steps, node
        self.spelled = ast.unparse(node.func)
        name, arguments = called(node, steps.arrays)
        self.name = ALIASES.get(name, name)
        if self.name not in (*KNOWN, *SIGNATURES):
            raise unknown_function(self.spelled, name)
        if self.name in EXTREMES and len(arguments) == 2 and isinstance(node.func, ast.Name):
            self.name = {"max": "maximum", "min": "minimum"}[self.name]
        self.given = bound(self.name, self.spelled, arguments, node.keywords)

    def array(self) -> Array:
        """The result. Raises: NoSpellingError, MismatchError."""
        for names, method in FAMILIES:
            if self.name in names:
                return method(self)
        return self.of_elements()

    def operand(self, name: str = "a") -> Array:
        """The array that is given for a parameter."""
        return self.steps.array(self.given.named[name])

    def number(self, name: str) -> int:
        """The whole number that is given for a parameter. Raises: NoSpellingError."""
        (number,) = whole_numbers([self.given.named[name]])
        return number

    @property
    def axis(self) -> int | None:
        """The one axis that is given. Raises: NoSpellingError (there are several)."""
        axes = self.given.axes()
        if axes is not None and len(axes) != 1:
            raise NoSpellingError
        return axes[0] if axes else None

    def flat(self, array: Array) -> Array:
        """The elements of an array in order, where no axis is given."""
        if self.axis is not None or len(array.shape) == 1:
            return array
        if not array.shape:
            return self.steps.widened(array, [0])
        return self.steps.step(reshaped(array, []), array)

    def expanded(self, text: str, **named: Array | ast.expr) -> Array:
        """An expression of other functions over names of arrays and of what is written out."""
        written = {key: each for key, each in named.items() if isinstance(each, ast.expr)}
        arrays = {key: each for key, each in named.items() if isinstance(each, Array)}
        tree = SizesFolded({}).visit(Replaced(written).visit(ast.parse(text, mode="eval").body))
        before, self.steps.named = self.steps.named, {**self.steps.named, **arrays}
        try:
            return self.steps.array(tree)
        finally:
            self.steps.named = before

    def expansion(self) -> Array:
        """A function that is an expression of others."""
        parameters = parameters_of(self.name)
        written = {key for key, _ in parameters.defaults}
        named = {
            key: node if key in written else self.steps.array(node)
            for key, node in self.given.named.items()
        }
        return self.expanded(EXPANSIONS[self.name][1], **named)

    def between(self) -> Array:
        """A function of two arrays: of their elements, or a product."""
        one, other = self.given.named.values()
        if self.name not in PRODUCTS:
            return self.steps.binary(BINARY.get(self.name, self.name), one, other)
        arrays = self.steps.array(one), self.steps.array(other)
        if self.name == "dot" and 2 < max(len(each.shape) for each in arrays):
            raise NoSpellingError
        return self.steps.product(*arrays)

    def converted(self, array: Array) -> Array:
        """An array in the type that is asked for."""
        if not self.given.is_given("dtype"):
            return array
        node = self.given.named["dtype"]
        name = ast.unparse(node).rpartition(".")[2].strip("'")
        if name not in CONVERSIONS:
            message = f"`{ast.unparse(node)}` is no element type"
            types = enumerated([*dict.fromkeys(CONVERSIONS.values())], "or")
            raise MismatchError(message, f"it is {types}", "E0821")
        dtype = CONVERSIONS[name]
        return array if array.dtype == dtype else self.steps.step(dtype, array)

    def kept(self, whole: Array, result: Array) -> Array:
        """The result of a reduction, whose axes may stay with size 1."""
        if not self.given.keeps():
            return result
        return self.steps.widened(result, places_of(whole, self.given.axes()))

    def reduced(self) -> Array:
        """A reduction along some axes, by default all."""
        whole = self.converted(self.operand())
        fewer = 0
        if self.name in ("var", "std"):
            is_torch = self.spelled.startswith("torch.")
            asked = any(each.arg in ("ddof", "correction") for each in self.node.keywords)
            fewer = int(is_torch) if not asked else self.number("ddof")
        return self.kept(whole, self.reduction(self.name, whole, fewer))

    def reduction(self, name: str, array: Array, fewer: int = 0) -> Array:
        """All elements, or those along some axes, in one: their sum, their mean, how far they are apart.

        A mean divides by their number less ``fewer``, of squares in ``var`` and ``std``.
        """
        axes, rank = axes_of(array), len(array.shape)
        dropped, step = places_of(array, self.given.axes()), self.steps.step
        left = [n for n in range(rank) if n not in dropped]
        kept = "".join(axes[n] for n in left) or "."
        if name in ("var", "std"):
            mean = self.reduction("mean", array)
            apart = step(f"{axes}-{kept}~{axes}", array, mean)
            square = step(f"{axes}*{axes}~{axes}", apart, apart)
            variance = self.reduction("mean", square, fewer)
            root = f"(I | 0.5) >> {kept}^.~{kept}"
            return step(root, variance) if name == "std" else variance
        if array.dtype == "bool" and name not in ("sum", "prod", "mean"):
            sign = CONDITIONS.get(REDUCERS[name], REDUCERS[name])
            return step(f"{sign}{axes}~{kept}", array) if dropped else array
        if array.dtype == "bool":  # true counts as 1
            array = step("i64", array)
        program = f"{REDUCERS[name]}{axes}~{kept}" if dropped else "I"
        if name in ("any", "all") and not dropped:
            program = f"{REDUCERS[name]}{axes}~{axes}"
        if name == "mean":
            count = max(0, math.prod(array.shape[n] for n in dropped) - fewer)
            program = f"({program} | {count}) >> {kept}/.~{kept}"
        return array if program == "I" else step(program, array)

    def along_all(self) -> Array:
        """A reduction that the help of the language writes out, along one axis or all."""
        whole, order = self.operand(), "None"
        if self.name == "norm":
            order = ast.unparse(self.given.named["ord"]).rpartition(".")[2]
        if whole.dtype == "bool":
            whole = self.steps.step("i64", whole)
        axis = ast.Constant(self.axis)
        if order not in ("None", "2", "'fro'"):
            text = {"1": "sum(abs(a), axis)", "inf": "amax(abs(a), axis)"}.get(order)
            if text is None or (self.axis is None and len(whole.shape) != 1):
                raise NoSpellingError
            return self.kept(whole, self.expanded(text, a=whole, axis=axis))
        return self.kept(whole, self.steps.step(combined(self.name, [whole], self.axis), whole))

    def quantile(self) -> Array:
        """A quantile of the elements along an axis, or of all: of a half it is the median."""
        whole = self.operand()
        array = self.flat(whole)
        axis = place_of(array, 0 if self.axis is None else self.axis)
        part = 0.5
        if self.name != "median":
            node = self.given.named["q"]
            if not isinstance(node, ast.Constant) or not isinstance(node.value, int | float):
                raise NoSpellingError
            part = node.value / (100 if self.name == "percentile" else 1)
        place = part * (array.shape[axis] - 1)
        if not 0 <= part <= 1 or not array.shape[axis]:
            raise NoSpellingError
        low, share = math.floor(place), place % 1
        text = "take(s, low, axis)"
        if share:
            text = f"{text} * {1 - share!r} + take(s, low + 1, axis) * {share!r}"
        written = {"axis": ast.Constant(axis), "low": ast.Constant(low)}
        ordered = self.expanded("sort(a, axis) * 1.0", a=array, **written)
        result = self.expanded(MIDDLE.format(text), a=array, s=ordered, **written)
        return self.kept(whole, result)

    def flipped(self) -> Array:
        """The elements in reverse order along axes, by default along all."""
        whole = self.operand()
        axes = [FLIPPED[self.name]] if self.name in FLIPPED else self.given.axes()
        places = places_of(whole, axes)
        return self.steps.step(flipped(whole, places), whole) if places else whole

    def along(self) -> Array:
        """An operation along an axis, or the place of an extreme: of all elements in order where it is None."""
        whole = self.operand()
        array = self.flat(whole)
        if whole.dtype == "bool":
            array = self.steps.step("i64", array)
        result = self.steps.step(along(self.name, array, self.axis or 0), array)
        return self.kept(whole, result)

    def cumulative(self) -> Array:
        """The reductions up to each place of an axis, by default of all elements in order."""
        whole = self.flat(self.operand())
        if whole.dtype == "bool":
            whole = self.steps.step("i64", whole)
        axis = place_of(whole, self.axis or 0)
        return self.steps.step(cumulative(self.name, whole, axis), whole)

    def taken(self) -> Array:
        """Elements by their places along an axis, by default of all elements in order."""
        array = self.operand()
        flat = self.flat(array)
        axis = place_of(flat, self.axis or 0)
        return self.steps.taken(flat, self.given.named["indices"], axis)

    def count(self) -> Array:
        """A number of an array, such as its size."""
        return Array(str(COUNTS[self.name](self.operand().shape)), ())

    def shaped(self) -> Array:
        """The elements in another shape, or the axes in another order."""
        whole = self.operand()
        sizes = [*self.given.rest]
        if self.name == "swapaxes":
            sizes = [self.given.named["axis1"], self.given.named["axis2"]]
        elif not sizes and self.name not in ("flatten", "ravel", "transpose"):
            raise NoSpellingError
        return self.steps.step(SHAPED[self.name](whole, whole_numbers(sizes)), whole)

    def moved(self) -> Array:
        """An axis at another place, an axis of size 1 more, or those of size 1 left out."""
        whole = self.operand()
        rank = len(whole.shape)
        if self.name == "moveaxis":
            source = place_of(whole, self.number("source"))
            order = [n for n in range(rank) if n != source]
            order.insert(place_of(whole, self.number("destination")), source)
            return self.steps.step(permuted(whole, order), whole)
        if self.name != "squeeze":
            return self.steps.widened(
                whole, [place_of(Array("", (1, *whole.shape)), self.axis or 0)]
            )
        single = [n for n, size in enumerate(whole.shape) if size == 1]
        chosen = single if self.given.axes() is None else places_of(whole, self.given.axes())
        if {*chosen} - {*single}:
            raise MismatchError(
                f"{whole.named()} has sizes other than 1 there", "only an axis of size 1 goes"
            )
        parts = [ast.Constant(0) if n in chosen else ast.Slice() for n in range(rank)]
        return self.steps.indexed(whole, ast.Tuple([*parts])) if parts else whole

    def repeated(self) -> Array:
        """The elements, or all of an array, several times; or moved around along an axis."""
        whole = self.operand()
        if self.name == "tile":
            if len(whole.shape) != 1:
                raise NoSpellingError
            return self.steps.step(repeated(whole, 0, self.number("reps"), True), whole)
        flat = self.flat(whole)
        axis = place_of(flat, self.axis or 0)
        if self.name == "repeat":
            return self.steps.step(repeated(flat, axis, self.number("repeats"), False), flat)
        result = self.steps.step(rolled(flat, axis, self.number("shift")), flat)
        if flat is whole:
            return result
        return self.steps.step(reshaped(result, whole.shape), result)

    def joined(self) -> Array:
        """Arrays behind one another along an axis of theirs; ``stack`` along a new one."""
        match [*self.given.rest]:
            case [ast.List(parts) | ast.Tuple(parts)] if parts:
                arrays = [self.steps.array(each) for each in parts]
            case [ast.List(parts) | ast.Tuple(parts), axis] if (
                parts and whole_number(axis) is not None
            ):
                arrays = [self.steps.array(each) for each in parts]
                self.given.named["axis"] = axis
            case [first, _, *_] as parts if not isinstance(first, ast.List | ast.Tuple):
                arrays = [self.steps.array(each) for each in parts]
            case _:
                raise NoSpellingError
        if self.name in JOINED_ALONG:
            return self.joined_along(arrays)
        if self.name == "dstack":
            arrays = [self.steps.widened(each, [0, 2][len(each.shape) - 1 :]) for each in arrays]
        if self.given.named or any(isinstance(each, ast.Constant) for each in self.given.rest):
            raise NoSpellingError
        new, place = JOINED[self.name]
        if new is not None:
            arrays = [self.widened_vector(each, new) for each in arrays]
        elif max(len(each.shape) for each in arrays) == 0:
            arrays, place = [self.steps.widened(each, [0]) for each in arrays], 0
        place = min(place, len(arrays[0].shape) - 1)
        return self.behind(arrays, place)

    def appended(self) -> Array:
        """An array behind another one, without an axis the elements of both in order."""
        arrays = [self.flat(self.operand(each)) for each in ("arr", "values")]
        return self.behind(arrays, place_of(arrays[0], self.axis or 0))

    def joined_along(self, arrays: list[Array]) -> Array:
        """Arrays behind one another along the axis that is given."""
        axis = 0 if self.axis is None else self.axis
        if self.name != "stack":
            return self.behind(arrays, place_of(arrays[0], axis))
        for each in arrays[1:]:
            require_ranks(arrays[0], each)
        new = place_of(Array("", (1, *arrays[0].shape)), axis)
        return self.behind([self.steps.widened(each, [new]) for each in arrays], new)

    def widened_vector(self, array: Array, new: int) -> Array:
        """A vector as a matrix with one row (0) or one column (1), a number as both."""
        if 1 < len(array.shape):
            return array
        return self.steps.widened(array, [new] if array.shape else [0, 1])

    def behind(self, arrays: Sequence[Array], axis: int) -> Array:
        """Arrays of one rank behind one another along an axis."""
        result, *rest = arrays
        for each in rest:
            require_ranks(result, each)
            result = self.steps.step(joined(result, each, axis), result, each)
        return result

    def filled(self) -> Array:
        """An array of numbers that follow from few, or of random ones."""
        name = MAKERS[self.name]
        text = f"{name}({', '.join(ast.unparse(each) for each in self.given.rest)})"
        return self.converted(self.filled_with(text))

    def filled_with(self, text: str) -> Array:
        """The array that a text such as ``zeros(2, 3)`` is."""
        if not is_filled(text):
            raise NoSpellingError
        try:
            return Array(text.replace(" ", ""), filled_shape(text))
        except DataError:
            raise NoSpellingError from None

    def like(self) -> Array:
        """An array of one number, in the shape and the type of another one."""
        whole = self.operand()
        value = LIKE.get(self.name) or ast.unparse(self.given.named["fill_value"])
        sizes = ", ".join(map(str, whole.shape))
        result = self.filled_with(f"full({sizes}, {value})") if sizes else Array(value, ())
        if self.given.is_given("dtype"):
            return self.converted(result)
        return result if whole.dtype == "f32" else self.steps.step(whole.dtype, result)

    def file(self) -> Array:
        """The array of a file that a call reads: a file stands where an array does."""
        match self.given.named["x"]:
            case ast.Constant(value=str() as path) if path.endswith(".npy") and " " not in path:
                return Array(path, ())
            case _:
                raise NoSpellingError

    def shown(self) -> Array:
        """An array itself, perhaps in another type."""
        return self.converted(self.operand())

    def rounded(self) -> Array:
        """The nearest whole numbers, or numbers with some decimals."""
        places, operand = self.number("decimals"), self.operand()
        if operand.dtype not in ("f32", "f64", "bool"):
            return operand
        if not places:
            return self.steps.step(combined("round", [operand], None), operand)
        scale = ast.Constant(float(10 ** abs(places)))
        text = "round(a * n) / n" if places > 0 else "round(a / n) * n"
        return self.expanded(text, a=operand, n=scale)

    def of_elements(self) -> Array:
        """A function of each element, or one that the help writes out."""
        nodes = [*self.given.named.values()]
        if self.name == "sqrt":
            return self.steps.binary("^", nodes[0], ast.Constant(0.5))
        operands = [self.steps.array(each) for each in nodes]
        if self.name in KERNELS:
            return self.steps.kernel(self.name, *operands)
        if self.name not in UNARY:
            return self.steps.step(combined(self.name, operands, None), *operands)
        if self.name == "reciprocal" and operands[0].dtype not in ("f32", "f64"):
            text = operands[0].text
            message = f"1 divided by {operands[0].named()}, which is of integers, is 0, 1 or -1"
            raise MismatchError(message, f"`1 / {text}` has fractions, `1 // {text}` has none")
        return self.steps.unary(UNARY[self.name], operands[0])


FAMILIES: tuple[tuple[Container[str], Callable[[ArrayCall], Array]], ...] = (
    (EXPANSIONS, ArrayCall.expansion),
    (("load",), ArrayCall.file),
    (MAKERS, ArrayCall.filled),
    ((*LIKE, "full_like"), ArrayCall.like),
    ((*BINARY, *PRODUCTS, "floor_divide", "mod"), ArrayCall.between),
    ((*REDUCERS, "var", "std"), ArrayCall.reduced),
    (("norm", "logsumexp", "count_nonzero"), ArrayCall.along_all),
    (("median", "quantile", "percentile"), ArrayCall.quantile),
    ((*FLIPPED, "flip"), ArrayCall.flipped),
    ((*SPREAD, *PLACES), ArrayCall.along),
    (CUMULATIVE, ArrayCall.cumulative),
    ((*JOINED, *JOINED_ALONG), ArrayCall.joined),
    (("append",), ArrayCall.appended),
    (("take",), ArrayCall.taken),
    (COUNTS, ArrayCall.count),
    (SHAPED, ArrayCall.shaped),
    (("moveaxis", "squeeze", "expand_dims", "unsqueeze"), ArrayCall.moved),
    (("tile", "repeat", "roll"), ArrayCall.repeated),
    (("astype", "to", "type", *SHOWN), ArrayCall.shown),
    (("round",), ArrayCall.rounded),
)
"""Functions by their names, and what computes them; any other one is of each element."""


def unknown_function(spelled: str, name: str) -> NoExpressionError:
    """The error for a function, or a method, that nothing here does the work of."""
    guess = nearest(name, sorted({*KNOWN, *SIGNATURES}))
    says = guidance_of(name)
    hint = says or (f"did you mean `{guess}`?" if guess else "`:help` lists what can be typed")
    return NoExpressionError(f"there is no `{spelled}` here", hint, "E0821", spelled)


def unread_part(node: ast.expr) -> NoExpressionError:
    """The error for a part of a line that is no expression of arrays."""
    text = ast.unparse(node)
    match node:
        case ast.Call(func):
            name = ast.unparse(func)
            takes = parameters_of(name.rpartition(".")[2]).told()
            message, hint = (
                f"`{text}` is no call that has a meaning here",
                f"`{name}` takes {takes}",
            )
        case ast.IfExp():
            message, hint = (
                f"`{text}` chooses one of two",
                "elements are chosen by `where(c, x, y)`",
            )
        case _:
            message, hint = f"`{text}` is no array", "`:help` lists what can be typed"
    return NoExpressionError(message, hint, "E0821", text)
