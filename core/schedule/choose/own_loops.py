"""The splits and loops of an assignment, where nothing that reads it says them: rules 4 and 6 of the choice.

Example:
    in:   out = sum in0[i,k] * in1[k,j] over k      out = in0[j,i]
    out:  | i:6,j:64,k:512 | j i k k' i' j'         | j:32 | j j' i
"""

from __future__ import annotations

from ilang.core.dtype import BYTES
from ilang.core.ir.scalar import Operand
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment
from ilang.core.schedule.choose.accesses import reads_of
from ilang.core.schedule.choose.known import Analysis, Known
from ilang.core.schedule.choose.packing import Across, Packed
from ilang.core.schedule.choose.tile import Factors, blocked, transposed


def own_nest(
    analysis: Analysis, known: Known, value: int, node: Assignment
) -> tuple[Nest, Packed | Across | None]:
    """The nest of a value without its sites, and the tile or block that it has."""
    nest, across = analysis.written[value], None
    sites = (None,) * len(node.reads)
    if nest is None and value in known.staged:
        staged = known.staged[value]
        nest = Nest(staged.factors, staged.order, sites)
    tile = analysis.tilings.loops(value, node) if nest is None else None
    if tile is not None:
        nest = Nest(*tile, sites)
    if nest is None:
        axes = analysis.order(value, node)
        across = _transposed(analysis, value, node)
        in_blocks = across or blocked(node, analysis.extents, axes, analysis.machine)
        nest = Nest(*(in_blocks or (((),) * len(axes), tuple(map(Loop, axes)))), sites)
    own = analysis.tilings.tiles[value]
    if own is not None and not nest.written and nest.order == own.order():
        return nest, Packed(own.rows, own.lanes, own.windows)
    return nest, Across(nest.order[-2].axis, nest.order[-1].axis) if across else None


def _transposed(
    analysis: Analysis, value: int, node: Assignment
) -> tuple[Factors, tuple[Loop, ...]] | None:
    """The splits and loops of work that runs along one axis in an operand and along another in the result."""
    machine, tensors = analysis.machine, analysis.shaped.tensors
    copies = isinstance(node.scalar, Operand) and not any(
        analysis.inlining.inlined[read.value]
        or BYTES[tensors[read.value].dtype] < machine.memory.transposed_bytes
        for read in node.reads
    )
    reads = reads_of(node, analysis.accesses[value])
    return transposed(node, analysis.extents, reads, copies, machine)
