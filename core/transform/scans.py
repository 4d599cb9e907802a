"""Scans: reductions over a triangle whose terms do not depend on the axis along which the triangle grows.

Example, cumulative sums as windows that reach outside, and as choices:
    in:   out[k] = sum in0[k+j-8] over j, where 0 <= k+j-8 < n
    in:   t[k,j] = in0[j] if j <= k else 0;  out[k] = sum t[k,j] over j
    out:  out[k] = sum in0[j] over j, where 0 <= k-j

In this form the terms of an element are those of the one before, or after, and a few more: where the loop along the
axis stands around the reduction, the accumulator is carried from one iteration to the next (``passes/cpu/carried.py``).
What a choice leaves out must change nothing: it is the neutral element of the reduction. An infinite factor times 0 is
no such element, so a product with a mask is no scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from ilang.core.calculus.affine import Affine, Within, axis_index, with_extents
from ilang.core.ir.assignments import reading, reindexed
from ilang.core.ir.graph import Axis
from ilang.core.ir.scalar import Apply, Operand, Position, Scalar, neutral, scalars_within
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.record import mapped, replace
from ilang.core.transform.conditions import Bounds, conditions
from ilang.core.transform.extended import ExtendedProgram

T = TypeVar("T")
LEAST = 16
"""Elements of a scan at least, where that is known: a result of fewer has few terms to add again."""


Scan = tuple[Assignment, int, int]
"""A reduction in the form of a scan, the output axis along which it goes, and the reduced one that it goes over."""


def scans_reduced(shaped: Shaped) -> Shaped:
    """The program whose scans, where nobody wrote another schedule, have their form; itself where there are none."""
    new = ExtendedProgram(shaped)
    for value, (scan, _, _) in scans_of(shaped).items():
        node = shaped.assignment(value)
        inside = {*node.values()} - {*scan.values()}
        producers = (shaped.nodes[each] for each in inside)
        is_written = any(isinstance(n, Assignment) and n.schedule is not None for n in producers)
        if scan != node and node.schedule is None and not is_written:
            new.nodes[value] = scan
    same = all(a is b for a, b in zip(new.nodes, shaped.nodes, strict=True))
    return shaped if same else new.result()


def scans_of(shaped: Shaped) -> dict[int, Scan]:
    """The scans of a program, by their values."""
    scans = ((value, scan_of(shaped, value)) for value in range(len(shaped.nodes)))
    return {value: scan for value, scan in scans if scan is not None}


def scan_of(shaped: Shaped, value: int) -> Scan | None:
    """The scan that a reduction is; None where it is none, or a short one."""
    node = shaped.nodes[value]
    if not isinstance(node, Assignment) or node.acc is None or node.base is not None:
        return None
    if node.scatters() or not node.reduced_axes() or any(axis.measured for axis in node.axes):
        return None
    direct = _direct(shaped, node)
    forms = (direct, *_straightened(direct)) if direct.guards else ()
    scans = (scan for form in forms if (scan := _scan(shaped, form)) is not None)
    return next(scans, None)


def _scan(shaped: Shaped, node: Assignment) -> Scan | None:
    """The scan that a reduction is as it stands, without the conditions that others imply."""
    known = ((each, lambda n: shaped.sizes[n].fixed) for each in conditions(node.guards))
    every = (with_extents(*each) for each in known)
    held = Bounds(shaped.sizes, node).least(every)
    free = _free_axes(node)
    for along in node.output_axes():
        meeting = [each for each in held if along in each.axes()]
        if along not in free or len(meeting) != 1 or meeting[0].looked:
            continue
        (condition,) = meeting
        others = [(c, axis) for c, axis in condition.steps() if axis != along]
        if len(others) != 1 or abs(others[0][0]) != 1 or abs(condition.coefficient(along)) != 1:
            continue
        over = others[0][1]
        extents = [shaped.sizes[node.sizes[axis]].fixed for axis in (along, over)]
        is_short = any(extent is not None and extent < LEAST for extent in extents)
        if over in node.reduced_axes() and over not in _rested_on(node) and not is_short:
            form = replace(node, guards=tuple(Within(each, None) for each in held))
            return form, along, over
    return None


def _free_axes(node: Assignment) -> set[int]:
    """The axes that no term depends on, its own conditions aside."""
    taken = {axis for read in node.reads for part in read.index for axis in part.axes()}
    taken |= {axis for read in node.reads for guard in read.guards for axis in guard.index.axes()}
    positions = (part for part in scalars_within(node.scalar) if isinstance(part, Position))
    taken |= {axis for part in positions for axis in part.index.axes()}
    return set(range(len(node.axes))) - taken - _rested_on(node)


def _rested_on(node: Assignment) -> set[int]:
    """The axes at which elements are looked up."""
    return {axis for index in node.indices() for axis in index.rests_on()}


# -- choices and guards as guards of the reduction ---------------------------------------------------------------------


def _direct(shaped: Shaped, node: Assignment) -> Assignment:
    """A reduction of what values inside it choose, where they choose it: itself where they compute anything else."""
    while True:
        chosen = _without_choice(shaped, node)
        if chosen is None:
            producer = _producer(shaped, node)
            chosen = None if producer is None else _without_choice(shaped, producer)
        if chosen is None:
            return node
        node = chosen


def _without_choice(shaped: Shaped, node: Assignment) -> Assignment | None:
    """A reduction under the conditions under which its term is chosen, or read; None where that is not all it is."""
    scalar, dtype = node.scalar, node.scalar.dtype or ""
    nothing = neutral(node.acc or "", dtype)
    if isinstance(scalar, Operand):
        (read,) = node.reads if len(node.reads) == 1 else (None,)
        if read is None or not read.guards or nothing.value != 0:
            return None
        return replace(node, reads=(replace(read, guards=()),), guards=(*node.guards, *read.guards))
    if not isinstance(scalar, Apply) or scalar.primitive != "where":
        return None
    condition, then, otherwise = scalar.arguments
    within = _within(shaped, node, condition)
    if within is None or otherwise != nothing:
        return None
    return reading(replace(node, guards=(*node.guards, *within)), node.reads, then)


def _within(shaped: Shaped, node: Assignment, condition: Scalar) -> tuple[Within, ...] | None:
    """A comparison of positions as conditions on axes; None of any other scalar."""
    if isinstance(condition, Operand):
        read = node.reads[condition.number]
        inner = None if read.guards else _pointwise(shaped, read)
        return None if inner is None else _within(shaped, *_at(inner, read))
    if not isinstance(condition, Apply) or len(condition.arguments) != 2:
        return None
    one, other = condition.arguments
    if condition.primitive == "and":
        parts = [_within(shaped, node, each) for each in (one, other)]
        return None if None in parts else tuple(each for part in parts if part for each in part)
    if not isinstance(one, Position) or not isinstance(other, Position):
        return None
    less = {"lt": 1, "lte": 0}.get(condition.primitive)
    more = {"gt": 1, "gte": 0}.get(condition.primitive)
    if less is not None:
        return (Within((other.index - one.index - less).merged(), None),)
    return None if more is None else (Within((one.index - other.index - more).merged(), None),)


def _at(node: Assignment, read: Read) -> tuple[Assignment, Scalar]:
    """A pointwise value at the index of a read, and its scalar there."""
    place = {
        axis: part
        for target, part in zip(node.target, read.index, strict=True)
        if (axis := target.axis()) is not None
    }
    moved = reindexed(node, place)
    return moved, moved.scalar


def _pointwise(shaped: Shaped, read: Read) -> Assignment | None:
    """The value that a read delivers, where each element is computed by itself; None of any other."""
    node = shaped.nodes[read.value]
    if not isinstance(node, Assignment) or node.acc is not None or node.base is not None:
        return None
    is_plain = not node.lookups() and not node.guards
    whole = all(part.axis() is not None or part == Affine(()) for part in node.target)
    looked = any(part.looked for part in read.index)
    return node if is_plain and whole and not looked else None


def _producer(shaped: Shaped, node: Assignment) -> Assignment | None:
    """A reduction of nothing but another value with the scalar and the reads of that in its place."""
    if not isinstance(node.scalar, Operand) or len(node.reads) != 1 or node.reads[0].guards:
        return None
    (read,) = node.reads
    inner = _pointwise(shaped, read)
    if inner is None or inner.scalar.dtype != node.scalar.dtype or not _chooses(inner):
        return None
    moved, scalar = _at(inner, read)
    return replace(node, reads=moved.reads, scalar=scalar, operands=())


def _chooses(node: Assignment) -> bool:
    """Whether a value is chosen, or read under a condition."""
    if isinstance(node.scalar, Operand):
        return any(read.guards for read in node.reads)
    return isinstance(node.scalar, Apply) and node.scalar.primitive == "where"


# -- windows as triangles ----------------------------------------------------------------------------------------------


def _straightened(node: Assignment) -> Iterator[Assignment]:
    """A reduction whose windows along a dimension are walked by positions in that, whichever window has them.

    The axis of the window becomes that of the dimension, and its extent a condition.
    """
    reduced, outputs = set(node.reduced_axes()), set(node.output_axes())
    for guard in dict.fromkeys(node.guards):
        if guard.size is None or guard.index.looked:
            continue
        for step, axis in guard.index.merged().steps():
            if axis in reduced and abs(step) == 1 and outputs & guard.index.variables():
                rest = guard.index.merged().without((axis,))
                place = {axis: step * (axis_index(axis) - rest)}
                yield _straight(node, axis, guard.size, place)


def _straight(node: Assignment, axis: int, size: int, place: Mapping[int, Affine]) -> Assignment:
    """A reduction one axis of which walks another dimension, from where its old index follows."""

    def moved(index: Affine) -> Affine:
        if axis not in index.axes():
            return index
        other = index.substituted(place).merged()
        plain = axis_index(axis)
        return plain if replace(other, window=False) == plain else other

    inside = Within(place[axis], node.sizes[axis])
    straight = mapped(node, Affine, moved)
    return replace(
        straight,
        sizes=_with(node.sizes, axis, size),
        axes=_with(node.axes, axis, Axis(node.axes[axis].name, None, node.span)),
        guards=(*straight.guards, inside),
    )


def _with(items: Sequence[T], at: int, item: T) -> tuple[T, ...]:
    return (*items[:at], item, *items[at + 1 :])
