"""Functions of array libraries as programs: ``sort(x, 0)``, ``concatenate([x, y])``, ``x.reshape(3, 2)``, ``x[ids]``.

A function gives a program, or says why arrays do not fit.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Sequence

from ilang.core.dtype import FLOATS, INTEGERS
from ilang.core.notation.guidance import POINTWISE, PROGRAMS, REDUCTIONS, TYPES
from ilang.core.ops import OPS, PRIMITIVES, REDUCING
from ilang.core.record import record
from ilang.icli.shapes import shape_text

Shape = tuple[int, ...]

LETTERS = "ijklmnop"
"""Axes of a suggestion: the ranks that it is made for."""
BATCHES = "abcdefgh"
"""Axes of batches of matrices."""
SPREAD = ("softmax", "log_softmax", "sort", "argsort")
"""Operations of einx along one axis, by default the last one, which the result keeps."""
PLACES = {"argmax": ">@", "argmin": "<@"}
"""Places of extremes along an axis, and their operators."""
ALONG = ("norm", "logsumexp", "count_nonzero")
"""Functions that reduce one axis, or all, and that the help of the language writes out."""
KERNELS = {
    **{name: f"x -> {name}(x)" for name in ("sin", "cos", "tanh", "square")},
    "where": "c, x, y -> where(c, x, y)",
    "floor_divide": "x, y -> floor_divide(x, y)",
    "mod": "x, y -> x - y * floor_divide(x, y)",
    "from_start": "i, n -> where(lt(i, n - n), i + n, i)",
    "mod_of_integers": "x, y -> where(eq(y, x - x), y, x - y * floor_divide(x, y))",
    "clip": "x, a_min, a_max -> min(max(x, a_min), a_max)",
    "clamp": "x, a_min, a_max -> min(max(x, a_min), a_max)",
    "floor": "x -> floor_divide(x, 1)",
    "ceil": "x -> -floor_divide(-x, 1)",
    "round": "x -> where(eq(x - floor_divide(x, 1), 0.5), 2 * floor_divide(x / 2 + 0.5, 1), "
    "floor_divide(x, 1) + where(gt(x - floor_divide(x, 1), 0.5), 1, 0))",
}
"""Functions of each element that an elementwise kernel computes."""
JOINED: dict[str, tuple[int | None, int]] = {
    **dict.fromkeys(("concatenate", "concat", "cat", "vcat"), (None, 0)),
    **dict.fromkeys(("vstack", "row_stack"), (0, 0)),
    **dict.fromkeys(("column_stack", "hcat"), (1, 1)),
    "hstack": (None, 1),
    "dstack": (None, 2),
}
"""Functions that put arrays behind one another: the place of an axis that vectors get, and the axis along which."""
JOINED_ALONG = ("concatenate", "concat", "cat", "stack")
"""Functions that put arrays behind one another along an axis that is given."""
CUMULATIVE = {"cumsum": "+", "cumprod": "*"}
"""Cumulative reductions along one axis, or of all elements in order, and their operators."""
FLIPPED = {"flipud": 0, "fliplr": 1, "reversed": 0}
"""Functions that flip one axis, and that axis; ``flip`` flips all of them, where none is given."""
CONDITIONS = {"+": "||", "*": "&&", "^": "^^", ">": "||", "<": "&&"}
"""Operators between conditions, and reductions of them, which give conditions."""
WRITTEN_OUT = ("outer", "trace", "diag", "diagonal", "bmm", "inner", "vdot", "tril", "triu")
"""Functions of whole arrays that the help of the language writes out for the same ranks."""
UNARY = {
    **{
        name: op.symbol
        for op in OPS.values()
        if op.unary_left is op.unary_right is None and op.unary not in ("copy", "truth")
        for name in (
            op.unary,
            PRIMITIVES[op.unary].notation.numpy,
            PRIMITIVES[op.unary].notation.function,
        )
        if name
    },
    "relu": ">",
}
REDUCERS = {
    **{op.numpy: op.symbol for op in REDUCING.values() if op.numpy},
    "amax": ">",
    "amin": "<",
    "mean": "+",
}
EXTREMES = {"max": ">", "min": "<"}
"""Functions of Python of two arrays, or of an array and a number; NumPy's of these names take an axis."""
BINARY = {
    PRIMITIVES[op.binary].notation.numpy: op.symbol
    for op in OPS.values()
    if op.binary is not None and PRIMITIVES[op.binary].notation.numpy
} | {"bitwise_and": "&", "bitwise_or": "|"}
PRODUCTS = ("dot", "matmul")
ALIASES = {
    "mul": "multiply", "div": "divide", "sub": "subtract", "pow": "power", "mm": "matmul", "sorted": "sort",
    "rint": "round", "permute_dims": "permute", "remainder": "mod", "true_divide": "divide", "absolute": "abs",
    "invert": "logical_not",
}  # fmt: skip
"""Functions by shorter names, or those of Python."""
CONVERSIONS = {**TYPES, **{name: name for name in TYPES.values()}, "int": "i64"}
"""Functions that convert to a type by its name; the integers of Python and NumPy have 64 bits."""
SHOWN = (
    "print",
    "show",
    "display",
    "array",
    "asarray",
    "tensor",
    *("cpu", "cuda", "numpy", "detach", "clone", "copy", "item", "tolist", "contiguous"),
)
COUNTS: dict[str, Callable[[Shape], int]] = {
    "len": lambda shape: (*shape, 1)[0],
    "size": math.prod,
    "ndim": len,
}
"""Functions that give a number of an array: its first size, its elements, its axes."""
MIXED = ("E0601", "E0602", "E0603")
"""Errors of operands of other types than a program takes."""
FORM = re.compile(r"[(+*<>@-]*([a-z]+)(?:\[[^]]*\])?(?:[^\w~]+([a-z]+))?~")
"""The beginning of a program: the axes of its inputs."""


