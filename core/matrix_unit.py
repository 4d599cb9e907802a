"""Products of matrices that a schedule gives to a matrix unit: which they are, and how they are rounded.

Example:
    in:   t1 = a[i,k] * b[k,j];  out[i,j] = sum t1[i,j,k]   i'':m, j'':m, k'':m
    out:  t1 = tf32(a[i,k]) * tf32(b[k,j])                  rows i, columns j, terms k

A matrix unit multiplies numbers of few bits: the role m says that both factors are rounded to TF32, which has 11
significant bits, and m16 to bf16, which has 8. Each product is then exact in f32, and is added in f32. The result is
the same on every machine, with a unit or without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from ilang.core.ir.scalar import Apply, Convert, Operand, Scalar, scalars_within
from ilang.core.ir.schedule import UNIT_ROLES, Loop, asks_for_unit
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.syntax import LoopPart
from ilang.core.ops import ROUNDED
from ilang.core.record import record, replace

ROUNDINGS: Mapping[str, str] = {"m": "tf32", "m16": "bf16"}
"""The primitive that rounds the factors of a unit, by the role of its loops."""


@record
class MatrixLoops:
    """The loops of a sum that a matrix unit takes: over ``rows`` and ``columns`` of a result, and over ``terms``.

    The primitive ``rounding`` rounds both factors.
    """

    rounding: str
    rows: Loop
    columns: Loop
    terms: Loop


def is_rounding(scalar: Scalar) -> TypeGuard[Apply | Convert]:
    """Whether a scalar is rounded for a matrix unit: by a primitive, or by a conversion to the type of that name."""
    return rounding_in(scalar) is not None


def rounding_in(scalar: Scalar) -> str | None:
    """The primitive by which a scalar is rounded for a matrix unit; None where it is not."""
    name = scalar.primitive if isinstance(scalar, Apply) else None
    name = scalar.dtype if isinstance(scalar, Convert) else name
    return name if name in ROUNDED else None


def unrounded(scalar: Scalar) -> Scalar:
    """The argument of a scalar that is rounded for a matrix unit; any other scalar as it is."""
    if not is_rounding(scalar):
        return scalar
    return scalar.argument if isinstance(scalar, Convert) else scalar.arguments[0]


def rounded_to(scalar: Scalar) -> str | None:
    """The name of the numbers to which factors in a scalar are rounded for a matrix unit; None where none is."""
    roundings = (name for part in scalars_within(scalar) if (name := rounding_in(part)) is not None)
    return ROUNDED.get(next(roundings, ""))


def with_rounded_factors(shaped: Shaped) -> Shaped:
    """The program in which what matrix units multiply is rounded; what they cannot do is refused later."""
    nodes = list(shaped.nodes)
    for value, node in enumerate(shaped.nodes):
        if not isinstance(node, Assignment) or not asks_for_unit(node):
            continue
        matched = sum_of_products(shaped, value)
        if not isinstance(matched, str):
            loops, number = matched
            product = nodes[number]
            assert isinstance(product, Assignment)
            factors = (Apply(loops.rounding, (x,), x.dtype) for x in _factors(product))
            scalar = Apply("mul", tuple(factors), product.scalar.dtype)
            nodes[number] = replace(product, scalar=scalar)
    same = all(a is b for a, b in zip(nodes, shaped.nodes, strict=True))
    return shaped if same else replace(shaped, nodes=tuple(nodes))


def sum_of_products(shaped: Shaped, value: int) -> tuple[MatrixLoops, int] | str:
    """The unit's loops of an assignment that asks for one, and what computes the products: itself, or what it reads.

    A reason where a unit cannot compute it.
    """
    node = shaped.assignment(value)
    if node.acc != "+" or node.base is not None or node.guards:
        return "it is no plain sum"
    loops = _loops(node)
    if isinstance(loops, str):
        return loops
    product, axes = value, {axis: axis for axis in range(len(node.axes))}
    if isinstance(node.scalar, Operand):
        product = node.reads[node.scalar.number].value
        matched = _axes_of_product(shaped, value, product)
        if isinstance(matched, str):
            return matched
        axes = matched
    factors = shaped.assignment(product)
    problem = _problem(shaped, factors, axes, loops)
    return problem or (loops, product)


def _loops(node: Assignment) -> MatrixLoops | str:
    """The loops that are a unit's, or why they cannot be."""
    assert node.schedule is not None
    number = {axis.name: n for n, axis in enumerate(node.axes)}
    parts = {split.axis: len(split.factors) for split in node.schedule.splits}
    order = [each for each in node.schedule.order if isinstance(each, LoopPart)]
    named = {
        (loop.axis, loop.part): role.role
        for loop, role in node.schedule.loops()
        if role.role in UNIT_ROLES
    }
    if len({*named.values()}) > 1:
        return "its loops are of two units, m and m16, which round to different numbers"
    reduced = set(node.reduced_axes())
    results = [each for each in order if number[each.axis] not in reduced]
    terms = [each for each in order if number[each.axis] in reduced]
    last = (*results[-2:], *terms[-1:])
    if {(each.axis, each.part) for each in last} != named.keys() or len(named) != 3:
        return "its loops are the last two over the result, and the last reduced one, of a written order"
    if len({each.axis for each in last}) < 3 or any(parts.get(x.axis, 0) != x.part for x in last):
        return "its loops are the innermost parts of three axes"
    rows, columns, term = (Loop(number[each.axis], each.part) for each in last)
    return MatrixLoops(ROUNDINGS[next(iter(named.values()))], rows, columns, term)


