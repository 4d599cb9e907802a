"""``einsum`` called as NumPy's is: a specification and arrays, or arrays with lists of axes.

The call has more than the component of a specification: ranks are there, so each ``...`` may stand for other axes of
each operand, aligned at the right; extents are there, so one of 1 repeats along what another operand has, and the order
of contraction is that of fewest multiplications; element types are joined as NumPy joins them; and what only arranges
the elements of one array is a view of it, as NumPy's is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ilang.codegen.call.arguments import (
    PLAIN,
    SUPPORTED,
    are_given,
    cast,
    check_threads,
    check_writable,
    named_type,
    read_array,
    shown,
    supported_array,
    wider,
)
from ilang.codegen.call.dispatch import LIKE, CallPlans
from ilang.codegen.call.target import DEVICES, check_target
from ilang.codegen.call.threads import THREADS
from ilang.codegen.components.component import Component
from ilang.codegen.components.program import WrittenProgram
from ilang.codegen.frameworks.foreign import library_of
from ilang.codegen.system.concurrency import kept
from ilang.core.calculus.contraction import Path
from ilang.core.diagnostic import DataError, DataTypeError, NotationError, ShapeError, counted
from ilang.core.ir.spec import Axis, AxisLabel, Fixed, ShapeSpec, Spec, SpecRow, output_shape
from ilang.core.ir.syntax import Einsum
from ilang.core.notation.einsum.contraction import contraction_path
from ilang.core.notation.einsum.specification import parse_spec
from ilang.core.notation.einsum.subscripts import check_dots, is_subscripts, letters, output_row
from ilang.core.record import record
from ilang.core.source import Source, Span

Array = Any
Shapes = tuple[tuple[int, ...], ...]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The axes 0 to 51 of lists of axes."""
SEARCHES = frozenset(
    (
        *("greedy", "optimal", "auto", "auto-hq", "eager", "opportunistic", "dp"),
        *("dynamic-programming", "branch-all", "branch-1", "branch-2"),
        *("random-greedy", "random-greedy-128"),
    )
)
"""Names that NumPy and opt_einsum give to searches for an order; there is one search here."""
CASTING_HELP = 'casting="same_kind" allows f64 to f32 and i64 to i32, and "unsafe" every cast'
AXES_HELP = f"axes are whole numbers below {len(LETTERS)}, or Ellipsis: einsum(x, [0, 1], y, [1, 2], [0, 2])"
PATH_HELP = 'a path is ["einsum_path", (0, 1), (0, 1)], as numpy.einsum_path gives it; True searches for one'

LAYOUTS = ("C", "F", "A", "K")
CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
"""The names that NumPy has for layouts and casts."""

Run = Callable[..., Any]
"""Called with arrays, ``target`` and ``threads``: the result."""

_PLANS: dict[tuple[object, ...], CallPlans] = {}
"""The plans of earlier calls, by specification and options."""
_READY: dict[tuple[object, ...], Run] = {}
"""The functions of calls that are more than a plan, by what these gave: also target, types and layouts of arrays."""
MOST_READY = 512


@record
class Asked:
    """The options of a call, as NumPy has them.

    ``optimize``: True, or the name of a search: contract pairs, in the order of fewest multiplications; False: in one
    loop nest; a path: in its order. ``dtype``: the element type in which everything is computed; by default that which
    NumPy gives the arrays together. ``order``: the layout of the result, "F", or "A": "F" where all arrays have it;
    else "C", and "K" is a view where nothing is computed. ``casting``: which casts may be made.
    """

    optimize: object = True
    dtype: Any = None
    order: Any = "K"
    casting: str = "safe"


