"""Products that are summed and scattered at once: summed first, and then each sum is added where it belongs.

Example, the gradient of a window in steps of 2, of many channels:
    in:   d[c,2x+v] += g[o,x] * k[o,c,v] over o x v
    out:  t[x,c,v] = sum of g[o,x] * k[o,c,v] over o;  d[c,2x+v] += t[x,c,v]

The sum is a contraction, which has a tile in registers; a scattered sum is added in memory, term by term.
"""

from __future__ import annotations

from math import prod

from ilang.core.calculus.affine import axis_index, variables_of
from ilang.core.dtype import FLOATS
from ilang.core.ir.assignments import without_axes
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.scalar import Apply, Convert, Operand, Scalar, converted
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.record import replace
from ilang.core.transform.extended import ExtendedProgram


def summed_before(shaped: Shaped, extents: Extents) -> Shaped:
    """The program that sums no products term by term where they are scattered; itself where none does.

    Args:
        shaped: the program.
        extents: which of its sizes are small.
    """
    new = ExtendedProgram(shaped)
    for value, node in shaped.numbered():
        if not isinstance(node, Assignment) or not _is_scattered_product(node):
            continue
        walked, scalar = variables_of(node.target), _product(node.scalar)
        summed = [axis for axis in range(len(node.axes)) if axis not in walked]
        counts = [extents.fixed(node.sizes[axis]) for axis in summed]
        of = node.reads[0].value
        is_long = all(counts) and 1 < prod(count or 1 for count in counts)
        if not is_long or scalar.dtype != shaped.tensors[of].dtype:
            continue
        order = dict.fromkeys(a for read in node.reads for part in read.index for a in part.axes())
        kept = tuple(axis_index(axis) for axis in order if axis in walked)
        first = replace(node, target=kept, scalar=scalar, base=None, guards=())
        terms = new.add(first, of, [node.sizes[axis] for axis in order if axis in walked], "terms")
        scattered = converted(Operand(0, scalar.dtype), node.scalar.dtype or "")
        second = replace(node, reads=(Read(terms, kept),), scalar=scattered, operands=())
        new.nodes[value] = without_axes(second, summed)
    return shaped if len(new.nodes) == len(shaped.nodes) else new.result()


def _is_scattered_product(node: Assignment) -> bool:
    """Whether each term of a product is added where windows of the target say, and the terms of several go there."""
    walked, scalar = variables_of(node.target), _product(node.scalar)
    reads = [read for read in node.reads if not read.guards]
    return (
        node.acc == "+"
        and node.base is not None
        and node.schedule is None
        and not node.scatters()
        and any(part.window for part in node.target)
        and isinstance(scalar, Apply)
        and scalar.primitive == "mul"
        and scalar.dtype in FLOATS
        and all(isinstance(each, Operand) for each in scalar.arguments)
        and len(reads) == len(node.reads) == 2
        and all(part.axis() is not None for read in reads for part in read.index)
        and all(guard.index.variables() <= walked for guard in node.guards)
    )


def _product(scalar: Scalar) -> Scalar:
    """A scalar before it is converted to the type that it is accumulated in."""
    return scalar.argument if isinstance(scalar, Convert) else scalar
