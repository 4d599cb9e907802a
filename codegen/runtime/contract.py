"""``einsum`` called as NumPy's is: a specification and arrays, or arrays with lists of axes.

What is special about the call, beside the component that the specification is: ranks are there, so each ``...`` may
stand for other axes of each operand, aligned at the right; extents are there, so one of 1 repeats along what another
operand has, and the order of contraction is that of fewest multiplications; element types are joined as NumPy joins
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ilang.codegen.runtime.arguments import SUPPORTED, read_array, shown, supported_array
from ilang.codegen.runtime.component import LIKE, Component
from ilang.core.diagnostic import DataError, NotationError, ShapeError, counted
from ilang.core.ir.spec import Axis, Fixed, Label, ShapeSpec, Spec, SpecRow
from ilang.core.ir.syntax import Einsum
from ilang.core.notation.arity import wires_of
from ilang.core.notation.contraction import Path, contraction_path
from ilang.core.notation.einsum import parse_spec
from ilang.core.notation.subscripts import check_dots, is_subscripts, letters, output_row
from ilang.core.source import Source, Span

Array = Any
Shapes = tuple[tuple[int, ...], ...]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The axes 0 to 51 of lists of axes."""
SEARCHES = frozenset(
    ("greedy", "optimal", "auto", "auto-hq", "dp", "branch-all", "branch-1", "branch-2")
)
"""Names that NumPy and opt_einsum give to searches for an order; there is one search here."""
PATH_HELP = 'a path is ["einsum_path", (0, 1), (0, 1)], as numpy.einsum_path gives it; True searches for one'


_READY: dict[tuple[object, ...], Component] = {}
"""Components by what calls give: the specification, ``optimize``, and what arrays are like."""
MOST_READY = 512


def contract(
    given: Sequence[Any],
    out: Array = None,
    optimize: object = True,
    dtype: Any = None,
    target: str = "c",
    threads: int = 1,
) -> Array:
    """The result of an einsum of arrays.

    Args:
        given: a specification and its arrays; or arrays, each with a list of its axes, and perhaps that of the result.
        out: an array for the result.
        optimize: True, or the name of a search: contract pairs, in the order of fewest multiplications; False: in one
            loop nest; a path: in its order.
        dtype: the element type in which everything is computed; by default that which NumPy gives the arrays together.
        target: as for components.
        threads: as for components.

    Raises:
        NotationError: E0140 to E0147, E0152 (the specification), E0150 (another number of arrays). ShapeError: it does
            not fit the arrays. DataError: E0701 to E0716, E0719 (the order is none).
    """
    if dtype is None and out is None:
        known = _known(given, optimize)
        if known is not None:
            return known(*given[1:], target=target, threads=threads)
    spec, operands = (given[0], given[1:]) if isinstance(given[0], str) else _spelled(given)
    order = _path(optimize)
    if any(hasattr(operand, "__cuda_array_interface__") for operand in operands):
        return _of(spec, operands, order)(*operands, out=out, target=target, threads=threads)
    if not is_subscripts(spec):
        arrays = [supported_array(f"in{number}", array) for number, array in enumerate(operands)]
        component = _of(spec, arrays, order)
        if isinstance(optimize, bool) and dtype is None:
            _remember(spec, optimize, given[1:], arrays, component)
        return component(*arrays, out=out, target=target, threads=threads)
    arrays = [read_array(f"in{number}", operand) for number, operand in enumerate(operands)]
    kind = np.result_type(*arrays) if dtype is None else _type(dtype)
    logical = kind == np.dtype(bool)
    plain = [array.astype(np.int64 if logical else kind, copy=False) for array in arrays]
    component = _of(spec, plain, order)
    if not logical and not _is_cast(out, kind):
        if isinstance(optimize, bool) and dtype is None:
            _remember(spec, optimize, given[1:], plain, component)
        return component(*plain, out=out, target=target, threads=threads)
    result = component(*plain, target=target, threads=threads)
    result = result != 0 if logical else result
    if out is None:
        return result
    if not isinstance(out, np.ndarray) or out.shape != result.shape:
        return component(
            *plain, out=out, target=target, threads=threads
        )  # which says what is wrong
    np.copyto(out, result, casting="same_kind")
    return out


def _type(dtype: Any) -> np.dtype[Any]:
    """What ``dtype=`` names. Raises DataError E0703."""
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        known = ", ".join(map(str, SUPPORTED))
        raise DataError(
            "E0703", f"dtype={shown(dtype)} is no element type", help=f"types are {known}"
        ) from None
    return kind


def _is_cast(out: Array, kind: np.dtype[Any]) -> bool:
    """Whether a result is computed beside its output array, which has another layout, or a type that it is cast to."""
    if not isinstance(out, np.ndarray) or not np.can_cast(kind, out.dtype, "same_kind"):
        return False
    return out.dtype != kind or not out.flags.c_contiguous


