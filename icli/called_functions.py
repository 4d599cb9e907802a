"""Families of the functions of array libraries: reductions, places, pieces behind one another, and others."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import DataError
from ilang.icli.array_functions import (
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
    PLACES,
    PRODUCTS,
    REDUCERS,
    SHAPED,
    SHOWN,
    SPREAD,
    UNARY,
    Array,
    MismatchError,
    NoSpellingError,
    along,
    axes_of,
    between_zeros,
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
from ilang.icli.indexing import indexed, taken
from ilang.icli.python_nodes import whole_number, whole_numbers
from ilang.icli.signatures import EXPANSIONS, optional_of

if TYPE_CHECKING:
    from ilang.icli.array_calls import ArrayCall

LIKE = {"zeros_like": "0", "ones_like": "1", "empty_like": "0"}
"""Arrays of the shape of another one, and their elements."""
MIDDLE = "where(any(a != a, axis), nan, ({}))"
"""A value between sorted elements, of which none is ``nan``."""


def expansion(call: ArrayCall) -> Array:
    """A function that is an expression of others."""
    written = optional_of(call.name)
    named = {
        key: node if key in written else call.steps.array(node) for key, node in call.named.items()
    }
    return call.expanded(EXPANSIONS[call.name][1], **named)


def between(call: ArrayCall) -> Array:
    """A function of two arrays: of their elements, or a product."""
    one, other = call.named.values()
    if call.name not in (*PRODUCTS, "inner"):
        return call.steps.binary(BINARY.get(call.name, call.name), one, other)
    arrays = call.steps.array(one), call.steps.array(other)
    if call.name == "inner" and 2 in (ranks := [len(each.shape) for each in arrays]):
        if max(ranks) > 2 or 0 in ranks:
            raise NoSpellingError
        return call.expanded("a @ b.T", a=arrays[0], b=arrays[1])
    if call.name == "inner":
        return call.steps.step(combined("inner", arrays, None), *arrays)
    if call.name == "dot" and 2 < max(len(each.shape) for each in arrays):
        raise NoSpellingError
    return call.steps.product(*arrays)


def reduced(call: ArrayCall) -> Array:
    """A reduction along some axes, by default all."""
    whole = call.converted(call.operand())
    fewer = 0
    if call.name in ("var", "std"):
        is_torch = call.spelled.startswith("torch.")
        asked = any(each.arg in ("ddof", "correction") for each in call.node.keywords)
        fewer = int(is_torch) if not asked else call.number("ddof")
    return call.kept(whole, reduction(call, call.name, whole, fewer))


def reduction(call: ArrayCall, name: str, array: Array, fewer: int = 0) -> Array:
    """All elements, or those along some axes, in one: their sum, their mean, how far they are apart.

    A mean divides by their number less ``fewer``, of squares in ``var`` and ``std``.
    """
    axes, rank = axes_of(array), len(array.shape)
    dropped, step = places_of(array, call.axes), call.steps.step
    left = [n for n in range(rank) if n not in dropped]
    kept = "".join(axes[n] for n in left) or "."
    if REDUCERS.get(name) in EXTREMES.values() and 0 in (array.shape[n] for n in dropped):
        sign = REDUCERS[name]
        message = f"{array.named()} has no elements, and `{call.spelled}` takes one of them"
        least = "-inf" if sign == ">" else "inf"
        raise MismatchError(message, f"the program `{sign}{axes}~{kept}` gives {least} for none")
    if name in ("var", "std"):
        mean = reduction(call, "mean", array)
        apart = step(f"{axes}-{kept}~{axes}", array, mean)
        square = step(f"{axes}*{axes}~{axes}", apart, apart)
        variance = reduction(call, "mean", square, fewer)
        root = f"(I | 0.5) >> {kept}^.~{kept}"
        return step(root, variance) if name == "std" else variance
    if array.dtype == "bool" and name not in ("sum", "prod", "mean"):
        sign = CONDITIONS.get(REDUCERS[name], REDUCERS[name])
        return step(f"{sign}{axes}~{kept}", array) if dropped else array
    if name in ("sum", "prod", "mean"):
        array = _widened(call, array)
    program = f"{REDUCERS[name]}{axes}~{kept}" if dropped else "I"
    if name in ("any", "all") and not dropped:
        program = f"{REDUCERS[name]}{axes}~{axes}"
    if name == "mean":
        count = max(0, math.prod(array.shape[n] for n in dropped) - fewer)
        program = f"({program} | {count}) >> {kept}/.~{kept}"
    return array if program == "I" else step(program, array)


def _widened(call: ArrayCall, array: Array) -> Array:
    """Integers of 64 bits in place of shorter ones and conditions, unless the call gives a type: what NumPy sums."""
    is_wide = array.dtype not in ("bool", "i32") or call.is_given("dtype")
    return array if is_wide else call.steps.step("i64", array)


def along_all(call: ArrayCall) -> Array:
    """A reduction that the help of the language writes out, along one axis or all."""
    whole, order = call.operand(), "None"
    if call.name == "norm":
        order = ast.unparse(call.named["ord"]).rpartition(".")[2]
    if whole.dtype == "bool":
        whole = call.steps.step("i64", whole)
    axis = ast.Constant(call.axis)
    if order not in ("None", "2", "'fro'"):
        text = {"1": "sum(abs(a), axis)", "inf": "amax(abs(a), axis)"}.get(order)
        if text is None or (call.axis is None and len(whole.shape) != 1):
            raise NoSpellingError
        return call.kept(whole, call.expanded(text, a=whole, axis=axis))
    return call.kept(whole, call.steps.step(combined(call.name, [whole], call.axis), whole))


def quantile(call: ArrayCall) -> Array:
    """A quantile of the elements along an axis, or of all: of a half it is the median."""
    whole = call.operand()
    array = call.flat(whole)
    axis = place_of(array, 0 if call.axis is None else call.axis)
    part = 0.5
    if call.name != "median":
        node = call.named["q"]
        if not isinstance(node, ast.Constant) or not isinstance(node.value, int | float):
            message = f"`{ast.unparse(node)}` is not one number"
            raise MismatchError(message, "ask for one quantile after the other", "E0821")
        part = node.value / (100 if call.name == "percentile" else 1)
    place = part * (array.shape[axis] - 1)
    if not 0 <= part <= 1 or not array.shape[axis]:
        raise NoSpellingError
    low, share = math.floor(place), place % 1
    text = "take(s, low, axis)"
    if share:
        text = f"{text} * {1 - share!r} + take(s, low + 1, axis) * {share!r}"
    written = {"axis": ast.Constant(axis), "low": ast.Constant(low)}
    ordered = call.expanded("sort(a, axis) * 1.0", a=array, **written)
    result = call.expanded(MIDDLE.format(text), a=array, s=ordered, **written)
    return call.kept(whole, result)


def flip(call: ArrayCall) -> Array:
    """The elements in reverse order along axes, by default along all."""
    whole = call.operand()
    axes = [FLIPPED[call.name]] if call.name in FLIPPED else call.axes
    places = places_of(whole, axes)
    return call.steps.step(flipped(whole, places), whole) if places else whole


def along_axis(call: ArrayCall) -> Array:
    """An operation along an axis, or the place of an extreme: of all elements in order where it is None."""
    whole = call.operand()
    array = call.flat(whole)
    if whole.dtype == "bool":
        array = call.steps.step("i64", array)
    result = call.steps.step(along(call.name, array, call.axis or 0), array)
    return call.kept(whole, result)


def cumulate(call: ArrayCall) -> Array:
    """The reductions up to each place of an axis, by default of all elements in order."""
    whole = _widened(call, call.flat(call.operand()))
    axis = place_of(whole, call.axis or 0)
    return call.steps.step(cumulative(call.name, whole, axis), whole)


def take(call: ArrayCall) -> Array:
    """Elements by their places along an axis, by default of all elements in order."""
    array = call.operand()
    flat = call.flat(array)
    axis = place_of(flat, call.axis or 0)
    return taken(call.steps, flat, call.named["indices"], axis)


def count(call: ArrayCall) -> Array:
    """A number of an array, such as its size."""
    return Array(str(COUNTS[call.name](call.operand().shape)), ())


def shaped(call: ArrayCall) -> Array:
    """The elements in another shape, or the axes in another order."""
    whole = call.operand()
    sizes = [*call.rest]
    if call.name == "swapaxes":
        sizes = [call.named["axis1"], call.named["axis2"]]
    elif not sizes and call.name not in ("flatten", "ravel", "transpose"):
        raise NoSpellingError
    return call.steps.step(SHAPED[call.name](whole, whole_numbers(sizes)), whole)


def moved(call: ArrayCall) -> Array:
    """An axis at another place, an axis of size 1 more, or those of size 1 left out."""
    whole = call.operand()
    rank = len(whole.shape)
    if call.name == "moveaxis":
        source = place_of(whole, call.number("source"))
        order = [n for n in range(rank) if n != source]
        order.insert(place_of(whole, call.number("destination")), source)
        return call.steps.step(permuted(whole, order), whole)
    if call.name != "squeeze":
        return call.steps.widened(whole, [place_of(Array("", (1, *whole.shape)), call.axis or 0)])
    single = [n for n, size in enumerate(whole.shape) if size == 1]
    chosen = single if call.axes is None else places_of(whole, call.axes)
    if {*chosen} - {*single}:
        raise MismatchError(
            f"{whole.named()} has sizes other than 1 there", "only an axis of size 1 goes"
        )
    parts = [ast.Constant(0) if n in chosen else ast.Slice() for n in range(rank)]
    return indexed(call.steps, whole, ast.Tuple([*parts])) if parts else whole


def repeat(call: ArrayCall) -> Array:
    """The elements, or all of an array, several times; or moved around along an axis."""
    whole = call.operand()
    if call.name == "tile":
        if len(whole.shape) != 1:
            raise NoSpellingError
        return call.steps.step(repeated(whole, 0, call.number("reps"), True), whole)
    flat = call.flat(whole)
    axis = place_of(flat, call.axis or 0)
    if call.name == "repeat":
        return call.steps.step(repeated(flat, axis, call.number("repeats"), False), flat)
    result = call.steps.step(rolled(flat, axis, call.number("shift")), flat)
    if flat is whole:
        return result
    return call.steps.step(reshaped(result, whole.shape), result)


def join(call: ArrayCall) -> Array:
    """Arrays behind one another along an axis of theirs; ``stack`` along a new one."""
    match [*call.rest]:
        case [ast.List(parts) | ast.Tuple(parts)] if parts:
            arrays = [call.steps.array(each) for each in parts]
        case [ast.List(parts) | ast.Tuple(parts), axis] if parts and whole_number(axis) is not None:
            arrays = [call.steps.array(each) for each in parts]
            call.named["axis"] = axis
        case [first, _, *_] as parts if not isinstance(first, ast.List | ast.Tuple):
            arrays = [call.steps.array(each) for each in parts]
        case _:
            raise NoSpellingError
    if call.name in JOINED_ALONG:
        return join_along(call, arrays)
    if call.name == "dstack":
        arrays = [call.steps.widened(each, [0, 2][len(each.shape) - 1 :]) for each in arrays]
    if call.named or any(isinstance(each, ast.Constant) for each in call.rest):
        raise NoSpellingError
    new, place = JOINED[call.name]
    if new is not None:
        arrays = [as_matrix(call, each, new) for each in arrays]
    elif max(len(each.shape) for each in arrays) == 0:
        arrays, place = [call.steps.widened(each, [0]) for each in arrays], 0
    place = min(place, len(arrays[0].shape) - 1)
    return behind(call, arrays, place)


def append(call: ArrayCall) -> Array:
    """An array behind another one, without an axis the elements of both in order."""
    arrays = [call.flat(call.operand(each)) for each in ("arr", "values")]
    return behind(call, arrays, place_of(arrays[0], call.axis or 0))


def join_along(call: ArrayCall, arrays: list[Array]) -> Array:
    """Arrays behind one another along the axis that is given."""
    axis = 0 if call.axis is None else call.axis
    if call.name != "stack":
        return behind(call, arrays, place_of(arrays[0], axis))
    for each in arrays[1:]:
        require_ranks(arrays[0], each)
    new = place_of(Array("", (1, *arrays[0].shape)), axis)
    return behind(call, [call.steps.widened(each, [new]) for each in arrays], new)


def as_matrix(call: ArrayCall, array: Array, new: int) -> Array:
    """A vector as a matrix with one row (0) or one column (1), a number as both."""
    if 1 < len(array.shape):
        return array
    return call.steps.widened(array, [new] if array.shape else [0, 1])


def behind(call: ArrayCall, arrays: Sequence[Array], axis: int) -> Array:
    """Arrays of one rank behind one another along an axis."""
    result, *rest = arrays
    for each in rest:
        require_ranks(result, each)
        result = call.steps.step(joined(result, each, axis), result, each)
    return result


def filled(call: ArrayCall) -> Array:
    """An array of numbers that follow from few, or of random ones."""
    name = MAKERS[call.name]
    *sizes, last = call.rest or [ast.Tuple([])]
    if sizes and ast.unparse(last).rpartition(".")[2].strip("'") in CONVERSIONS:
        call.named["dtype"], call.rest = last, sizes
    text = f"{name}({', '.join(ast.unparse(each) for each in call.rest)})"
    return call.converted(filled_with(text))


def filled_with(text: str) -> Array:
    """The array that a text such as ``zeros(2, 3)`` is."""
    if not is_filled(text):
        raise NoSpellingError
    try:
        return Array(text.replace(" ", ""), filled_shape(text))
    except DataError:
        raise NoSpellingError from None


def like(call: ArrayCall) -> Array:
    """An array of one number, in the shape and the type of another one."""
    whole = call.operand()
    value = LIKE.get(call.name) or ast.unparse(call.named["fill_value"])
    sizes = ", ".join(map(str, whole.shape))
    result = filled_with(f"full({sizes}, {value})") if sizes else Array(value, ())
    if call.is_given("dtype"):
        return call.converted(result)
    return result if whole.dtype == "f32" else call.steps.step(whole.dtype, result)


def array_file(call: ArrayCall) -> Array:
    """The array of a file that a call reads: a file stands where an array does."""
    match call.named["x"]:
        case ast.Constant(value=str() as path) if path.endswith(".npy") and " " not in path:
            return Array(path, ())
        case _:
            raise NoSpellingError


def shown(call: ArrayCall) -> Array:
    """An array itself, perhaps in another type."""
    return call.converted(call.operand())


def padded(call: ArrayCall) -> Array:
    """An array between zeros."""
    whole = call.operand()
    node = call.named["pad_width"]
    given = [whole_numbers([each]) for each in node.elts] if isinstance(node, ast.Tuple) else []
    if not given or all(len(each) == 1 for each in given):
        given = [whole_numbers([node])] * len(whole.shape)
    return call.steps.step(between_zeros(whole, [(each[0], each[-1]) for each in given]), whole)


def convolved(call: ArrayCall) -> Array:
    """Sums of products with a reversed vector, at all places, at those inside, or as many as there are elements."""
    longer, shorter = call.operand("a"), call.operand("v")
    mode = ast.unparse(call.named["mode"]).strip("'")
    if len(longer.shape) != 1 or len(shorter.shape) != 1 or mode not in ("full", "same", "valid"):
        raise NoSpellingError
    if longer.shape < shorter.shape:
        longer, shorter = shorter, longer
    count = shorter.shape[0]
    turned = call.steps.step(flipped(shorter, [0]), shorter)
    before = {"full": count - 1, "same": count // 2, "valid": 0}[mode]
    after = {"full": count - 1, "same": (count - 1) // 2, "valid": 0}[mode]
    if mode != "valid":
        longer = call.steps.step(between_zeros(longer, [(before, after)]), longer)
    return call.steps.step("(i+k)*k~ik >> +ik~i", longer, turned)


def places_where(call: ArrayCall) -> Array:
    """The places, of all elements in order, where a condition holds or a number is not 0."""
    whole = call.operand()
    if whole.dtype != "bool":
        whole = call.expanded("a != 0", a=whole)
    return call.steps.programs.places(call.flat(whole), call.steps.steps)


def diagonal_matrix(call: ArrayCall) -> Array:
    """The diagonal of a matrix, or a matrix with a vector on it."""
    whole = call.operand("x")
    if len(whole.shape) != 1:
        return call.steps.step(combined("diag", [whole], None), whole)
    return call.expanded("where(eye(a.size) == 1, a, 0)", a=whole)


def rounded(call: ArrayCall) -> Array:
    """The nearest whole numbers, or numbers with some decimals."""
    places, operand = call.number("decimals"), call.operand()
    if operand.dtype not in ("f32", "f64", "bool"):
        return operand
    if not places:
        return call.steps.step(combined("round", [operand], None), operand)
    scale = ast.Constant(float(10 ** abs(places)))
    text = "round(a * n) / n" if places > 0 else "round(a / n) * n"
    return call.expanded(text, a=operand, n=scale)


def of_elements(call: ArrayCall) -> Array:
    """A function of each element, or one that the help writes out."""
    nodes = [*call.named.values()]
    if call.name == "sqrt":
        return call.steps.binary("^", nodes[0], ast.Constant(0.5))
    operands = [call.steps.array(each) for each in nodes]
    if call.name in KERNELS:
        return call.steps.kernel(call.name, *operands)
    if call.name not in UNARY:
        return call.steps.step(combined(call.name, operands, None), *operands)
    if call.name == "reciprocal" and operands[0].dtype not in ("f32", "f64"):
        text = operands[0].text
        message = f"1 divided by {operands[0].named()}, which is of integers, is 0, 1 or -1"
        raise MismatchError(message, f"`1 / {text}` has fractions, `1 // {text}` has none")
    return call.steps.unary(UNARY[call.name], operands[0])


FAMILIES: tuple[tuple[Container[str], Callable[[ArrayCall], Array]], ...] = (
    (EXPANSIONS, expansion),
    (("load",), array_file),
    (MAKERS, filled),
    ((*LIKE, "full_like"), like),
    ((*BINARY, *PRODUCTS, "inner", "floor_divide", "mod"), between),
    ((*REDUCERS, "var", "std"), reduced),
    (("norm", "logsumexp", "count_nonzero"), along_all),
    (("median", "quantile", "percentile"), quantile),
    ((*FLIPPED, "flip"), flip),
    ((*SPREAD, *PLACES), along_axis),
    (CUMULATIVE, cumulate),
    ((*JOINED, *JOINED_ALONG), join),
    (("append",), append),
    (("take",), take),
    (COUNTS, count),
    (SHAPED, shaped),
    (("moveaxis", "squeeze", "expand_dims", "unsqueeze"), moved),
    (("tile", "repeat", "roll"), repeat),
    (("astype", "to", "type", *SHOWN), shown),
    (("round",), rounded),
    (("pad",), padded),
    (("convolve",), convolved),
    (("flatnonzero",), places_where),
    (("diag",), diagonal_matrix),
)
"""Functions by their names, and what computes them; any other one is of each element."""
