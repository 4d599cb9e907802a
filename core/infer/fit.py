"""Whether arrays fit a shaped program, and the extents they give it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ilang.core.diagnostic import InternalError, Label, ShapeError
from ilang.core.infer import conflicts
from ilang.core.ir.shaped import Assignment, Derivation, InputDimension, Reach, Shaped, Size
from ilang.core.source import Span

IN_EINX = re.compile(r"\beinx\s*\.\s*\w+\s*\(\s*[\"'][^\"']*$")
"""The end of a text before a place inside of an expression of einx."""
SAME_EXTENT = "one axis goes along both dimensions: give them the same extent"
ORDINALS = ("first", "second", "third", "fourth")
LARGEST_EXTENT = 2**62
"""Extents from here on are refused: index arithmetic is 64-bit."""


def fit_shaped(shaped: Shaped, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The extents, one per size of the program, of arrays of these shapes.

    Raises:
        ShapeError: E0503 (rank), E0505 (a shared axis with two extents), E0506 (a written extent), E0507 (negative or
            too large), E0517 (a stride that leaves a remainder), E0518 (a part that nothing is left for), E0572 (a
            window that does not fit), E0573 (a derived extent that an array contradicts), E0574 (a fixed index outside
            its dimension), E0576 (a position that its type does not hold), E0577 (parts that do not make an extent),
            E0578 (a part that may have any extent).
    """
    tensors = [shaped.tensors[value] for value in shaped.inputs]
    names = [tensor.name for tensor in tensors]
    extents = _fit(shaped, names, [len(tensor.dims) for tensor in tensors], shapes)
    for reach in shaped.reaches:
        if reach.size is not None:
            check_reach(reach, extents)
    for rule in shaped.derived:
        (_compose if rule.is_composed() else _derive)(shaped, rule, extents)
    fitted = []
    for number, (size, extent) in enumerate(zip(shaped.sizes, extents, strict=True)):
        if extent is None and number in _sizes_in_use(shaped):
            raise InternalError("E9906", f"nothing gives size {size.name}")
        fitted.append(extent or 0)
    for reach in shaped.reaches:
        check_reach(reach, fitted)
    return tuple(fitted)


def _sizes_in_use(shaped: Shaped) -> set[int]:
    """The sizes that something has; those of an input that is only compared, and not read, nothing has."""
    dims = {size for tensor in shaped.tensors for size in tensor.dims}
    return dims.union(*(node.sizes for node in shaped.nodes if isinstance(node, Assignment)))


def check_reach(reach: Reach, extents: Mapping[int, int | None] | Sequence[int | None]) -> None:
    """Refuse positions that are not inside their dimension, or that their type does not hold exactly.

    An extent is None where only arrays say it; those of the terms of an index are known.

    Raises:
        ShapeError: E0518, E0574, E0576.
    """
    if reach.size is not None:
        _check_inside(reach, extents[reach.size])
        return
    for position in reversed(reach.ends(extents)):
        if reach.limit < abs(position):
            message = (
                f"`{reach.span.text()}`: positions reach {position}, "
                f"and {reach.dtype} holds all whole numbers to {reach.limit}"
            )
            help_line = "convert the operand beside the position to f64 or i64"
            raise ShapeError("E0576", message, reach.span, help_line)


def _check_inside(reach: Reach, extent: int | None) -> None:
    """Refuse an extent that does not reach as far as it is read."""
    position, span = reach.index.offset, reach.span
    if extent is None or extent > position:
        return
    if reach.part is not None:
        message = f"`{span.text()}`: axis {reach.part} has no element, and here it has at least 1"
        help_line = "a window has at least one element, and at least one position"
        raise ShapeError("E0518", message, span, help_line)
    if extent == 0:
        message = f"`{span.text()}`: a dimension of extent 0 has no position"
        help_line = (
            "an index is below the extent, and an argmax has at least one element to look at"
        )
        raise ShapeError("E0574", message, span, help_line)
    message = f"index {position} is outside a dimension of extent {extent}"
    raise ShapeError("E0574", message, span, "positions count from 0")