@record
class Array:
    """A part of a line that is an array: text that stands for an array (a name or a literal), and its shape.

    Literals are of the type that they have in the REPL.
    """

    text: str
    shape: Shape
    dtype: str = "f32"

    def named(self) -> str:
        """The array with its shape, for messages: ``D (2×3)``."""
        return (
            f"{self.text} ({shape_text(self.shape)})" if self.shape else f"{self.text} (a number)"
        )


class NoSpellingError(Exception):
    """A part of a line that is no expression of arrays: ``part``, a node of Python's, once it is known."""

    part: ast.expr | None = None


class UnknownNameError(Exception):
    """A name that is no array: ``args[0]``."""


class MismatchError(Exception):
    """Arrays whose shapes do not fit, or what no array is: the message, what may be meant, the code, and the words."""

    def __init__(self, message: str, hint: str, code: str = "E0505", words: str = "") -> None:
        """Build it."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        self.words = words


def axes_of(array: Array) -> str:
    """The pattern of an array. Raises: NoSpellingError (it has too many axes)."""
    if len(LETTERS) < len(array.shape):
        raise NoSpellingError
    return LETTERS[: len(array.shape)] or "."


def place_of(array: Array, axis: int) -> int:
    """An axis counted from the first one. Raises: MismatchError (there is none such)."""
    rank = len(array.shape)
    if not rank:
        raise MismatchError(f"{array.named()} has no axis {axis}", "a number has no axes")
    if not -rank <= axis < rank:
        message = f"{array.named()} has no axis {axis}"
        raise MismatchError(message, f"its axes are 0 to {rank - 1}, or -{rank} to -1")
    return axis % rank


def places_of(array: Array, axes: Sequence[int] | None) -> list[int]:
    """Axes counted from the first one, by default all. Raises: as ``place_of``; MismatchError (one is named twice)."""
    chosen = range(len(array.shape)) if axes is None else axes
    places = sorted(place_of(array, axis) for axis in chosen)
    if len({*places}) < len(places):
        message = f"the axes {', '.join(map(str, chosen))} of {array.named()} are one twice"
        raise MismatchError(message, "name each axis once")
    return places


def common_type(code: str, operands: Sequence[Array]) -> str:
    """The type in which operands meet that a program has refused with ``code``; "" where another reason has."""
    kinds = {each.dtype for each in operands}
    if code not in MIXED or not kinds - {*FLOATS}:
        return ""
    if code == "E0601" and not kinds & {*FLOATS, "bool"}:
        return "i64"
    return "f64" if kinds & {"f64", *INTEGERS} else "f32"


def along(name: str, array: Array, axis: int | None) -> str:
    """An operation along one axis, by default the last one, or the place of an extreme along it."""
    axes, at = axes_of(array), place_of(array, -1 if axis is None else axis)
    if name in PLACES:
        kept = axes[:at] + axes[at + 1 :] or "."
        return f"{PLACES[name]}{axes}~{kept}"
    marked = " ".join(f"[{c}]" if n == at else c for n, c in enumerate(axes))
    return f'einx.{name}("{marked}")'


def looked_up(array: Array, places: Array, axis: int) -> str:
    """The elements at places along an axis; the places are integers."""
    axes, at, new = axes_of(array), place_of(array, axis), "uvw"[: len(places.shape)]
    if len(new) < len(places.shape):
        raise NoSpellingError
    out = axes[:at] + new + axes[at + 1 :] or "."
    return f"{new or '.'}@{axes}~{out}"


def permuted(array: Array, order: Sequence[int]) -> str:
    """The axes in another order."""
    axes, places = axes_of(array), [place_of(array, axis) for axis in order]
    if sorted(places) != [*range(len(axes))]:
        raise NoSpellingError
    return f"{axes}~{''.join(axes[n] for n in places)}"


def exchanged(array: Array, order: Sequence[int]) -> str:
    """The axes with two exchanged, or all of them in another order, by default from last to first."""
    if len(order) != 2:
        return permuted(array, order or range(len(array.shape))[::-1])
    one, other = (place_of(array, axis) for axis in order)
    places = [*range(len(array.shape))]
    places[one], places[other] = other, one
    return permuted(array, places)


def reshaped(array: Array, sizes: Sequence[int]) -> str:
    """The elements in the same order, in another shape; one size may be -1, and without any it is a vector."""
    shape, count = [*sizes] or [-1], math.prod(array.shape)
    if shape.count(-1) == 1:
        shape[shape.index(-1)] = count // max(1, -math.prod(shape))
    if math.prod(shape) != count or min(shape) < 1:
        message = f"{array.named()} has {count} elements, and {shape_text(tuple(shape))} has {math.prod(shape)}"
        raise MismatchError(message, "a reshape keeps the number of elements")
    old, new = " ".join(axes_of(array)), " ".join(axes_of(Array("", tuple(shape))))
    program = f'einx.id("{old} -> ({old})")'
    if 1 < len(shape):
        known = ", ".join(f"{c}={n}" for c, n in zip(new.split(), shape, strict=True))
        program += f' >> einx.id("({new}) -> {new}", {known})'
    return program


SHAPED: dict[str, Callable[[Array, Sequence[int]], str]] = {
    **dict.fromkeys(("reshape", "view", "flatten", "ravel"), reshaped),
    **dict.fromkeys(("transpose", "swapaxes"), exchanged),
    "permute": permuted,
}
"""Functions of an array and of numbers that are sizes or axes."""


def combined(name: str, operands: Sequence[Array], axis: int | None) -> str:
    """A function of some arrays: one of each element, or one that the help writes out."""
    if name in KERNELS:
        if len(operands) != KERNELS[name].partition("->")[0].count(",") + 1:
            raise NoSpellingError
        return f'elementwise("f: {KERNELS[name]}")'
    ranks = [len(each.shape) for each in operands]
    if len(operands) == 1 and name in POINTWISE:
        return POINTWISE[name].replace("P", axes_of(operands[0]))
    if len(operands) == 1 and name in ALONG and operands[0].shape:
        axes = axes_of(operands[0])
        at = None if axis is None else place_of(operands[0], axis)
        kept = "" if at is None else axes[:at] + axes[at + 1 :]
        return REDUCTIONS[name].replace("P", axes).replace("R", kept or ".")
    if len(operands) == 1 and name in CONVERSIONS:
        return CONVERSIONS[name]
    form = FORM.match(PROGRAMS[name]) if name in WRITTEN_OUT else None
    if form is None or [len(part) for part in form.groups() if part] != ranks:
        raise NoSpellingError
    return PROGRAMS[name]


def cumulative(name: str, array: Array, axis: int) -> str:
    """The reductions of the elements up to each place along an axis."""
    axes, extent = [*axes_of(array)], array.shape[axis]
    out = "".join(axes)
    axes[axis] = f"({axes[axis]}:{extent}+w:{extent}-{extent - 1})"
    return f"{CUMULATIVE[name]}{''.join(axes)}~{out}"


def flipped(array: Array, axes: Sequence[int]) -> str:
    """The elements in reverse order along some axes."""
    marked = " ".join(f"[{c}]" if n in axes else c for n, c in enumerate(axes_of(array)))
    return f'einx.flip("{marked}")'


def repeated(array: Array, axis: int, times: int, whole: bool) -> str:
    """The elements along an axis several times, each one or the ``whole`` of them."""
    axes = [*axes_of(array)]
    new = [
        f"({c if not whole else 'z'} {'z' if not whole else c})" if n == axis else c
        for n, c in enumerate(axes)
    ]
    return f'einx.id("{" ".join(axes)} -> {" ".join(new)}", z={times})'


def between_zeros(array: Array, widths: Sequence[tuple[int, int]]) -> str:
    """An array with so many zeros before and after each axis. Raises: NoSpellingError (there are other axes)."""
    if len(widths) != len(array.shape) or not widths or min(map(min, widths)) < 0:
        raise NoSpellingError
    axes = axes_of(array)
    walks = (
        f"({c}:{before + size + after}-{before})" if before or after else c
        for c, size, (before, after) in zip(axes, array.shape, widths, strict=True)
    )
    return f"{''.join(walks)}~{axes}"


def rolled(array: Array, axis: int, shift: int) -> str:
    """The elements moved around along an axis."""
    marked = " ".join(f"[{c}]" if n == axis else c for n, c in enumerate(axes_of(array)))
    return f'einx.roll("{marked}", shift=({shift},))'


def require_ranks(one: Array, other: Array) -> None:
    """Refuse to join arrays of different ranks. Raises: MismatchError."""
    if len(one.shape) != len(other.shape):
        message = f"{one.named()} and {other.named()} have different numbers of axes"
        raise MismatchError(message, "arrays that are joined have the same number of axes")


def joined(one: Array, other: Array, axis: int) -> str:
    """Two arrays of one rank, one behind the other along an axis."""
    at = place_of(one, axis)
    if one.shape[:at] + one.shape[at + 1 :] != other.shape[:at] + other.shape[at + 1 :]:
        message = (
            f"{one.named()} and {other.named()} are joined along axis {at}, and another one differs"
        )
        raise MismatchError(message, "all axes but that one have the same sizes")
    first = [*axes_of(one)]
    second, both = [*first], [*first]
    second[at], both[at] = "z", f"({first[at]} + z)"
    return f'einx.id("{" ".join(first)}, {" ".join(second)} -> {" ".join(both)}")'


def multiplied(one: Array, other: Array) -> str:
    """The matrix product of two arrays that have one, as a program: of vectors, and of each matrix of a batch, too.

    Raises:
        NoSpellingError: The axes of batches differ.
    """
    left, right = "i" * (len(one.shape) > 1), "j" * (len(other.shape) > 1)
    batches = one.shape[:-2], other.shape[:-2]
    if all(batches) and batches[0] != batches[1]:
        raise NoSpellingError
    first, second = (BATCHES[: len(each)] for each in batches)
    out = f"{first or second}{left}{right}"
    if len(BATCHES) < len(max(batches, key=len)):
        raise NoSpellingError
    return f"{first}{left}k*{second}k{right}~{out}k >> +{out}k~{out or '.'}"


def aligned(sign: str, one: Array, other: Array) -> tuple[str, str, str]:
    """The patterns of two arrays that meet at their last axes, and of the result; an axis of size 1 meets any.

    Raises:
        MismatchError: Axes of other sizes meet.
    """
    rank = max(len(one.shape), len(other.shape))
    padded = [(1,) * (rank - len(each.shape)) + each.shape for each in (one, other)]
    sizes = [max(pair) if 0 not in pair else 0 for pair in zip(*padded, strict=True)]
    axes, patterns = axes_of(Array("", tuple(sizes))), []
    for array, shape in zip((one, other), padded, strict=True):
        if any(size not in (1, whole) for size, whole in zip(shape, sizes, strict=True)):
            raise unaligned(sign, one, other)
        letters = (
            a if n == whole else "0" for a, n, whole in zip(axes, shape, sizes, strict=False)
        )
        patterns.append("".join([*letters][rank - len(array.shape) :]) or ".")
    return patterns[0], patterns[1], axes


def unaligned(sign: str, one: Array, other: Array) -> MismatchError:
    """The error for arrays that do not fit element by element, with an expression in which axes of one size meet."""
    small, large = sorted((one, other), key=lambda array: len(array.shape))
    axes, letters, at = axes_of(large), "", 0
    free = iter(LETTERS[len(large.shape) :])
    for size in small.shape:
        fits = [n for n in range(at, len(axes)) if large.shape[n] == size]
        letters += axes[fits[0]] if fits else next(free, "z")
        at = fits[0] + 1 if fits else at
    out = axes + "".join(c for c in letters if c not in axes)
    pattern = {id(large): axes, id(small): letters}
    shown = f"{pattern[id(one)]}{sign}{pattern[id(other)]}~{out} {one.text} {other.text}"
    message = f"the shapes of {one.named()} and {other.named()} do not meet at their last axes"
    if sign == "*" and len(large.shape) == 2 and one.shape[-1] == other.shape[0]:
        return MismatchError(
            message, f"their matrix product is `{multiplied(one, other)} {one.text} {other.text}`"
        )
    if sign not in OPS:
        return MismatchError(message, "axes that meet have one size, or one of them has size 1")
    return MismatchError(message, f"letters say which axes meet, a letter is one size: `{shown}`")


def without_product(one: Array, other: Array) -> MismatchError:
    """The error for arrays without a product, with that along axes of one size where there are such."""
    message = f"the last axis of {one.named()} and the first of {other.named()} are not of one size"
    left, right = list("ik"[2 - len(one.shape) :]), list("jl"[: len(other.shape)])
    pairs = [(m, n) for m, a in enumerate(one.shape) for n, b in enumerate(other.shape) if a == b]
    if not pairs:
        return MismatchError(message, "letters say which axes meet: `ik*kj~ijk >> +ijk~ij`")
    at, place = pairs[-1]
    right[place] = left[at]
    out = "".join(c for c in (*left, *right) if c != left[at])
    both = f"{''.join(left)}*{''.join(right)}~{out}{left[at]} >> +{out}{left[at]}~{out or '.'}"
    return MismatchError(
        message, f"along the axes of {one.shape[at]} it is `{both} {one.text} {other.text}`"
    )


class NoExpressionError(MismatchError):
    """A text that is no expression of arrays, and may be something else."""


KNOWN = frozenset[str]().union(
    *(UNARY, REDUCERS, BINARY, PRODUCTS, ALIASES, SHOWN, COUNTS, SPREAD, PLACES, ALONG, KERNELS),
    *(
        JOINED,
        JOINED_ALONG,
        CUMULATIVE,
        FLIPPED,
        WRITTEN_OUT,
        SHAPED,
        POINTWISE,
        TYPES,
        TYPES.values(),
    ),
    ("var", "std", "load", "sqrt", "transpose", "astype", "to", "type", "flip", "take"),
    ("rearrange", "repeat", "einsum"),
)
"""The functions that have a meaning here."""