def _axes_of_product(shaped: Shaped, value: int, product: int) -> dict[int, int] | str:
    """The axis of a sum that each axis of the product that it reads is, or why it reads no product."""
    node, factors = shaped.assignment(value), shaped.nodes[product]
    if not isinstance(factors, Assignment) or factors.acc is not None or factors.base is not None:
        return "what it adds is no product"
    read = node.reads[0]
    pairs = [(to.axis(), at.axis()) for to, at in zip(factors.target, read.index, strict=True)]
    if read.guards or factors.guards or any(None in pair for pair in pairs):
        return "what it adds is not all of a product, element by element"
    readers = (
        other
        for other, each in enumerate(shaped.nodes)
        if other != value
        and product in (each.values() if isinstance(each, Assignment) else (_viewed(each),))
    )
    if product in shaped.outputs or any(True for _ in readers):
        return "the product has other readers, for which its factors would be rounded, too"
    return {inner: outer for inner, outer in pairs if inner is not None and outer is not None}


def _viewed(node: object) -> int | None:
    return getattr(node, "value", None)


def _factors(node: Assignment) -> tuple[Operand, ...]:
    """The two operands that an assignment multiplies, rounded or not; none where it does anything else."""
    scalar = node.scalar
    if not isinstance(scalar, Apply) or scalar.primitive != "mul":
        return ()
    bare = [*map(unrounded, scalar.arguments)]
    return tuple(part for part in bare if isinstance(part, Operand)) if len(bare) == 2 else ()


def _problem(
    shaped: Shaped, node: Assignment, axes: dict[int, int], loops: MatrixLoops
) -> str | None:
    """The reason why a unit cannot compute an assignment, whose ``axes`` are those of the sum; None if it can."""
    factors = _factors(node)
    if len(factors) != 2:
        return "it adds no products of two factors"
    if any(shaped.tensors[node.reads[each.number].value].dtype != "f32" for each in factors):
        name = ROUNDED[loops.rounding]
        return f"its factors are not both f32, and a matrix unit multiplies f32 rounded to {name}"
    factor_axes = []
    for each in factors:
        read = node.reads[each.number]
        index = [part.axis() for part in read.index]
        if read.guards or None in index or len(set(index)) < len(index):
            return "a factor is not read element by element, each axis along a dimension of its own"
        factor_axes.append({axes[axis] for axis in index if axis is not None})
    rows, columns, terms = (each.axis for each in (loops.rows, loops.columns, loops.terms))
    sides = [{rows, columns} & each for each in factor_axes]
    if not all(terms in each for each in factor_axes) or sorted(map(len, sides)) != [1, 1]:
        return "each factor has the axis that is reduced, and one of the two others"
    return "the factors have the same axes" if sides[0] == sides[1] else None
