"""Store tiles that threads compute for each other so that those who read them read vectors.

Example, where threads i1 and j1 compute a tile, and threads i1 and d1 read it row by row, for all columns:
    in:   for i1 (t): for j1 (t): for i2: for j2        out:  for i1 (t): for j1 (t): for i2: for j2
            p[i1,i2,j1,j2] = exp(s[i1,i2,j1,j2])                p_given[i1,j1,i2,j2] = exp(s[i1,i2,j1,j2])
          for i1 (t): for j1 (t): for i2: for j2              for i1 (t): for j1 (t): for j2: for i2
            l[i1,j1,i2] += p[i1,i2,j1,j2]                       p[j1,i1,j2,i2] = p_given[i1,j1,i2,j2]
          for i1 (t): for d1 (t): for j1: for j2              for i1 (t): for j1 (t): for i2: for j2
            for i2: for d2: run[...] += p[i1,i2,j1,j2] ...      l[i1,j1,i2] += p_given[i1,j1,i2,j2]
                                                              for i1 (t): for d1 (t): for j1: for j2
                                                                for i2: for d2: run[...] += p[j1,i1,j2,i2] ...

Threads keep what they have computed themselves in registers. Adjacent threads store in rows of their own, so that they
meet in no bank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.rewriting import accesses, nested, replaced_loads
from ilang.core.ir.scalar import Load
from ilang.core.ir.schedule import THREAD_ROLES
from ilang.core.passes.gpu.numbering import Numbering
from ilang.core.passes.gpu.row_folds import SharedNest, nest_of, nests_of
from ilang.core.record import replace


def with_tiles_given(program: ir.Program) -> ir.Program:
    """The program with tiles that are read along the elements of a thread."""
    numbering = Numbering(program)
    kernels = tuple(_given(program, kernel, numbering) for kernel in program.kernels)
    return replace(numbering.program(), kernels=kernels)


def _given(program: ir.Program, kernel: ir.Kernel, numbering: Numbering) -> ir.Kernel:
    nests = list(nests_of(kernel.body))
    tiles: dict[BufferId, _Tile] = {}
    for nest in nests:
        for s in nest.body:
            if isinstance(s, ir.Store) and program.buffers[s.buffer].private:
                tile = _tile(nest, s, nests, kernel)
                if tile is not None:
                    tiles[s.buffer] = tile
    if not tiles:
        return kernel
    numbering.enter(kernel)
    for number, tile in tiles.items():
        buffer = numbering.buffers[number]
        tile.kept = numbering.private(f"{buffer.name}_given", buffer.dtype, buffer.dims, "")
        numbering.buffers[number] = replace(buffer, dims=tuple(buffer.dims[d] for d in tile.order))
    return numbering.left(kernel, _block(kernel.body, tiles, numbering))


class _Tile:
    """A tile: the nest that computes it, and its dimensions in the order in which others read them."""

    def __init__(self, nest: SharedNest, store: ir.Store, order: Sequence[int]) -> None:
        self.nest = nest
        self.store = store
        self.order = tuple(order)
        self.kept = BufferId(-1)


def _tile(
    nest: SharedNest, store: ir.Store, nests: Sequence[SharedNest], kernel: ir.Kernel
) -> _Tile | None:
    """The tile that a nest stores, where one other nest reads it along another of its loops; else None."""
    touching = [
        (other, index)
        for other in nests
        for number, index in accesses(other.body)
        if number == store.buffer
    ]
    everywhere = sum(number == store.buffer for number, _ in accesses(kernel.body))
    plain = all(part.axis() is not None for _, index in touching for part in index)
    alike = [(other, index) for other, index in touching if _is_alike(nest, store, other)]
    readers = [(other, index) for other, index in touching if not _is_alike(nest, store, other)]
    written = sum(
        isinstance(s, ir.Store) and s.buffer == store.buffer for n in nests for s in n.body
    )
    if nest.lanes is None or len(touching) < everywhere or not plain or written != 1:
        return None
    if len(readers) != 1 or not alike:
        return None
    reader, index = readers[0]
    axes = [part.axis() for part in index]
    unrolled = {loop.variable for loop in reader.chain if loop.role == "u"}
    lanes = [d for d, part in enumerate(store.index) if part.axis() == nest.lanes.variable]
    along = [d for d, axis in enumerate(axes) if axis in unrolled]
    if len(lanes) != 1 or len(along) != 1 or along[0] == len(axes) - 1 or axes[-1] in unrolled:
        return None
    if reader.rows.variable not in axes or len(axes) != len(nest.chain):
        return None
    inner = [d for d in range(len(axes)) if d not in (lanes[0], along[0])]
    return _Tile(nest, store, (lanes[0], *inner, along[0]))


def _is_alike(nest: SharedNest, store: ir.Store, other: SharedNest) -> bool:
    """Whether threads of another nest touch those elements of a tile alone that they have stored."""
    names = _names(nest, other)
    if names is None:
        return False
    place = tuple(
        part.renamed({v: names.get(VariableId(v), v) for v in part.axes()}) for part in store.index
    )
    indices = [index for number, index in accesses(other.body) if number == store.buffer]
    return bool(indices) and all(index == place for index in indices)


def _names(nest: SharedNest, other: SharedNest) -> dict[VariableId, VariableId] | None:
    """The variables of another nest by those of one; None where threads share other loops of it, or other parts."""
    if len(nest.chain) != len(other.chain) or (nest.lanes is None) != (other.lanes is None):
        return None
    pairs = [*zip(nest.chain, other.chain, strict=True)]
    same = all((one.size, one.role) == (then.size, then.role) for one, then in pairs)
    return {one.variable: then.variable for one, then in pairs} if same else None


def _block(body: ir.Block, tiles: Mapping[BufferId, _Tile], numbering: Numbering) -> ir.Block:
    out: list[ir.Statement] = []
    for s in body:
        nest = nest_of(s)
        if nest is None:
            out.append(ir.map_blocks(s, lambda block: _block(block, tiles, numbering)))
            continue
        kept = {
            number: tile for number, tile in tiles.items() if _is_alike(tile.nest, tile.store, nest)
        }
        out.append(_indexed(s, tiles, kept))
        out += [
            _copy(tile, number, numbering)
            for number, tile in kept.items()
            if any(isinstance(x, ir.Store) and x.buffer == number for x in nest.body)
        ]
    return tuple(out)


def _indexed(
    s: ir.Statement, tiles: Mapping[BufferId, _Tile], kept: Mapping[BufferId, _Tile]
) -> ir.Statement:
    """A nest that has tiles of its own in registers, and reads those of others in their order."""

    def place(number: BufferId, index: tuple[Affine, ...]) -> tuple[BufferId, tuple[Affine, ...]]:
        if number in kept:
            return kept[number].kept, index
        if number in tiles:
            return number, tuple(index[d] for d in tiles[number].order)
        return number, index

    def loaded(load: Load) -> Load:
        buffer, index = place(load.buffer, load.index)
        return replace(load, buffer=buffer, index=index)

    def change(each: ir.Statement) -> ir.Statement:
        match each:
            case ir.Store():
                buffer, index = place(each.buffer, each.index)
                value = replaced_loads(each.value, loaded)
                return replace(each, buffer=buffer, index=index, value=value)
            case ir.Define() | ir.Change():
                return replace(each, value=replaced_loads(each.value, loaded))
            case _:
                return each

    (out,) = ir.map_statements((s,), change)
    return out


def _copy(tile: _Tile, number: BufferId, numbering: Numbering) -> ir.Statement:
    """The nest in which threads give what they have to others, along the dimension that these read along."""
    nest = tile.nest
    store = tile.store
    names = {
        loop.variable: numbering.variable(numbering.names[loop.variable], "_")
        for loop in nest.chain
    }

    def renamed(part: Affine) -> Affine:
        return part.renamed({v: names.get(VariableId(v), v) for v in part.axes()})

    index = tuple(map(renamed, store.index))
    given = Load(tile.kept, index, numbering.buffers[number].dtype)
    body: ir.Block = (ir.Store(number, tuple(index[d] for d in tile.order), given),)
    if nest.within:
        conditions = (replace(w, index=renamed(w.index)) for w in nest.within)
        body = (ir.If(tuple(conditions), body),)
    last = store.index[tile.order[-1]].axis()
    shared = [loop for loop in nest.chain if loop.role in THREAD_ROLES]
    each = [loop for loop in nest.chain if loop.role not in THREAD_ROLES]
    each.sort(key=lambda loop: loop.variable == last)
    loops = [
        replace(
            loop,
            variable=names[loop.variable],
            within=tuple(replace(w, index=renamed(w.index)) for w in loop.within),
        )
        for loop in (*shared, *each)
    ]
    (out,) = nested(loops, body)
    return out