def contract(
    given: Sequence[Any],
    asked: tuple[Any, ...] = (),
    out: Array = None,
    target: str = "c",
    threads: int | str | None = None,
) -> Array:
    """The result of an einsum of arrays.

    Args:
        given: a specification and its arrays; or arrays, each with a list of its axes, and perhaps that of the result.
        asked: the fields of ``Asked``, in order.
        out: an array for the result.
        target: as for components.
        threads: as for components; None for their default.

    Raises:
        NotationError: E0140 to E0147, E0152 (the specification), E0150 (another number of arrays). ShapeError: it does
            not fit the arrays. DataError: E0701 to E0716, E0719 (the order is none), E0748 (what is asked), E0749 (a
            cast).
    """
    threads = THREADS if threads is None else threads
    known = _answer_like_earlier(given, asked, target, threads) if out is None else None
    if known is not None:
        return known
    spec, operands = (given[0], given[1:]) if isinstance(given[0], str) else _spec_of_lists(given)
    wanted = _known_names(Asked(*asked))
    path = _path(wanted.optimize)
    if _is_foreign(operands):
        _check_plain(wanted, "arrays of NumPy")
        return _component_for(spec, operands, path)(
            *operands, out=out, target=target, threads=threads
        )
    if not is_subscripts(spec):
        _check_plain(wanted, "specifications as NumPy writes them")
        arrays = [supported_array(f"in{number}", array) for number, array in enumerate(operands)]
        component = _component_for(spec, arrays, path)
        result: Any = component(*arrays, out=out, target=target, threads=threads)
        _remember(given, asked, target, arrays, component)
        return result
    arrays = [read_array(f"in{number}", operand) for number, operand in enumerate(operands)]
    run: Run | None = None if out is not None else _view(spec, arrays, wanted, target)
    if run is None:
        kind = _computed_type(arrays, wanted, out)
        arrays = _converted(arrays, kind, wanted)
        component = _component_for(spec, arrays, path)
        if out is not None:
            return _written_into(out, kind, component, arrays, (wanted.casting, target, threads))
        logical, fortran = kind == np.dtype(bool), _is_fortran(wanted, operands)
        is_whole = not (logical or fortran) and component.program.wires.gives not in (None, (0,))
        run = component if is_whole else partial(_computed, component, logical, fortran)
    result = run(*arrays, target=target, threads=threads)
    _remember(given, asked, target, arrays, run)
    return result


def _is_foreign(operands: Sequence[Any]) -> bool:
    """Whether some operands are arrays of a GPU, or of another library than NumPy."""
    on_gpu = any(hasattr(operand, "__cuda_array_interface__") for operand in operands)
    return on_gpu or library_of(operands) is not None


def _answer_like_earlier(
    given: Sequence[Any], asked: tuple[Any, ...], target: str, threads: int | str
) -> Any:
    """The result of a call like an earlier one; None where there was none."""
    arrays = given[1:]
    try:
        plans = _PLANS.get((given[0], asked)) if target.__class__ is str and target == "c" else None
    except TypeError:  # the specification is an array, or the order is a list
        return None
    if plans is not None:
        table = plans.table
        if table is not None and threads.__class__ is int:
            result = table(arrays, None, threads)
            if result is not None:
                return result
        plan = plans.of(arrays)
        if plan is not None:
            return plan.answer(arrays, None, threads)
    try:
        run = _READY.get((given[0], asked, target, *map(LIKE, arrays)))
    except (AttributeError, TypeError):  # not all of them are arrays
        return None
    return None if run is None else run(*arrays, target=target, threads=threads)


def _remember(
    given: Sequence[Any], asked: tuple[Any, ...], target: str, arrays: Sequence[Array], run: Run
) -> None:
    """Keep what runs a call, for arrays like these: exactly NumPy's own class, and computed with as they are."""
    if len(arrays) + 1 != len(given) or not all(
        type(one) is np.ndarray and one is other
        for one, other in zip(given[1:], arrays, strict=True)
    ):
        return
    plan = run.program.plans.of(arrays) if isinstance(run, Component) and target == "c" else None
    try:
        if plan is None:
            kept(_READY, (given[0], asked, target, *map(LIKE, arrays)), lambda: run, MOST_READY)
        else:
            kept(_PLANS, (given[0], asked), CallPlans, MOST_READY).keep(arrays, plan)
    except TypeError:  # the order is a list
        return


