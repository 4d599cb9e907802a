"""The schedule of everything unscheduled for a GPU: a thread for each element of what is stored.

Example:
    in:   t1 = in0[i,k] * in1[k,j], inlined;  out = sum t1[i,j,k] over k
    out:  t1 || i j k      out || i j k 0

A pointwise value that is read once an iteration is computed there, as on any machine, and what goes row by row inside
the rows of its readers; every other value is stored whole, by a kernel of its own or, where a thread can compute it
just before its readers, by theirs (``gpu_together.py``). Loops over what is stored are outermost, in the order of its
dimensions: adjacent threads then write adjacent elements. A nest that a person wrote, and that names no loops for
blocks or threads, has them by position: a loop with one prime is for the threads of a block, one with two is unrolled.
The roles of a chosen nest say which loops blocks share (p) and which threads (t).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial

from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop, Nest, Role, Space
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.record import replace
from ilang.core.schedule.choose.accesses import Accesses, Arrays, accesses_of, arrays_of, reads_of
from ilang.core.schedule.choose.gpu_apart import Blocks, apart_readers, blocks_of
from ilang.core.schedule.choose.gpu_epilogues import epilogues
from ilang.core.schedule.choose.gpu_rows import Member, gpu_rows
from ilang.core.schedule.choose.gpu_tiles import copied_bytes, gpu_tile, is_copied, priced_tiles
from ilang.core.schedule.choose.gpu_together import TogetherKernels
from ilang.core.schedule.choose.inlining import Inlining, inlining
from ilang.core.schedule.choose.nests import Choice, same_loops
from ilang.core.schedule.choose.taking import taken
from ilang.core.schedule.choose.tile import BlockTile, Factors, tiling
from ilang.core.schedule.choose.tile_cost import Price
from ilang.core.schedule.choose.tilings import tilings
from ilang.core.schedule.fuse import Provenance, axis_pairs, mapping
from ilang.core.schedule.groups import Kernels
from ilang.core.schedule.readers import live_values, parted_values, whole_values
from ilang.core.schedule.wide_matrices import Apart


def choose_for_gpu(
    shaped: Shaped,
    asked: Sequence[Nest | BlockTile | None],
    provenance: Provenance,
    extents: Extents,
    machine: Machine,
    apart: Apart | None = None,
) -> Choice:
    """A nest per assignment and a kernel per value that is stored; none yet where a person wrote another nest.

    Args:
        shaped: the program.
        asked: the nest that a person wrote, or the tile to choose, of each node; None for every other one.
        provenance: of the program.
        extents: of the program.
        machine: what the loops are for.
        apart: what belongs to kernels that compute matrices tile by tile, where there are any.

    Raises:
        ScheduleError: E0320 to E0322 (a producer without a schedule cannot take that of its reader).
    """
    readers = inlining(shaped, scalars=True) if apart is None else apart_readers(apart)
    accesses = accesses_of(shaped, readers, machine)
    written = [each if isinstance(each, Nest) else None for each in asked]
    tiles = [each if isinstance(each, BlockTile) else None for each in asked]
    for value, node, read, is_followed in _assignments(shaped, readers, accesses):
        if tiles[value] is None:
            tiles[value] = gpu_tile(node, extents, read, is_followed, machine)
    blocks, others = Blocks.none(), readers
    if apart is not None:
        tiled = tilings(
            shaped, written, readers, accesses, partial(tiling, extents=extents, machine=machine)
        ).tiles
        blocks = blocks_of(apart, readers, tiled, extents, machine)
        others = replace(readers, kept=readers.kept.union(apart.phases))
    members, with_rows, _ = gpu_rows(shaped, others, tiles, extents, machine)
    placed = {*members, *blocks.tiles, *blocks.matrices}
    all_tiles, ends = epilogues(shaped, written, others, with_rows, placed)
    choice = _Nests(shaped, written, provenance, readers, (members, all_tiles), (blocks, ends))
    nests, kernels = choice.run(), Kernels(shaped, provenance, only_common=True)
    parted = parted_values(shaped, nests)
    nests = tuple(
        _without_parts(node, nest)
        if isinstance(node, Assignment)
        and nest is not None
        and written[value] is None
        and value not in parted
        else nest
        for value, (node, nest) in enumerate(zip(shaped.nodes, nests, strict=True))
    )
    if choice.imposed:
        return Choice(nests, kernels, len(nests))
    whole = whole_values(shaped, nests) & choice.live
    nests = tuple(
        _with_blocks(node, nest)
        if isinstance(node, Assignment) and nest is not None and value in whole
        else nest
        for value, (node, nest) in enumerate(zip(shaped.nodes, nests, strict=True))
    )
    together = TogetherKernels(shaped, nests, whole, kernels)
    for value in sorted(whole, reverse=True):
        together.add(value)
    return Choice(nests, kernels, 0)


def tiles_by_price(
    shaped: Shaped, extents: Extents, machine: Machine
) -> Iterator[tuple[int, Sequence[tuple[BlockTile, Price]]]]:
    """The tiles that prices of blocks and of rows compare, by value, the cheapest first."""
    readers = inlining(shaped, scalars=True)
    accesses = accesses_of(shaped, readers, machine)
    tiles: list[BlockTile | None] = [None for _ in shaped.nodes]
    for value, node, read, is_followed in _assignments(shaped, readers, accesses):
        tiles[value] = gpu_tile(node, extents, read, is_followed, machine)
        yield value, [*priced_tiles(node, extents, read, is_followed, machine)]
    yield from gpu_rows(shaped, readers, tiles, extents, machine)[2].items()


def _assignments(
    shaped: Shaped, readers: Inlining, accesses: Sequence[Accesses]
) -> Iterator[tuple[int, Assignment, Arrays, bool]]:
    """The assignments of a program by value, with the indices at which each reads and the number of arrays at each.

    The last says whether pointwise work alone reads it.
    """
    counts = arrays_of(shaped, readers)
    for value, (node, each, count) in enumerate(zip(shaped.nodes, accesses, counts, strict=True)):
        if isinstance(node, Assignment):
            sole = readers.sole[value]
            is_followed = sole is not None and sole[0].acc is None
            yield value, node, {index: count[index] for index in reads_of(node, each)}, is_followed


def _without_parts(node: Assignment, nest: Nest) -> Nest:
    """A nest whose reduced loops have no results of their own: nobody reads its value, or its reader computes it."""
    reduced = node.reduced_axes() if "p" in nest.roles else ()
    if not any(loop.axis in reduced for loop in nest.order):
        return nest
    named = zip(nest.order, nest.roles, strict=False)
    plain: Role = ""
    roles = (plain if loop.axis in reduced and role == "p" else role for loop, role in named)
    return replace(nest, roles=tuple(roles))


def _with_blocks(node: Assignment, nest: Nest) -> Nest:
    """A chosen nest that says which loops blocks share: those over axes of the result, outside of any for threads."""
    axes, roles = node.disjoint_axes(), list[Role]()
    inner = next((n for n in range(len(nest.order)) if nest.role(n) == "t"), len(nest.order))
    for position, loop in enumerate(nest.order):
        blocks: Role = "p" if position < inner and loop.axis in axes else ""
        roles.append(nest.role(position) or blocks)
    return replace(nest, roles=tuple(roles))


class _Nests:
    """The nests chosen so far, from the outputs on; ``given`` has the loops that a staged value takes.

    ``ends`` are the contractions that pointwise work ends, each with the number of loops of its reader around it.
    ``imposed`` are the values whose nests a person wrote, and that would have others.
    """

    def __init__(
        self,
        shaped: Shaped,
        written: Sequence[Nest | None],
        provenance: Provenance,
        readers: Inlining,
        rows: tuple[Mapping[int, Member], Sequence[BlockTile | None]],
        inside: tuple[Blocks, Mapping[int, int]],
    ) -> None:
        self.shaped = shaped
        self.blocks, self.ends = inside
        self.written = written
        self.provenance = provenance
        self.readers = readers
        self.rows, self.tiles = rows
        self.inside = {v: each for v, each in self.rows.items() if v != each.root}
        self.live = live_values(shaped)
        self.nests: list[Nest | None] = [None] * len(shaped.nodes)
        self.given: dict[int, tuple[Factors, tuple[Loop, ...]]] = {}
        self.around: dict[int, BlockTile] = {}
        self.shared: dict[int, set[Loop]] = {}
        self.imposed: set[int] = set()

    def run(self) -> tuple[Nest | None, ...]:
        """The nest of every node, None for inputs."""
        for value in range(len(self.nests) - 1, -1, -1):
            node = self.shaped.nodes[value]
            if isinstance(node, Assignment):
                self._nest(value, node)
        return tuple(self.nests)

    def _nest(self, value: int, node: Assignment) -> None:
        """Choose the nest of a value; or take the written one, where that is another."""
        written, tile = self.written[value], self._tile(value)
        nest = self._chosen(value, node, tile)
        if value in self.rows and not self._is_row(value, nest):
            self._leave(value)
        nest = self._placed(value, node, nest, tile)
        if written is not None and not self._is_chosen(value, node, written, nest):
            self._release(value)
            self._leave(value)
            tile, nest = None, _by_position(node, written, self.shared.get(value, set()))
            nest = nest if nest.written else self._placed(value, node, nest, tile)
        self.nests[value] = nest
        for number, read in enumerate(node.reads):
            site = nest.staged(number) if nest.written else nest.sites[number]
            if site is None or not (nest.written or self._is_staged(read.value)):
                continue
            self._share(value, nest, read, site)
            self._give(value, nest, read, site)
            if tile is not None and read.value in self.given:
                self.around.setdefault(read.value, self._tile_around(read, tile))

    def _is_chosen(self, value: int, node: Assignment, written: Nest, nest: Nest) -> bool:
        """Whether a written nest is the chosen one, whether or not it says which loops blocks share."""
        if is_chosen(written, nest):
            return True
        stored = value in self.live and value not in self.given
        return stored and is_chosen(written, _with_blocks(node, nest))

    def _is_row(self, value: int, nest: Nest) -> bool:
        """Whether a value of a kernel that goes row by row has the loops that it is to have."""
        is_placed = (value in self.given) is (value in self.inside)
        factors, order, _ = self.rows[value].nest()
        return is_placed and nest.order == order and nest.factors == factors

    def _leave(self, value: int) -> None:
        """Take values that are not chosen yet out of the kernel of this one, whose loops are not those foreseen."""
        kernel = self.rows.get(value)
        if kernel is None:
            return
        members = [v for v, each in self.inside.items() if v < value and each.root == kernel.root]
        for other in sorted(members, reverse=True):
            del self.inside[other]
            if not self.readers.inlined[other]:
                self.given.pop(other, None)
                self._place_again(other)

    def _release(self, value: int) -> None:
        """Compute a value whose written nest is not what its reader gives it where that was written to, or whole."""
        self.imposed.add(value)
        self._place_again(value)

    def _place_again(self, value: int) -> None:
        """Let what reads a value, as far as that is placed, have it where that was written to, or whole.

        A reader whose nest a person wrote gets that nest again, with what is staged now. Other readers are placed anew,
        if the value was to be computed inside of them.
        """
        self.around.pop(value, None)
        for reader, _ in self.readers.all_reads[value]:
            node, nest = self.shaped.nodes[reader], self.nests[reader]
            written = self.written[reader]
            assert isinstance(node, Assignment)
            if nest is not None and written is not None and written.written:
                # Its loops are what would be chosen, what it stages is not.
                self.imposed.add(reader)
                self.nests[reader] = _by_position(node, written, self.shared.get(reader, set()))
            elif nest is not None and (self.readers.inlined[value] or value in self.rows):
                self.shared.pop(value, None)
                self.nests[reader] = self._placed(reader, node, nest, self._tile(reader))

    def _is_staged(self, value: int) -> bool:
        """Whether a value is computed inside of what reads it, unless that was written otherwise."""
        is_made = isinstance(self.shaped.nodes[value], Assignment)
        is_inside = (
            self.readers.inlined[value]
            or value in self.inside
            or value in self.blocks.matrices
            or value in self.ends
        )
        return is_made and is_inside and value not in self.imposed

    def _placed(self, value: int, node: Assignment, nest: Nest, tile: BlockTile | None) -> Nest:
        sites = tuple(self._site(value, read, nest, node, tile) for read in node.reads)
        return replace(nest, sites=sites, spaces=self._spaces(node, sites, tile))

    def _tile(self, value: int) -> BlockTile | None:
        """The tile of a value that goes block by block: alone, or as what its reader computes in its innermost loop."""
        if value in self.blocks.tiles:
            return self.blocks.tiles[value]
        if value in self.imposed:
            return None
        if value not in self.given or value in self.ends:
            return self.tiles[value]
        taken_from = self.around.get(value)
        factors, order = self.given[value]
        if taken_from is None or len(order) != len(taken_from.order):
            return None
        return replace(taken_from, factors=factors, order=order)

    def _tile_around(self, read: Read, tile: BlockTile) -> BlockTile:
        """The tile of a reader, with what is copied by the axes of what it computes in its innermost loop."""
        producer = self.shaped.nodes[read.value]
        if tile.strided is None or not isinstance(producer, Assignment):
            return tile
        names = {outer: inner for inner, outer in mapping(producer, read).items()}
        copied = (
            index for index in tile.strided if {a for p in index for a in p.axes()} <= names.keys()
        )
        return replace(
            tile, strided=tuple(tuple(p.renamed(names) for p in index) for index in copied)
        )

    def _chosen(self, value: int, node: Assignment, tile: BlockTile | None) -> Nest:
        """The loops of a nest that nobody wrote."""
        none = (None,) * len(node.reads)
        member = self.inside.get(value)
        if member is not None and member.lanes is not None:
            factors, order, roles = member.nest()
            return Nest(factors, order, none, roles=() if member.is_whole else roles)
        if value in self.given and value not in {*self.blocks.tiles, *self.ends}:
            tile = self.tiles[value] if value in self.inside else None
            return Nest(*self.given[value], none, roles=tile.roles if tile is not None else ())
        if tile is not None:
            return Nest(tile.factors, tile.order, none, roles=tile.roles)
        return Nest(((),) * len(node.axes), tuple(map(Loop, _order(node))), none)

    def _site(
        self, value: int, read: Read, nest: Nest, node: Assignment, tile: BlockTile | None
    ) -> int | None:
        """Inside all loops, for what is inlined; inside those over rows; around a block, for what it copies."""
        if read.value in self.blocks.matrices and not self.readers.inlined[read.value]:
            return self.blocks.site(value, nest)
        if read.value in self.ends:
            return self.ends[read.value]
        if self._is_staged(read.value):
            row = self.inside.get(read.value)
            return len(nest.order) if row is None or row.is_whole else len(row.rows)
        if tile is not None and read.is_padded() and is_copied(read.index, node, tile):
            return tile.depth
        return None

    def _spaces(
        self, node: Assignment, sites: Sequence[int | None], tile: BlockTile | None
    ) -> tuple[Space, ...]:
        """Spaces of the reads of a value: what is computed whole and copied, and what has room for two."""
        copied = [
            read
            for read, site in zip(node.reads, sites, strict=True)
            if site is not None and not self._is_staged(read.value)
        ]
        types = {read: self.shaped.tensors[read.value].dtype for read in copied}
        double = tile is not None and bool(copied) and tile.doubled
        if tile is not None and copied and 0 < tile.room:
            each = (copied_bytes(read.index, tile, dtype) for read, dtype in types.items())
            double = 2 * sum(each) <= tile.room
        spaces: list[Space] = []
        for read in node.reads:
            if read not in copied:
                spaces.append("")
            elif isinstance(self.shaped.nodes[read.value], Assignment):
                spaces.append("c2" if double else "c")
            else:
                spaces.append("s2" if double else "")
        return tuple(spaces) if any(spaces) else ()

    def _share(self, reader: int, nest: Nest, read: Read, site: int) -> None:
        """Note the loops of a producer that are loops of a reader: what they are for, that one says."""
        producer = self.shaped.nodes[read.value]
        if not isinstance(producer, Assignment):
            return
        outside = nest.order[:site]
        axes = {loop.axis for loop in outside}
        pairs = {**mapping(producer, read), **axis_pairs(self.provenance, reader, read, axes)}
        shared = {
            Loop(inner, loop.part)
            for inner, axis in pairs.items()
            for loop in outside
            if loop.axis == axis
        }
        self.shared[read.value] = self.shared.get(read.value, shared) & shared

    def _give(self, reader: int, nest: Nest, read: Read, site: int) -> None:
        """Let a producer that nobody scheduled take the splits and the order of the reader that stages it."""
        producer = self.shaped.nodes[read.value]
        if (
            not isinstance(producer, Assignment)
            or read.value in self.imposed
            or read.value in self.given
        ):
            return
        axes = {loop.axis for loop in nest.order[:site]}
        pairs = {**mapping(producer, read), **axis_pairs(self.provenance, reader, read, axes)}
        self.given[read.value] = taken(nest, pairs, _order(producer))


def is_chosen(written: Nest, chosen: Nest) -> bool:
    """Whether a written nest is the chosen one; where it leaves sites to the compiler, in its loops."""
    return same_loops(written, chosen) and (
        not written.written
        or all(
            (site, written.space(n)) == (chosen.sites[n], chosen.space(n))
            for n, site in enumerate(written.sites)
        )
    )


def _by_position(node: Assignment, nest: Nest, shared: Container[Loop]) -> Nest:
    """A written nest; one that names no loops for blocks and threads has those that its loops stand for.

    A loop with one prime, over an axis of the result, is for threads, one with two or more is written out. A loop that
    has a role keeps it, and one that is ``shared`` is its reader's.
    """
    if nest.asked or "p" in nest.roles:
        return nest
    axes = node.disjoint_axes()
    roles: list[Role] = []
    for position, loop in enumerate(nest.order):
        role = nest.role(position)
        if not role and loop.part and loop.axis in axes and loop not in shared:
            role = "t" if loop.part == 1 else "u"
        roles.append(role)
    if "t" not in roles:
        return nest
    return replace(nest, roles=tuple(roles), asked="position")


def _order(node: Assignment) -> tuple[int, ...]:
    """The axes of an assignment: those of what is stored, in its order, then the reduced ones.

    Where the last iteration that meets an element stores it, all are in their own order.
    """
    if node.scatters() and node.acc is None:
        return tuple(range(len(node.axes)))
    kept = tuple(dict.fromkeys(node.output_axes()))
    return (*kept, *(axis for axis in range(len(node.axes)) if axis not in kept))