def _known(derived: Derivation, extents: Sequence[int | None]) -> dict[int, int]:
    known = {n: extent for n in derived.sources() if (extent := extents[n]) is not None}
    for size in derived.sources():
        if size not in known:
            raise InternalError("E9906", f"nothing gives size {size}")
    return known


def _derive(shaped: Shaped, derived: Derivation, extents: list[int | None]) -> None:
    """Compute an extent that follows from others by a sum, or check it where it is known already."""
    divisor = derived.divisor.number
    extent, rest = derived.divided(_known(derived, extents))
    name = shaped.sizes[derived.size].name
    text = derived.span.text()
    if derived.exact and rest:
        total = extent * divisor + rest
        message = f"`{text}`: axis {name} would be {total}/{divisor}, which is no whole number"
        raise ShapeError("E0517", message, derived.span, conflicts.NOT_WHOLE)
    if extent < derived.least and derived.padding is None:
        raise _nothing_left(shaped, derived, extent, extents)
    if extent < least_positions(derived, extents):
        raise _misfit(derived, extents)
    _refuse_large(f"axis {name}", extent, derived.span)
    known = extents[derived.size]
    if known is not None and known != extent:
        raise _contradiction(shaped, derived, extent, known)
    extents[derived.size] = extent


def _refuse_large(axis: str, extent: int, span: Span) -> None:
    """Refuse a computed extent that index arithmetic cannot hold. Raises ShapeError E0507."""
    if extent >= LARGEST_EXTENT:
        message = f"the extent of {axis} would be {extent}; an extent is below 2^62"
        raise ShapeError("E0507", message, span, "give smaller extents")


def _nothing_left(
    shaped: Shaped, derived: Derivation, extent: int, extents: Sequence[int | None]
) -> ShapeError:
    """The refusal of an axis that is left less than it has at least."""
    name, text = shaped.sizes[derived.size].name, derived.span.text()
    message = (
        f"`{text}`: {extent} elements would be left for {name}, which has at least {derived.least}"
    )
    whole = [(c, size) for c, size in derived.whole.steps() if c > 0]
    if len(whole) == 1 and whole[0][0] == derived.divisor.number == 1:
        among, total = whole[0][1], extents[whole[0][1]] or 0
        whole_text = _written(shaped.sizes[among].name, text) or "the whole"
        message += f": {whole_text} is {total}, the others {total - extent}"
    return ShapeError("E0518", message, derived.span, conflicts.TOO_SHORT)


def _contradiction(shaped: Shaped, derived: Derivation, extent: int, known: int) -> ShapeError:
    """The refusal of an axis to which two indices, or an index and an array, give extents that differ."""
    text, name = derived.span.text(), shaped.sizes[derived.size].name
    others = (rule for rule in shaped.derived if not rule.is_composed() and rule is not derived)
    other = next((rule for rule in others if rule.size == derived.size), None)
    if other is None or other.span == derived.span:
        message = f"`{text}` has {extent} positions, and the extent of axis {name} is {known}"
        return ShapeError(
            "E0573", message, derived.span, "fix the padding or the arrays so that both agree"
        )
    message = f"one axis has {known} positions in `{other.span.text()}` and {extent} in `{text}`"
    labels = [Label(derived.span, f"{extent} positions"), Label(other.span, f"{known} positions")]
    help_line = "fix the offsets or the arrays so that both agree, or write the extent of the axis"
    return ShapeError("E0573", message, derived.span, help_line, labels)