# -- what is asked -----------------------------------------------------------------------------------------------------


def _known_names(wanted: Asked) -> Asked:
    """The options of a call, its layout in capitals. Raises DataError E0748."""
    order, casting = wanted.order, wanted.casting
    layout = "K" if order is None else order.upper() if isinstance(order, str) else order
    for name, value, known in (("order", layout, LAYOUTS), ("casting", casting, CASTINGS)):
        if not isinstance(value, str) or value not in known:
            listed = ", ".join(f'"{each}"' for each in known)
            message = f"{name}={shown(getattr(wanted, name))} is none that there is"
            raise DataError("E0748", message, help=f"pass one of {listed}")
    return Asked(wanted.optimize, wanted.dtype, layout, casting)


def _check_plain(wanted: Asked, taken: str) -> None:
    """Refuse what only ``taken`` can be asked for. Raises DataError E0748."""
    for name in ("dtype", "order", "casting"):
        value = getattr(wanted, name)
        is_usual = isinstance(value, str) and value == getattr(Asked, name)
        if value is not None and not is_usual:
            message = f"{name}={shown(value)} is for {taken}"
            raise DataError("E0748", message, help="convert the arrays before, or the result")


def _computed_type(arrays: Sequence[Array], wanted: Asked, out: Array) -> np.dtype[Any]:
    """The element type to compute in. Raises DataError E0703."""
    if wanted.dtype is not None:
        return _asked_type(wanted.dtype)
    kinds = [wider(f"in{number}", array.dtype) for number, array in enumerate(arrays)]
    kind: np.dtype[Any] = np.result_type(*kinds)
    joined = _joined([kind, out.dtype]) if isinstance(out, np.ndarray) else None
    return joined or kind


def _joined(kinds: Sequence[np.dtype[Any]]) -> np.dtype[Any] | None:
    """The element type that NumPy gives some together; None where it is none of ours."""
    try:
        joined = np.result_type(*kinds).newbyteorder("=")
    except TypeError:
        return None
    return joined if joined in SUPPORTED else None


def _asked_type(dtype: Any) -> np.dtype[Any]:
    """The element type that ``dtype=`` names. Raises DataError E0703."""
    kind = named_type(dtype)
    if kind is None:
        known = ", ".join(map(str, SUPPORTED))
        raise DataTypeError(
            "E0703", f"dtype={shown(dtype)} is no element type", help=f"types are {known}"
        )
    return kind


def _converted(arrays: Sequence[Array], kind: np.dtype[Any], wanted: Asked) -> list[Array]:
    """The arrays with the type to compute in; truth values as 0 and 1. Raises DataError E0749."""
    converted = []
    for number, array in enumerate(arrays):
        name = f"in{number}"
        if wanted.dtype is not None and not np.can_cast(array.dtype, kind, wanted.casting):  # type: ignore[arg-type]
            raise _no_cast(
                "E0749", f"{name} has {array.dtype}, and dtype= is {kind}", wanted.casting
            )
        converted.append(cast(name, array, kind))
    if kind == np.dtype(bool):
        return [array.astype(np.int64) for array in converted]
    return converted


def _no_cast(code: str, types: str, casting: str) -> DataError:
    return DataTypeError(
        code, f"{types}: casting={casting!r} allows no such cast", help=CASTING_HELP
    )


def _is_fortran(wanted: Asked, arrays: Sequence[Array]) -> bool:
    return wanted.order == "F" or (
        wanted.order == "A" and all(np.asarray(array).flags.f_contiguous for array in arrays)
    )


# -- what runs ---------------------------------------------------------------------------------------------------------


