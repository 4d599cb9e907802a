"""The factor of an accumulator in the derivative of an assignment, beside what flows through it, either way.

max, min    an equal share for every winner: (f == result) / (how many there are)
product     the product of what stands before and after: no division, so zeros are no special case
"""

from __future__ import annotations

from ilang.core.calculus.affine import Affine, Within, axis_index
from ilang.core.diagnostic import MeaningError
from ilang.core.ir.assignments import reindexed, without_axes
from ilang.core.ir.graph import Axis
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Constant, Operand, Scalar
from ilang.core.ir.shaped import Assignment, Read
from ilang.core.record import replace
from ilang.core.transform.building import ProgramBuilder
from ilang.core.transform.derivatives import chosen, compared, converted, over, times

LOGIC = frozenset(("&&", "||", "^^"))
"""Accumulators through which nothing flows."""

Extra = tuple[Read, ...]


def extreme(
    new: ProgramBuilder, value: ValueId, node: Assignment, moving: Scalar, start: int
) -> tuple[Scalar, Extra]:
    """An equal share for every element that is the maximum, or the minimum, of what moves; and what it reads.

    A NaN has no winner, so that NaN moves through every element of it; a base may itself be what is greatest.

    Args:
        new: the program under construction.
        value: the maximum.
        node: the assignment that computes it.
        moving: over the reads of the assignment and others before ``start``.
        start: the number of the first read that is added.
    """
    dtype, tensor = node.scalar.dtype or "", new.tensors[value]
    one, zero = Constant(1.0, dtype), Constant(0.0, dtype)

    def won(number: int) -> Scalar:
        """Whether an element is the result, which read ``number`` delivers."""
        return compared("eq", node.scalar, converted(Operand(number, tensor.dtype), dtype))

    result = Read(value, node.target)
    counted = replace(
        node,
        reads=(*node.reads, result),
        scalar=chosen(won(len(node.reads)), one, zero),
        acc=None,
        base=None,
        operands=(),
        text=f"how many are {tensor.name}",
    )
    winners = new.accumulated(counted, dtype, tensor.dims, f"n{tensor.name}")
    many = Operand(start + 1, dtype)
    lost = over(zero, many) if node.base is None else zero
    share = chosen(won(start), over(moving, many), lost)
    return share, (result, Read(winners, node.target))


def product(
    new: ProgramBuilder, node: Assignment, moving: Scalar, start: int
) -> tuple[Scalar, Extra]:
    """The product of what moves with all other factors: those before, and those after, in the order of the axes.

    Raises:
        MeaningError: E0260 (products into parts of a tensor).
    """
    if node.base is not None:
        raise stuck(node, "multiplies into one place from several")
    extra: list[Read] = []
    for depth in range(len(node.reduced_axes())):
        for before in (True, False):
            extra.append(_others(new, node, depth, before))
            moving = times(moving, Operand(start + len(extra) - 1, node.scalar.dtype))
    return moving, tuple(extra)


def stuck(node: Assignment, why: str) -> MeaningError:
    """The error for an assignment that has no derivative."""
    return MeaningError(
        "E0260",
        f"nothing can flow back through `{node.text}`: it {why}",
        node.span,
        "leave the inputs that it depends on out of wrt=",
    )


def _others(new: ProgramBuilder, node: Assignment, depth: int, before: bool) -> Read:
    """The product of the factors that agree in the first reduced axes and stand before, or after, in the next.

    The factors are those of axes of their own, beside the axes of the assignment: the product is over
    all of these but the reduced ones beyond ``depth``, which do not matter to it.
    """
    reduced = node.reduced_axes()
    moved = reduced[depth:]
    kept = [axis for axis in range(len(node.axes)) if axis not in reduced[depth + 1 :]]
    count = len(node.axes)
    names = {axis: count + n for n, axis in enumerate(moved)}
    axis, earlier = reduced[depth], names[reduced[depth]]
    terms = ((1, axis), (-1, earlier)) if before else ((1, earlier), (-1, axis))
    apart = Within(Affine(terms, -1, window=True), None)
    dims = tuple(node.sizes[axis] for axis in kept)
    dtype = node.scalar.dtype or ""
    inner = reindexed(
        replace(node, target=()), {axis: axis_index(new) for axis, new in names.items()}
    )
    inner = replace(
        inner,
        axes=(*node.axes, *(Axis(f"{node.axes[a].name}2", None, node.span) for a in moved)),
        sizes=(*node.sizes, *(node.sizes[axis] for axis in moved)),
        target=tuple(axis_index(axis) for axis in kept),
        text=f"factors {'before' if before else 'after'} in {node.text}",
        operands=(),
        guards=(apart, *inner.guards),
    )
    inner = without_axes(inner, reduced[depth + 1 :])
    value = new.add(inner, "others", dtype, dims)
    return Read(value, tuple(axis_index(axis) for axis in kept))