def _compose(shaped: Shaped, rule: Derivation, extents: list[int | None]) -> None:
    """Compute an extent of a view, or check it where it is known already."""
    text = rule.span.text()
    name = _written(shaped.sizes[rule.size].name, text)
    axis = f"axis {name}" if name else "an axis"
    known = _known(rule, extents)
    over, under = (
        _made_of(shaped, tuple(each.sizes()), known, text) for each in (rule.whole, rule.divisor)
    )
    whole, parts = rule.whole.value(known), rule.divisor.value(known)
    if not parts:
        message = f"`{text}`: of {under}, one is empty, so {axis} may have any extent"
        raise ShapeError("E0578", message, rule.span, f"give the extent of {axis}")
    extent, rest = divmod(whole, parts)
    if rest:
        message = (
            f"`{text}`: {over} is not divided by {under}: "
            f"{axis} would be {whole}/{parts}, which is no whole number"
        )
        help_line = f"give an extent that {parts} divides"
        names = " x ".join(
            filter(None, (_written(shaped.sizes[size].name, text) for size in rule.divisor.sizes()))
        )
        help_line += f", or another size of {names}" if names else ""
        raise ShapeError("E0577", message, rule.span, help_line)
    _refuse_large(axis, extent, rule.span)
    given = extents[rule.size]
    if given is not None and given != extent:
        message = f"`{text}`: {axis} is {given}, and {over} make {extent}"
        help_line = "pass arrays whose extents multiply to the one that they are parts of"
        raise ShapeError("E0577", message, rule.span, help_line)
    extents[rule.size] = extent


def _written(name: str, text: str) -> str:
    """The name of a size as a text has it, ``s`` of ``s_0``; nothing for that of a number or of a whole dimension."""
    stem = re.sub(r"(_\d+)+$", "", name)
    return next((each for each in (name, stem) if re.search(rf"\b{each}\b", text)), "")


def _made_of(shaped: Shaped, sizes: Sequence[int], extents: Mapping[int, int], text: str) -> str:
    """``a = 4 (dimension 0 of x) and b = 2``; numbers have no name: ``7 (dimension 1 of x)``."""
    inputs = [shaped.tensors[value].name for value in shaped.inputs]
    factors = []
    for size in sizes:
        extent = extents[size]
        places = [f"dimension {p.dim} of {inputs[p.number]}" for p in shaped.sizes[size].places]
        name = _written(shaped.sizes[size].name, text)
        words = f"{name} = {extent}" if name else str(extent)
        factors.append(f"{words} ({places[0]})" if places else words)
    return " and ".join(factors)


def least_positions(derived: Derivation, extents: Sequence[int | None]) -> int:
    """The least extent: windows of an index expression that spread over several elements have a position."""
    if derived.padding is None:
        return derived.least
    spreads = any(1 < (extents[size] or 0) for _, size in derived.whole.steps()[1:])
    return 1 if spreads else derived.least


def _misfit(derived: Derivation, extents: Sequence[int | None]) -> ShapeError:
    (_, base), *windows = derived.whole.steps()
    if not windows:
        message = f"`{derived.span.text()}` begins past the end of a dimension of {extents[base]}"
        return ShapeError("E0572", message, derived.span, "make the offset smaller")
    positions = 1 + sum(-c * ((extents[size] or 0) - 1) for c, size in windows)
    message = f"a window of {positions} positions does not fit into an extent of {extents[base]}"
    if derived.padding:
        message += f" padded by {derived.padding // 2} on both ends"
    return ShapeError("E0572", message, derived.span, "make the window smaller, or pad: `(y+u-1)`")


def _fit(
    shaped: Shaped, names: Sequence[str], ranks: Sequence[int], shapes: Sequence[tuple[int, ...]]
) -> list[int | None]:
    """The extents that arrays of these shapes give, one per size; None for one that no array has.

    Args:
        shaped: the program.
        names: what messages call each input.
        ranks: the rank of each input.
        shapes: the shape of each array.

    Raises:
        ShapeError: E0503 (rank), E0505 (a shared axis with two extents), E0506 (a written extent), E0507 (negative or
            too large).
    """
    for name, rank, shape in zip(names, ranks, shapes, strict=True):
        if rank != len(shape):
            raise conflicts.wrong_rank(name, len(shape), rank)
        check_extents(name, shape)
    return [_extent(shaped, size, names, shapes) for size in shaped.sizes]


