"""Share out transposing copies sector by sector: coalesced reads, and writes without bank conflicts.

Example, of f32, where sectors have 8 elements and rows of copy are an odd multiple of 4:
    in:   spread i in 0..32 and k in 0..16 over the threads: copy[k,i] = a[i,k]
    out:  spread k in 0..2 and i in 0..32 and kk in 0..8 over the threads: copy[8k+kk,i] = a[i,8k+kk]

Threads that read along a row of memory write down a column of the copy. As many threads along the row as a sector has
elements are enough to read whole sectors; the next threads take the next row of memory, which is the next column of the
copy. A warp has no bank conflicts if the length of a row is an odd multiple of the number of banks divided by the
elements of a sector. Such a row is also a multiple of 16 bytes, so that it can be read by vectors. If a warp writes
more columns by vectors than a row has elements, the row length is an odd multiple of what remains of the banks for each
vector.
"""

from __future__ import annotations

from math import gcd

from ilang.core.calculus.affine import Affine, row_step
from ilang.core.dtype import BYTES
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import Block, For, If, Program, Statement, Store, map_statements
from ilang.core.ir.rewriting import parts_of, substituted
from ilang.core.ir.scalar import Load
from ilang.core.passes.gpu.numbering import Numbering
from ilang.core.record import replace


def sector_of(program: Program, spread: ThreadLoop, number: int) -> int:
    """The number of threads along a sector that write down a column of a buffer; 0 where they do not.

    The last loop of the spread goes along the last dimension of what is copied, and along the first one of the buffer.
    """
    store, device = _only_store(spread.body), program.machine.gpu()
    if store is None or store.buffer != number or not spread.loops or len(store.index) < 2:
        return 0
    last, loads = spread.loops[-1], [x for x in parts_of(store) if isinstance(x, Load)]
    extent = program.sizes[last.size].fixed
    if spread.over != "threads" or last.role not in ("", "t") or last.chunk or extent is None:
        return 0
    if len(loads) != 1 or program.buffers[loads[0].buffer].private or not loads[0].index:
        return 0
    *before, along = loads[0].index
    first, *others = store.index
    apart = any(last.variable in part.axes() for part in (*before, *others))
    if apart or not (
        row_step((along,), last.variable) == 1 and row_step((first,), last.variable) == 1
    ):
        return 0
    return gcd(extent, device.sector_bytes // BYTES[program.buffers[number].dtype])


def rows_for(program: Program, number: int, sector: int, row: int) -> int:
    """The elements of a row of a buffer that so many threads along a sector write down the columns of."""
    device, size = program.machine.gpu(), BYTES[program.buffers[number].dtype]
    lanes, vector = device.banks * device.bank_bytes // size, program.machine.vector_bytes() // size
    each = max(1, lanes // sector)
    if sector == 2 * vector and vector <= row < lanes // 2:
        each = row // vector
    return (-(-row // each) | 1) * each


def _only_store(body: Block) -> Store | None:
    """The only thing that a block does, under conditions or not; None where it does something else."""
    while len(body) == 1 and isinstance(body[0], If) and not body[0].otherwise:
        body = body[0].body
    return body[0] if len(body) == 1 and isinstance(body[0], Store) else None


class CopyMapper:
    """Transposing copies of one kernel, mapped to threads."""

    def __init__(self, numbering: Numbering) -> None:
        self.program = numbering.program()
        self.numbering = numbering

    def body(self, body: Block) -> Block:
        """The body of the kernel, its copies shared out sector by sector."""
        return map_statements(body, self._shared_out)

    def _shared_out(self, s: Statement) -> Statement:
        """A spread whose last loop is split into sectors, around all others, and what is inside of one."""
        store = _only_store(s.body) if isinstance(s, ThreadLoop) else None
        if store is None or not isinstance(s, ThreadLoop):
            return s
        buffer, sector = self.program.buffers[store.buffer], 0
        if buffer.space == "shared":
            sector = sector_of(self.program, s, store.buffer)
        *others, last = s.loops or (None,)
        if last is None or not others or sector < 2 or last.within:
            return s
        extent = self.program.sizes[last.size].fixed
        if extent is None or extent == sector:
            return s
        variable = self.numbering.split(last.variable, "s")
        whole = Affine(((sector, last.variable), (1, variable)))
        outer = replace(last, end=self.numbering.fixed.extent(extent // sector))
        inner = For(variable, self.numbering.fixed.extent(sector), ())
        inside = substituted(replace(s, loops=tuple(others)), {last.variable: whole})
        assert isinstance(inside, ThreadLoop)
        return replace(inside, loops=(outer, *inside.loops, inner))
