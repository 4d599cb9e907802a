"""The nodes that the leaves of a syntax tree become: one expression, constant or specification, its operands wired.

Example:
    in:   +ijk~ij of n2
    out:  n3 = fold + over k: n2[i,j,k]   for i j

Axes are the output's letters, then the operands' others in order of appearance.
"""

from __future__ import annotations

from collections.abc import Mapping

from ilang.core.calculus.affine import Affine, Within, axis_index, size_value, variables_of
from ilang.core.diagnostic import MeaningError, ScheduleError
from ilang.core.dtype import LARGEST_WHOLE
from ilang.core.ir import graph, syntax
from ilang.core.ir import scalar as scalars
from ilang.core.ir.operation import Operation
from ilang.core.ir.spec import Fixed
from ilang.core.notation.components.printer import print_tree
from ilang.core.ops import ARGUMENTS
from ilang.core.record import replace


def constant(node: syntax.Number) -> graph.Assignment:
    """A number: an assignment without axes."""
    digits = node.text.removeprefix("-")
    if digits.isdigit():
        number = int(digits.lstrip("0") or "0")  # Python reads no more than some thousand digits
        scalar = scalars.Constant(scalars.minus(number) if digits != node.text else number)
    else:
        scalar = scalars.Constant(float(node.text))
    return graph.Assignment((), (), (), scalar, None, None, node.text, node.span)


def operation(node: syntax.Einsum, slots: list[int]) -> Operation:
    """An einsum specification: the sum of products over the axes that the result lacks."""
    scalar = scalars.folded("mul", [scalars.Operand(number) for number in range(len(slots))])
    logic, text = node.spec, print_tree(node)
    return Operation(tuple(slots), scalar, "+", logic, text, node.span, node.schedule)


def assignment(node: syntax.Expression, slots: list[int]) -> graph.Assignment:
    """One index expression: its axes are the output's letters, then the operands' others in order of appearance."""
    axes = _axes([node.output, *node.leaves()])
    position = {letter: n for n, letter in enumerate(axes)}
    looked, kept = node.looked_up(), set(node.output.letters())
    reduced = not set(axes) - looked <= kept or bool(looked & kept)
    reads = tuple(
        graph.Read(
            slot,
            tuple(_affine(index, position) for index in pattern.indices),
            reduced,
            tuple(index.span for index in pattern.indices),
            pattern.span,
            tuple(within for guard in pattern.guards for within in _within(guard, position)),
        )
        for slot, pattern in zip(slots, node.inputs(), strict=True)
    )
    target = tuple(axis_index(position[axis.letter]) for axis in node.output.axes())
    symbol = node.op or "+"
    leaves, read, lookups = _leaves(node, position)
    return graph.Assignment(
        tuple(axes.values()),
        target,
        reads,
        leaves[0] if reduced else scalars.pointwise(symbol, leaves),
        symbol if reduced else None,
        node.schedule,
        print_tree(node),
        node.span,
        () if read == list(range(len(node.leaves()))) else tuple(read),
        lookups=lookups,
    )


def _leaves(
    node: syntax.Expression, position: Mapping[str, int]
) -> tuple[list[scalars.Scalar], list[int], tuple[graph.Lookup, ...]]:
    """The scalar of each operand, the written operand of each read, and the axes looked up, each with its read."""
    leaves: list[scalars.Scalar] = []
    read: list[int] = []
    lookups: list[graph.Lookup] = []
    number = 0
    for operand in node.operands():
        leaf = operand
        if isinstance(operand, syntax.Lookup):
            (letter,) = node.lookup_axes(operand)
            lookups.append(graph.Lookup(position[letter], len(read)))
            read.append(number)
            leaf, number = operand.table, number + 1
        if isinstance(leaf, syntax.Position):
            extent = leaf.extent
            index = size_value(position[extent.letter]) if extent else _summed(leaf, position)
            leaves.append(scalars.Position(index))
        else:
            leaves.append(scalars.Operand(len(read)))
            read.append(number)
        number += 1
    return leaves, read, tuple(lookups)