def check_extents(name: str, shape: Sequence[int]) -> None:
    """Refuse extents of an array that are below 0 or too large. Raises ShapeError E0507."""
    for dim, extent in enumerate(shape):
        if not 0 <= extent < LARGEST_EXTENT:
            message = (
                f"dimension {dim} of {name} is {extent}; an extent is at least 0 and below 2^62"
            )
            raise ShapeError("E0507", message, None, f"give {name} another shape")


def _extent(
    shaped: Shaped, size: Size, names: Sequence[str], shapes: Sequence[tuple[int, ...]]
) -> int | None:
    if not size.places:
        return size.fixed
    first = size.places[0]
    extent = shapes[first.number][first.dim]
    for place in size.places:
        place_extent = shapes[place.number][place.dim]
        if size.fixed is not None and place_extent != size.fixed:
            dimension_text = f"dimension {place.dim} of {names[place.number]}"
            name, text = size.name, place.span.text()
            message = (
                f"axis {name} is fixed at {size.fixed}, but {dimension_text} is {place_extent}"
            )
            if 1 < len(name) and not _written(name, text):
                message = (
                    f"`{text}` fixes {dimension_text} at {size.fixed}, and it is {place_extent}"
                )
            raise ShapeError("E0506", message, place.span, _extent_help(size.fixed, place.span))
        if place_extent != extent:
            again = _read_again(shaped, names, (first, extent), (place, place_extent))
            raise again or _unequal(size, names, (first, extent), (place, place_extent))
    return extent


def _extent_help(fixed: int, span: Span) -> str:
    """The help on another extent than the fixed one; an axis of einx is 1 where no output has its name."""
    before = span.source.text[: span.start]
    in_einx = span.source.name == "<einx>" or IN_EINX.search(before) is not None
    if fixed != 1 or not in_einx or not span.text().isidentifier():
        return f"pass extent {fixed} there"
    name = span.text()
    return f"an axis that no output has is 1: sum over it in brackets, `[{name}]`, or write it in the output"


def _read_again(
    shaped: Shaped,
    names: Sequence[str],
    one: tuple[InputDimension, int],
    other: tuple[InputDimension, int],
) -> ShapeError | None:
    """The error for two dimensions of one array, along which an axis goes that reads it twice; None of others."""
    value, extents = shaped.inputs[one[0].number], {place.dim: n for place, n in (one, other)}
    if one[0].number != other[0].number:
        return None
    for node in shaped.nodes:
        if not isinstance(node, Assignment):
            continue
        reads = [read.index for read in node.reads if read.value == value]
        for axis, name in enumerate(node.axes):
            along = [
                (extents[dim], f"the {ordinal} {names[one[0].number]} (dimension {dim})")
                for ordinal, index in zip(ORDINALS, reads, strict=False)
                for dim, part in enumerate(index)
                if dim in extents and part.axis() == axis
            ]
            unequal = dict(along)
            if 1 < len(unequal) and 1 < len(reads):
                places = " and ".join(f"{n} in {place}" for n, place in unequal.items())
                message = f"axis {name.name} is {places}"
                return ShapeError("E0505", message, node.span, SAME_EXTENT)
    return None


def _unequal(
    size: Size,
    names: Sequence[str],
    one: tuple[InputDimension, int],
    other: tuple[InputDimension, int],
) -> ShapeError:
    (a, left), (b, right) = one, other
    message = (
        f"axis {size.name} is {left} in {names[a.number]} (dimension {a.dim}) "
        f"and {right} in {names[b.number]} (dimension {b.dim})"
    )
    labels = [
        Label(b.span, f"{right} here, in {names[b.number]}"),
        Label(a.span, f"{left} here, in {names[a.number]}"),
    ]
    return ShapeError("E0505", message, b.span, SAME_EXTENT, labels)
