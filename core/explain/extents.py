"""The solved graph as text: the extents of every value, the loops of each, and where run-time extents come from.

Example, a window along an input:
    n0  [iu]
    n1  [u]
    n2  [i, u]  for i u: n0[i+u-1] if inside, n1[u]
    n3  [i]     for i u: n2[i,u]

    iu  dimension 0 of in0
    u   dimension 0 of in1
    i   follows from the index (i+u-1): iu + 2 - (u - 1)

A specification that writes its result part by part has a line per part, which says where the part goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.explain.expression import aligned, size_text, subscript, view_text
from ilang.core.explain.reasons import of_solved
from ilang.core.infer.solved import Solved
from ilang.core.ir.graph import Assignment, Einx, Elementwise, Input, OpenKernel, View
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.ir.rows import MEMORY_ORDER, known_axes
from ilang.core.ir.shaped import Size


def extents_text(solved: Solved) -> str:
    """A line per value, several where its parts are written one by one; then a line per run-time extent."""
    sizes = solved.sizes()
    values = [row for value in sorted(solved.needed) for row in _value(solved, sizes, value)]
    reasons = of_solved(solved)
    given = [(s.name, reasons.of(n)) for n, s in enumerate(sizes) if s.fixed is None]
    return "\n".join([*aligned(values), *([""] if given else []), *aligned(given)])


def _value(solved: Solved, sizes: Sequence[Size], value: int) -> Iterator[tuple[str, str, str]]:
    """Name and extents of a value; then the loops and the reads of what computes it."""
    name, shape = f"n{value}", _shape(solved, sizes, value)
    for loops in list(_computed(solved, sizes, value)) or [""]:
        yield name, shape, loops
        name = shape = ""


def _shape(solved: Solved, sizes: Sequence[Size], value: int) -> str:
    """The extents of a value, ``[b | k -> m]`` where it has batch and input rows."""
    words = iter([size_text(sizes[size]) for size in solved.dims(value)])
    rows = {
        kind: ", ".join(next(words) for _ in known_axes(solved.inferred.shapes[value][kind]))
        for kind in MEMORY_ORDER
    }
    batch, inner, output = rows[0], rows[1], rows[2]
    return f"[{f'{batch} | ' * bool(batch)}{f'{inner} -> ' * bool(inner)}{output}]"


def _computed(solved: Solved, sizes: Sequence[Size], value: int) -> Iterator[str]:
    """``for i k: n0[i,k], n1[k]``, once per part that is written."""

    def index(number: int, parts: Sequence[Affine], leaves: bool) -> str:
        text = subscript(parts, axes.__getitem__, lambda number: size_text(sizes[number]))
        return f"n{number}{text}{' if inside' if leaves else ''}"

    node = solved.graph.nodes[value]
    match node:
        case Input() | Terminal() | Einx() | OpenKernel():
            return
        case Elementwise():
            yield f"as n{node.value}"
        case View():
            yield f"n{node.value} as {view_text(node.axes, node.source, node.target)}"
        case Assignment():
            axes = [axis.name for axis in node.axes]
            reads = [
                index(read.value, read.index, bool(solved.guards(value, read)))
                for read in node.reads
            ]
            looked = [f", {axes[each.axis]} = {reads[each.read]}" for each in node.lookups]
            loops = [name for axis, name in enumerate(axes) if axis not in node.looked_up()]
            rest = [read for number, read in enumerate(reads) if number not in node.places()]
            onto = "" if node.base is None else f" onto n{node.base}"
            yield _loops(loops, rest, "".join(looked)) + onto
        case Operation():
            for each in solved.projections[value]:
                axes = [loop.name for loop in each.loops]
                reads = [
                    index(node.operands[operand], parts, operand in each.beyond)
                    for operand, parts in each.reads
                ]
                into = index(value, each.target, len(node.operands) in each.beyond)
                plain = all(part.axis() is not None for part in each.target)
                yield _loops(axes, reads) + ("" if plain else f" into {into}")


def _loops(axes: Sequence[str], reads: Sequence[str], looked_up: str = "") -> str:
    """Loops, the axes that are looked up in them, and what is read: ``for b t d, v = n0[b,t]: n1[v,d]``."""
    return f"for {' '.join(axes) or '.'}{looked_up}" + (f": {', '.join(reads)}" if reads else "")