def _known(given: Sequence[Any], optimize: object) -> Component | None:
    """The component of a call like an earlier one."""
    try:
        return _READY.get((given[0], optimize, *map(LIKE, given[1:])))
    except (AttributeError, TypeError):  # not all of them are arrays, or the order is a list
        return None


def _remember(
    spec: str, optimize: bool, given: Sequence[Any], plain: Sequence[Array], component: Component
) -> None:
    """Keep the component for arrays like these: exactly NumPy's own class, and computed with as they are."""
    if all(
        type(one) is np.ndarray and one is other for one, other in zip(given, plain, strict=True)
    ):
        if MOST_READY <= len(_READY):
            _READY.clear()
        _READY[(spec, optimize, *map(LIKE, given))] = component


def component_of(spec: str, operands: Sequence[Any], optimize: object) -> Component:
    """The component that a call with these arrays runs. Raises as ``contract`` does."""
    return _of(spec, operands, _path(optimize))


def _of(spec: str, operands: Sequence[Any], order: Path | bool) -> Component:
    """The component of a specification for arrays."""
    return _component(spec, tuple(tuple(operand.shape) for operand in operands), order)


def _path(optimize: object) -> Path | bool:
    """What ``optimize=`` asks for: an order, True for the best one, False for none. Raises DataError E0719."""
    if optimize is None or isinstance(optimize, bool | np.bool_):
        return bool(optimize)
    if isinstance(optimize, str):
        if optimize in SEARCHES:
            return True
        known = ", ".join(sorted(SEARCHES))
        message = f"optimize={shown(optimize)} names no search for an order of contraction"
        raise DataError(
            "E0719", message, help=f"searches are {known}; or pass True, False or a path"
        )
    if isinstance(optimize, Sequence) and optimize:
        if isinstance(optimize[0], str) and optimize[0] in SEARCHES:
            return True  # with a limit of memory, which no search here needs
        steps = optimize[1:] if optimize[0] == "einsum_path" else optimize
        if all(
            isinstance(step, tuple | list) and all(type(n) is int for n in step) for step in steps
        ):
            return tuple(tuple(step) for step in steps)
    raise DataError(
        "E0719", f"optimize={shown(optimize)} is no order of contraction", help=PATH_HELP
    )


def _spelled(given: Sequence[Any]) -> tuple[str, list[Any]]:
    """A specification and its arrays, of arrays each with a list of its axes. Raises DataError E0716."""
    if len(given) < 2:
        raise DataError(
            "E0716",
            f"a specification is a text, not {type(given[0]).__name__}",
            help='write it in quotes: einsum("ij,jk->ik", x, y)',
        )
    pairs = len(given) // 2
    terms = [_listed(given[2 * n + 1]) for n in range(pairs)]
    result = f"->{_listed(given[-1])}" if len(given) % 2 else ""
    return ",".join(terms) + result, [given[2 * n] for n in range(pairs)]


def _listed(axes: Any) -> str:
    """A list of axes as letters: ``[0, Ellipsis, 2]``. Raises DataError E0716."""
    try:
        return "".join("..." if axis is Ellipsis else LETTERS[_place(axis)] for axis in axes)
    except (TypeError, IndexError):
        raise DataError(
            "E0716",
            f"{shown(axes)} is no list of axes",
            help=f"axes are whole numbers below {len(LETTERS)}, or Ellipsis: einsum(x, [0, 1], y, [1, 2], [0, 2])",
        ) from None


def _place(axis: Any) -> int:
    number = int(axis.__index__()) if hasattr(axis, "__index__") else -1
    if number < 0:
        raise IndexError
    return number


# -- the component of a call -------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _component(text: str, shapes: Shapes, order: Path | bool) -> Component:
    """The component of a specification for arrays of some shapes; equal ones share what is compiled."""
    spec = parse_spec(Source("<spec>", " ".join(text.splitlines())))
    if len(spec.operands) != len(shapes):
        raise miscounted(len(spec.operands), len(shapes), spec.span)
    if not spec.subscripts:
        return _shared(Einsum(spec, None, spec.span))
    spec = _repeated(_expanded(spec, shapes), shapes)
    path: Path = ()
    if order is True and 2 < len(shapes):
        path = contraction_path(spec, _extents(spec, shapes))
    elif isinstance(order, tuple):
        path = _checked(order, len(shapes))
    return _shared(Einsum(spec, None, spec.span, path))


@lru_cache(maxsize=256)
def _shared(einsum: Einsum) -> Component:
    """The component of a specification: calls with one specification share what is compiled."""
    return Component(einsum, wires_of(einsum, {}))