def _view(spec: str, arrays: Sequence[Array], wanted: Asked, target: str) -> Run | None:
    """A function that gives a view; None where elements, a layout or a type are computed, or all on a device."""
    if len(arrays) != 1 or wanted.order != "K" or target in DEVICES:
        return None
    if wanted.dtype is not None and _asked_type(wanted.dtype) != arrays[0].dtype:
        return None
    check_target(target)
    wider("in0", arrays[0].dtype)  # texts and objects are refused, whatever is done with them
    view = _arrangement(spec, arrays[0].shape)
    return None if view is None else partial(_viewed, view)


def _viewed(view: Callable[[Array], Array], array: Array, target: str, threads: int | str) -> Array:
    del target  # a view computes nothing
    check_threads(threads)
    return view(array)


def _computed(
    component: Component,
    is_logical: bool,
    is_fortran: bool,
    *arrays: Array,
    target: str,
    threads: int | str,
) -> Any:
    """The result of a component: of truth values, truth values; of rank 0, a number."""
    result = component(*arrays, target=target, threads=threads)
    result = result != 0 if is_logical else result
    result = np.asfortranarray(result) if is_fortran and 1 < result.ndim else result
    return result if result.ndim else result[()]


def _written_into(
    out: Any,
    kind: np.dtype[Any],
    component: Component,
    arrays: Sequence[Array],
    how: tuple[str, str, int | str],
) -> Any:
    """The result in an array that is given; computed beside it first, where it cannot be written as it is."""
    casting, target, threads = how
    check_writable("out", out)
    if not np.can_cast(kind, out.dtype, casting):  # type: ignore[arg-type]
        raise _no_cast("E0708", f"the result has {kind}, and out has {out.dtype}", casting)
    overlaps = any(np.may_share_memory(out, array) for array in arrays)
    if out.dtype == arrays[0].dtype and out.flags.num & PLAIN == PLAIN and not overlaps:
        return component(*arrays, out=out, target=target, threads=threads)
    beside = np.empty(out.shape, arrays[0].dtype)
    component(*arrays, out=beside, target=target, threads=threads)
    np.copyto(out, beside != 0 if kind == np.dtype(bool) else beside, casting="unsafe")
    return out


def component_of(spec: str, operands: Sequence[Any], optimize: object) -> Component:
    """The component that a call with these arrays runs. Raises as ``contract`` does."""
    return _component_for(spec, operands, _path(optimize))


def _component_for(spec: str, operands: Sequence[Any], order: Path | bool) -> Component:
    return _component_for_shapes(spec, tuple(tuple(operand.shape) for operand in operands), order)


def _path(optimize: object) -> Path | bool:
    """The order that ``optimize=`` asks for: a path, True for the best one, False for none. Raises DataError E0719."""
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


def _spec_of_lists(given: Sequence[Any]) -> tuple[str, list[Any]]:
    """A specification and its arrays, of arrays each with a list of its axes. Raises DataError E0716."""
    if len(given) < 2:
        raise DataTypeError(
            "E0716",
            f"a specification is a text, not {type(given[0]).__name__}",
            help='write it in quotes: einsum("ij,jk->ik", x, y)',
        )
    if isinstance(given[-1], str):
        message = "the specification stands after the arrays, and einsum takes it before them"
        raise DataTypeError("E0716", message, help=LAST_HELP)
    pairs = len(given) // 2
    terms = [_letters_of(given[2 * n + 1]) for n in range(pairs)]
    result = f"->{_letters_of(given[-1])}" if len(given) % 2 else ""
    return ",".join(terms) + result, [given[2 * n] for n in range(pairs)]


LAST_HELP = 'write einsum("ij,jk->ik", x, y), or ilang.einops.einsum(x, y, "i j, j k -> i k")'
"""Help where a specification comes last."""


def _letters_of(axes: Any) -> str:
    """A list of axes as letters: ``[0, Ellipsis, 2]``. Raises DataError E0716."""
    try:
        places = [axis if axis is Ellipsis else operator.index(axis) for axis in axes]
    except TypeError:
        message = f"{shown(axes)} is no list of axes"
        raise DataTypeError("E0716", message, help=AXES_HELP) from None
    if any(place is not Ellipsis and not 0 <= place < len(LETTERS) for place in places):
        message = f"{shown(axes)} has a number that is no axis"
        raise DataError("E0716", message, help=AXES_HELP)
    return "".join("..." if place is Ellipsis else LETTERS[place] for place in places)