def extreme(node: syntax.Expression) -> syntax.Expression:
    """The reduction that an argmax or argmin is the position of."""
    if node.schedule is not None:
        message = "this expression becomes two assignments, and a schedule is that of one"
        help_line = "leave the schedule out: the compiler chooses one for each"
        raise ScheduleError("E0330", message, node.schedule.span, help_line)
    assert node.op is not None
    return replace(node, op=ARGUMENTS[node.op])


def argument(node: syntax.Expression, slot: int, most: int) -> graph.Assignment:
    """The first position at which an element is the extreme, or NaN: then that is NaN, too.

    in:   >@ij~i, and n1 = fold > over j: n0[i,j]
    out:  n2 = fold < over j: where(n0[i,j] == n1[i] or n0[i,j] != n0[i,j], @j, 2^63 - 1)
    """
    plain = assignment(extreme(node), [slot])
    (read,) = plain.reads
    (reduced,) = set(range(len(plain.axes))) - variables_of(plain.target)
    greatest = graph.Read(
        most, plain.target, False, tuple(i.span for i in node.output.indices), node.span
    )
    met = scalars.Apply("eq", (scalars.Operand(0), scalars.Operand(1)))
    odd = scalars.Apply("neq", (scalars.Operand(0), scalars.Operand(0)))
    chosen = (
        scalars.Apply("or", (met, odd)),
        scalars.Position(axis_index(reduced)),
        scalars.Constant(LARGEST_WHOLE["i64"]),
    )
    return replace(
        plain,
        reads=(read, greatest),
        scalar=scalars.Apply("where", chosen),
        acc="<",
        text=print_tree(node),
        some=(reduced,),
    )


def _summed(part: syntax.Position | syntax.Linear, position: Mapping[str, int]) -> Affine:
    """A sum of axes and a number as an index that need not stay in any dimension."""
    terms = tuple((term.coefficient, position[term.axis.letter]) for term in part.terms)
    return Affine(terms, part.offset, window=True)


def _axes(patterns: list[syntax.Leaf]) -> dict[str, graph.Axis]:
    """The axes of an expression by letter, in order of appearance; a written extent is kept.

    Raises:
        MeaningError: E0207 (two extents written for one axis).
    """
    axes: dict[str, graph.Axis] = {}
    for pattern in patterns:
        for axis in pattern.axes():
            axes.setdefault(axis.letter, graph.Axis(axis.letter, None, axis.span))
        written = pattern.indices if isinstance(pattern, syntax.Pattern) else [pattern]
        for index in written:
            for term in index.terms if isinstance(index, syntax.Linear | syntax.Position) else ():
                known = axes[term.axis.letter]
                if term.extent is None:
                    continue
                if known.extent not in (None, term.extent):
                    message = f"axis {known.name} is written with extent {known.extent} and with {term.extent}"
                    raise MeaningError("E0207", message, term.axis.span, "an axis has one extent")
                axes[known.name] = replace(known, extent=term.extent)
    return axes


def _affine(index: syntax.Index, position: Mapping[str, int]) -> Affine:
    match index:
        case syntax.Axis():
            return axis_index(position[index.letter])
        case Fixed():
            return Affine((), index.position)
        case syntax.Linear():
            return _summed(index, position)


def _within(guard: syntax.Guard, position: Mapping[str, int]) -> list[Within]:
    """A guard as differences that are at least 0: ``j<i+3`` is 0 <= i - j + 2."""
    more, less = guard.left, guard.right
    if guard.relation in ("<", "<="):
        more, less = less, more
    steps: dict[int, int] = {}
    for sign, part in ((1, more), (-1, less)):
        for term in part.terms:
            axis = position[term.axis.letter]
            steps[axis] = steps.get(axis, 0) + sign * term.coefficient
    offset = more.offset - less.offset - (guard.relation in ("<", ">"))
    terms = tuple((c, axis) for axis, c in steps.items() if c)
    difference = Within(Affine(terms, offset, window=True), None)
    if guard.relation != "==":
        return [difference]
    opposite = Affine(tuple((-c, axis) for c, axis in terms), -offset, window=True)
    return [difference, Within(opposite, None)]