def miscounted(wanted: int, given: int, span: Span | None) -> NotationError:
    """The error for another number of arrays than a specification has operands."""
    arrays = f"{counted(given, 'array')} {'is' if given == 1 else 'are'} given"
    message = f"the specification has {counted(wanted, 'operand')}, and {arrays}"
    help_line = "operands are divided by `,` or `;`: pass an array for each"
    return NotationError("E0150", message, span, help_line)


def _checked(path: Path, operands: int) -> Path:
    """A path, completed where it leaves several tensors. Raises DataError E0719."""
    left = operands
    for step in path:
        if not step or len(set(step)) < len(step) or not all(0 <= n < left for n in step):
            message = f"{step} is no contraction of {counted(left, 'tensor')}, numbered from 0"
            raise DataError("E0719", message, help=PATH_HELP)
        left += 1 - len(step)
    return path if left == 1 and path else (*path, tuple(range(left)))


def _expanded(spec: Spec, shapes: Shapes) -> Spec:
    """The specification with axes in place of each ``...``, aligned at the right as NumPy aligns them."""
    counts = [
        len(shape) - len(term.axes()) for term, shape in zip(spec.operands, shapes, strict=True)
    ]
    dotted = [output_row(term).variable is not None for term in spec.operands]
    for number, (count, dots, term) in enumerate(zip(counts, dotted, spec.operands, strict=True)):
        if count < 0 or (count and not dots):
            raise _misfit(number, len(shapes[number]), term, dots)
    most = max((count for count, dots in zip(counts, dotted, strict=True) if dots), default=0)
    if most:
        check_dots(spec)
    operands = tuple(
        _with_axes(term, most, count if dots else 0)
        for term, count, dots in zip(spec.operands, counts, dotted, strict=True)
    )
    return Spec(
        operands,
        _with_axes(spec.result, most, most),
        spec.named,
        spec.text,
        spec.span,
        subscripts=True,
    )


def _with_axes(term: ShapeSpec, most: int, count: int) -> ShapeSpec:
    """A shape with the last ``count`` of ``most`` axes where it has an ellipsis."""
    row = output_row(term)
    if row.variable is None:
        return term
    middle = tuple(Label(f"e{n}", term.span) for n in range(most - count, most))
    empty = SpecRow((), None, ())
    whole = SpecRow((), None, (*row.leading, *middle, *row.trailing))
    return ShapeSpec((empty, empty, whole), term.span)


def _misfit(number: int, rank: int, term: ShapeSpec, dots: bool) -> ShapeError:
    """An array of another rank than its operand in the specification has."""
    wanted = f"{'at least ' if dots else ''}{len(term.axes())}"
    text = term.span.text().strip()
    message = f"in{number} has rank {rank}, but `{text}` reads it with rank {wanted}"
    help_line = f"pass an array of rank {wanted} as in{number}, or change its letters"
    return ShapeError("E0503", message, term.span, help_line)


def _extents(spec: Spec, shapes: Shapes) -> Mapping[str, int]:
    """The extents of axes, by name; of several, the largest."""
    extents: dict[str, int] = {}
    for term, shape in zip(spec.operands, shapes, strict=True):
        for axis, extent in zip(term.axes(), shape, strict=True):
            if isinstance(axis, Label):
                extents[axis.name] = max(extent, extents.get(axis.name, 0))
    return extents


def _repeated(spec: Spec, shapes: Shapes) -> Spec:
    """The specification in which an axis of extent 1 that another operand has longer is read at 0, and so repeated."""
    sizes: dict[str, set[int]] = {}
    for term, shape in zip(spec.operands, shapes, strict=True):
        for name, extent in zip(letters(term), shape, strict=True):
            sizes.setdefault(name, set()).add(extent)
    short = {name for name, extents in sizes.items() if len(extents) == 2 and 1 in extents}
    if not short:
        return spec
    operands = tuple(_at_zero(t, s, short) for t, s in zip(spec.operands, shapes, strict=True))
    return Spec(operands, spec.result, spec.named, spec.text, spec.span, subscripts=True)


def _at_zero(term: ShapeSpec, shape: tuple[int, ...], short: set[str]) -> ShapeSpec:
    """A shape read at 0 where it has extent 1 in an axis that is longer in other operands."""
    names = letters(term)
    long = {name for name, extent in zip(names, shape, strict=True) if extent != 1}
    axes: tuple[Axis, ...] = tuple(
        Fixed(0, axis.span) if name in short - long else axis
        for axis, name in zip(term.axes(), names, strict=True)
    )
    empty = SpecRow((), None, ())
    return ShapeSpec((empty, empty, SpecRow((), None, axes)), term.span)