# -- the component of a call -------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _component_for_shapes(text: str, shapes: Shapes, order: Path | bool) -> Component:
    """The component of a specification for arrays of some shapes; equal ones share what is compiled."""
    spec = _parsed(text)
    if len(spec.operands) != len(shapes):
        raise miscounted(len(spec.operands), len(shapes), spec.span)
    if not spec.subscripts:
        return _component_of_einsum(Einsum(spec, None, spec.span))
    spec = _repeated(_expanded(spec, shapes), shapes)
    path: Path = ()
    if order is True and 2 < len(shapes):
        path = contraction_path(spec, _extents(spec, shapes))
    elif isinstance(order, tuple):
        path = _completed_path(order, len(shapes))
    return _component_of_einsum(Einsum(spec, None, spec.span, path))


@lru_cache(maxsize=512)
def _parsed(text: str) -> Spec:
    return parse_spec(Source("<spec>", " ".join(text.splitlines())))


@lru_cache(maxsize=512)
def _arrangement(text: str, shape: tuple[int, ...]) -> Callable[[Array], Array] | None:
    """The arrangement of one array of a shape; None where something is computed, or it does not fit."""
    spec = _parsed(text)
    if len(spec.operands) != 1:
        return None
    spec = _expanded(spec, (shape,))
    return arrangement(letters(spec.operands[0]), letters(spec.result), shape)


@lru_cache(maxsize=256)
def _component_of_einsum(einsum: Einsum) -> Component:
    """The component of a specification: calls with one specification share what is compiled."""
    return Component(WrittenProgram(einsum))


def miscounted(wanted: int, given: int, span: Span | None) -> NotationError:
    """The error for another number of arrays than a specification has operands."""
    message = f"the specification has {counted(wanted, 'operand')}, and {are_given(given)}"
    help_line = "operands are separated by `,` or `;`: pass an array for each"
    return NotationError("E0150", message, span, help_line)


def _completed_path(path: Path, operands: int) -> Path:
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
    middle = tuple(AxisLabel(f"e{n}", term.span) for n in range(most - count, most))
    return output_shape(SpecRow((), None, (*row.leading, *middle, *row.trailing)), term.span)


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
            if isinstance(axis, AxisLabel):
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
    return output_shape(SpecRow((), None, axes), term.span)


def arrangement(
    axes: Sequence[str], result: Sequence[str], shape: Sequence[int]
) -> Callable[[Array], Array] | None:
    """The function that views an array as a result; None where that takes sums, or no array has such axes.

    Args:
        axes: the names of the dimensions of the array; equal names run together.
        result: those of the result, each once.
        shape: of the array.
    """
    extents = set(zip(axes, shape, strict=True))
    if set(axes) != set(result) or len(extents) != len(result):
        return None
    left, diagonals = list(axes), []
    for name in result:
        while 1 < left.count(name):
            one = left.index(name)
            other = left.index(name, one + 1)
            diagonals.append((one, other))
            left = [*left[:one], *left[one + 1 : other], *left[other + 1 :], name]
    return partial(_arranged, diagonals, [left.index(name) for name in result])


def _arranged(diagonals: Sequence[tuple[int, int]], order: Sequence[int], array: Array) -> Array:
    """The view of an array; a number where it has rank 0.

    Args:
        diagonals: pairs of dimensions of what is left, which go; the position along both is the last one then.
        order: for each dimension of the result, that of what is left.
        array: any.
    """
    view = array
    for one, other in diagonals:
        view = view.diagonal(axis1=one, axis2=other)
    view = view.transpose(order)
    if diagonals and array.flags.writeable:
        with suppress(ValueError):  # the memory has become read-only under the array
            view.flags.writeable = True
    return view if order else view[()]
