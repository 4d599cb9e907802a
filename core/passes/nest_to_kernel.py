"""Lower loop nests to kernels: fuse staged producers, fold their storage, start reductions, write loops.

Example:
    in:   t1 || i k j      out || i k j 0
    out:  for i
            for j: acc[j] = 0
            for k
              for j: t1 = in0[i,k] * in1[k,j];  acc[j] += t1
            for j: out[i,j] = acc[j]

One kernel per value that is stored whole. A staged producer is computed in the block of the loop its site names, or
of the loop that this one fused with; the loops it shares (``schedule/fuse.py``) are its reader's, so its storage keeps
a dimension per loop part that it does not share: a scalar variable when none is left. A producer staged at one place
for several readers is computed there once.

A reduction starts before its outermost reduced loop, over the output loops inside it, and is stored after that loop:
right for every order and every extent, 0 included. The loop opened last of a split axis stops at the rest of the
dimension, given the parts in scope: right for every order of the parts.
"""

from __future__ import annotations

from collections.abc import Callable

from ilang.core.ir import kernel
from ilang.core.ir.affine import Affine, Within, walks
from ilang.core.ir.nest import Loop, Nest, Scheduled, schedule_text, unscheduled
from ilang.core.ir.scalar import Apply, Constant, Load, Local, Scalar, Select
from ilang.core.ir.shaped import Assignment, Input, Read
from ilang.core.ops import OPS
from ilang.core.passes.packing import Copy, copy_of
from ilang.core.passes.running import Running, Steps
from ilang.core.passes.scope import Block, Frame, Place, Scope, Walk, fresh
from ilang.core.passes.storage import Storage, converted, start_of, substituted
from ilang.core.passes.tiles import Shape, Strand, full, strand_shape, tile_shape
from ilang.core.record import replace
from ilang.core.schedule.fuse import Fusion, Provenance, fuse
from ilang.core.schedule.legal import check_equalities, check_registers
from ilang.core.schedule.online import plan


def nest_to_kernel(scheduled: Scheduled) -> kernel.Program:
    """Every kernel of a program, in the order in which they run.

    Raises:
        ScheduleError: E0320 to E0329: a written schedule that is not legal here.
    """
    shaped = scheduled.shaped
    whole = whole_values(scheduled)
    storage = Storage(shaped, whole)
    provenance = Provenance(shaped)
    kernels: list[kernel.Kernel] = []
    for value in whole:
        kernels.append(_Lowering(scheduled, storage, provenance, len(kernels)).run(value))
    check_equalities(shaped, storage.computed)
    inputs = tuple(storage.of_value[value] for value in shaped.inputs)
    outputs = tuple(storage.of_value[value] for value in shaped.outputs)
    return kernel.Program(
        shaped.name,
        tuple(storage.sizes),
        tuple(storage.buffers),
        inputs,
        outputs,
        tuple(kernels),
        shaped.derived,
        shaped.bounds,
        tuple(storage.parted),
    )


def whole_values(scheduled: Scheduled) -> list[int]:
    """The values that have a kernel of their own: outputs, and what something reads that does not stage it."""
    shaped = scheduled.shaped
    found: set[int] = set()
    seen: set[int] = set()
    todo = list(shaped.outputs)
    found |= set(todo)
    while todo:
        value = todo.pop()
        node, nest = shaped.nodes[value], scheduled.nests[value]
        if value in seen or not isinstance(node, Assignment) or nest is None:
            continue
        seen.add(value)
        if node.base is not None:
            found.add(node.base)
            todo.append(node.base)
        for read, site in zip(node.reads, nest.sites, strict=True):
            todo.append(read.value)
            if site is None:
                found.add(read.value)
    return [v for v in sorted(found) if isinstance(shaped.nodes[v], Assignment)]


class _Lowering(Running):
    """One kernel under construction."""

    def __init__(
        self, scheduled: Scheduled, storage: Storage, provenance: Provenance, number: int
    ) -> None:
        self.scheduled = scheduled
        self.shaped = scheduled.shaped
        self.storage = storage
        self.provenance = provenance
        self.number = number
        self.names: list[str] = []
        self.walked: set[str] = set()
        self.locals: list[str] = []
        self.taken: set[str] = set()
        self.top = Scope(None, None, frozenset())
        self.comments: list[str] = []
        self.parallel: Scope | None = None
        self.kept = {}
        self.frames = {}

    def run(self, value: int) -> kernel.Kernel:
        """The kernel that computes all of ``value``."""
        rank = len(self.shaped.tensors[value].dims)
        place = Place(None, self.storage.whole(value), tuple((d, None) for d in range(rank)))
        node, nest = self._node(value)
        frame = Frame(value, node, nest, place)
        # Iterations of the outermost loop write disjoint elements if it alone walks a dimension.
        outermost = nest.order[0] if nest.order else None
        self.parallel_loop = (
            (frame, outermost)
            if outermost is not None
            and outermost.axis in node.disjoint_axes()
            and nest.role(0) not in ("q", "v", "u")
            else None
        )
        self.plan = plan(self.scheduled, self.provenance, value)
        self._lowers(frame, 0)
        _drive(self._assignment(frame, self.top))
        return kernel.Kernel(
            f"k{self.number}",
            tuple(self.top.block),
            tuple(self.names),
            tuple(self.locals),
            tuple(self.comments),
        )

    def _node(self, value: int) -> tuple[Assignment, Nest]:
        node, nest = self.shaped.nodes[value], self.scheduled.nests[value]
        assert isinstance(node, Assignment)
        assert nest is not None
        return node, nest

    # -- loops ---------------------------------------------------------------------------------------------------------

    def _enter(self, frame: Frame, loop: Loop, parent: Scope) -> Scope:
        """Open a loop of an assignment in a scope."""
        axis = frame.node.axes[loop.axis].name + (str(loop.part) if loop.part else "")
        name = fresh(axis, parent.names, self.storage.names, self.taken)
        scope = Scope(parent, len(self.names), parent.names | {name})
        self.names.append(name)
        self.walked.add(name)
        frame.home[loop] = scope
        if self.parallel is None and self.parallel_loop is not None:
            owner, first = self.parallel_loop
            if frame is owner and loop == first and parent is self.top:
                self.parallel = scope
        return scope

    def _leave(self, frame: Frame, loop: Loop) -> None:
        """Close the loop opened last: it becomes a statement of the block it was opened in."""
        scope = frame.home.pop(loop)
        assert scope.parent is not None
        assert scope.variable is not None
        size, rest = self._trip(frame, loop)
        role = frame.nest.role(frame.nest.order.index(loop))
        role = role if role in ("u", "v") and self.storage.sizes[size].fixed is not None else ""
        made = kernel.For(
            scope.variable,
            size,
            tuple(scope.block),
            parallel=scope is self.parallel,
            rest=rest,
            role=role,
        )
        scope.parent.block.append(made)

    def _trip(self, frame: Frame, loop: Loop) -> tuple[int, kernel.Rest | None]:
        """How often a loop runs, given the parts of its axis that stay open around it."""
        axis, nest = loop.axis, frame.nest
        whole = frame.node.sizes[axis]
        if not nest.factors[axis]:
            return whole, None
        size = self.storage.part(whole, nest.factors[axis], loop.part)
        if loop in frame.constant:
            return size, None
        others = [part for part in nest.parts(axis) if part != loop and part in frame.home]
        if len(others) < len(nest.factors[axis]):
            return size, None  # another part, opened inside, stops at the end of the dimension
        if self.storage.divides(whole, nest.factors[axis]):
            return size, None
        terms = tuple((nest.weight(part), frame.variable(part)) for part in others)
        return size, kernel.Rest(whole, Affine(terms), nest.weight(loop))

    def _indexed(self, frame: Frame, index: Affine) -> Affine:
        """An index over axes as one over loop variables."""
        terms = tuple(
            (c * frame.nest.weight(part), frame.variable(part))
            for c, axis in index.terms
            for part in frame.nest.parts(axis)
        )
        return Affine(terms, index.offset, index.window, index.sizes)

    # -- assignments ---------------------------------------------------------------------------------------------------

    def _assignment(self, frame: Frame, site: Scope) -> Steps:
        """Lower one assignment at a site: its shared loops are open, the others are opened here."""
        self.storage.computed[frame.value] += 1
        order, node = frame.nest.order, frame.node
        own = [loop for loop in order if loop not in frame.home]
        reduced = set(node.reduced_axes()) if node.base is None else set()
        if any(loop in frame.home for loop in order if loop.axis in reduced):
            yield from self._partial(frame, site, own)
            self._comment(frame)
            return
        yield from self._stage_outside(frame)
        leading = next((n for n, loop in enumerate(own) if loop.axis in reduced), len(own))
        scope, opened = site, []
        for loop in own[:leading]:
            scope = self._enter(frame, loop, scope)
            opened.append(loop)
            yield from self._stage_inside(frame, loop)
        if reduced:
            yield from self._reduction(frame, scope, own[leading:])
        elif node.base is None or node.acc is None:
            self._write(frame, scope.block, self._value(frame))
        else:
            self._accumulate(frame, scope.block)
        for loop in reversed(opened):
            self._leave(frame, loop)
        self._comment(frame)

    def _accumulate(self, frame: Frame, block: Block) -> None:
        """Accumulate into an element of the base: several iterations may meet there."""
        assert frame.place.buffer is not None
        index = tuple(self._indexed(frame, part) for part in frame.node.target)
        held = Load(frame.place.buffer, index, frame.node.acc_dtype)
        value = self._accumulated(frame, held)
        self._count(frame, block, kernel.Store(frame.place.buffer, index, value))

    def _comment(self, frame: Frame) -> None:
        line = f"{unscheduled(frame.node)}   {schedule_text(frame.node, frame.nest)}"
        self.comments.append(line)

    def _named(self, name: str) -> str:
        """``name``, or with the first number that makes it new among the variables and buffers of the kernel."""
        chosen = fresh(name, self.taken, self.storage.whole_names, self.walked)
        self.taken.add(chosen)
        return chosen

    def _local(self, name: str) -> int:
        self.locals.append(self._named(name))
        return len(self.locals) - 1

    def _scratch(self, name: str, dtype: str, dims: list[int], scope: Scope) -> int:
        """A buffer for what a scope computes."""
        private = self._is_private(scope)
        chosen = self._named(name) if private else self.storage.unique.fresh(name)
        while not private and (chosen in self.taken or chosen in self.walked):
            chosen = self.storage.unique.fresh(name)
        self.taken.add(chosen)
        return self.storage.scratch(chosen, dtype, tuple(dims), private)

    def _is_private(self, scope: Scope) -> bool:
        """Whether what a scope computes belongs to one iteration of the parallel loop."""
        return self.parallel is not None and scope.is_inside(self.parallel)

    # -- staged producers ----------------------------------------------------------------------------------------------

    def _stage_outside(self, frame: Frame) -> Steps:
        """Compute the producers whose site is the start of the kernel, or inside a shared loop."""
        for read, site in zip(frame.node.reads, frame.nest.sites, strict=True):
            if site is None:
                continue
            if site == 0:
                yield self._producer(frame, read, 0, self.top)
            else:
                loop = frame.nest.order[site - 1]
                if loop in frame.home:
                    yield self._producer(frame, read, site, frame.home[loop])

    def _stage_inside(self, frame: Frame, loop: Loop) -> Steps:
        """Compute the producers whose site is inside a loop just opened."""
        for read, site in zip(frame.node.reads, frame.nest.sites, strict=True):
            if site and frame.nest.order[site - 1] == loop:
                yield self._producer(frame, read, site, frame.home[loop])

    def _producer(self, reader: Frame, read: Read, depth: int, site: Scope) -> Steps:
        """Lower a staged producer in the scope of its site, or find it computed there."""
        if read in reader.staged:
            return
        if isinstance(self.shaped.nodes[read.value], Input):
            below = tuple(loop for loop in reader.nest.order if loop not in reader.home)
            above = [s for s in reader.home.values() if site.is_inside(s)]
            copied = (reader.value, read, below, tuple(id(s) for s in above))
            if copied not in site.places:
                site.places[copied] = self._copied(reader, read, site)
                self._check_space(reader, read, site.places[copied])
            reader.staged[read] = site.places[copied]
            return
        node, nest = self._node(read.value)
        fusion = fuse(self.provenance, reader.value, reader.nest, read, depth, nest)
        home = {
            own: reader.home[ours]
            for own, ours in fusion.loops.items()
            if ours in reader.home and site.is_inside(reader.home[ours])
        }
        key = (read.value, tuple(sorted((own.axis, own.part, id(s)) for own, s in home.items())))
        if key not in site.places:
            copy = self._copy_of(reader, read)
            place = self._running_place(copy) or self._staged_place(
                read.value, node, nest, fusion, home, site
            )
            frame = Frame(read.value, node, nest, place)
            frame.home.update(home)
            self._check_space(reader, read, place)
            self._lowers(frame, copy)
            yield self._assignment(frame, site)
            site.places[key] = place
        reader.staged[read] = site.places[key]

    def _check_space(self, reader: Frame, read: Read, place: Place) -> None:
        """Registers hold constant extents only."""
        number = reader.node.reads.index(read)
        if reader.nest.space(number) == "r" and place.buffer is not None:
            sizes = [self.storage.sizes[n] for n in self.storage.buffers[place.buffer].dims]
            check_registers(reader.node, number, {size.name: size.fixed for size in sizes})

    def _staged_place(
        self,
        value: int,
        node: Assignment,
        nest: Nest,
        fusion: Fusion,
        home: dict[Loop, Scope],
        site: Scope,
    ) -> Place:
        """Storage of a staged value: a dimension per loop part that indexes it and is not shared."""
        tensor = self.shaped.tensors[value]
        kept: list[tuple[int, int | None]] = []
        dims: list[int] = []
        for d, index in enumerate(node.target):
            axis = index.axis()
            parts = () if axis is None else nest.parts(axis)
            open_parts = [part for part in parts if part not in home]
            if axis is None or len(open_parts) == len(parts):
                kept.append((d, None))
                dims.append(tensor.dims[d])
                continue
            for part in open_parts:
                kept.append((d, part.part))
                factors = nest.factors[axis]
                dims.append(self.storage.part(tensor.dims[d], factors, part.part))
        if not kept:
            return Place(self._local(tensor.name), None, ())
        buffer = self._scratch(tensor.name, tensor.dtype, dims, site)
        return Place(None, buffer, tuple(kept))

    def _copied(self, reader: Frame, read: Read, site: Scope) -> Place:
        """Pack a copy of the tile of an input that the loops below the site read."""
        tensor = self.shaped.tensors[read.value]
        home = {loop: s for loop, s in reader.home.items() if site.is_inside(s)}
        copy = copy_of(self.storage, tensor, reader, read, home)
        name = f"{tensor.name}_copy"
        if copy.kept:
            place = Place(None, self._scratch(name, tensor.dtype, copy.dims, site), copy.kept)
        else:
            place = Place(self._local(name), None, ())
        frame = Frame(read.value, copy.node, copy.nest, place)
        frame.home.update(home)

        def fill(body: Block) -> None:
            value = self._source(read, copy, frame)
            if place.buffer is None:
                assert place.local is not None
                body.append(kernel.Define(place.local, tensor.dtype, value))
            else:
                at = tuple(walks(frame.variable(loop)) for loop in copy.nest.order)
                body.append(kernel.Store(place.buffer, at, value))

        self._over(frame, site, list(copy.nest.order), fill)
        return place

    def _source(self, read: Read, copy: Copy, frame: Frame) -> Scalar:
        """What a copy takes from its input: 0 where its loops leave it."""
        tensor = self.shaped.tensors[read.value]
        index = tuple(frame.walked(walk) for walk in copy.source)
        load = Load(self.storage.whole(read.value), index, tensor.dtype)
        within = tuple(
            Within(part, size)
            for part, size, leaves in zip(index, tensor.dims, copy.leaves, strict=True)
            if leaves
        )
        return Select(within, load, Constant(0, tensor.dtype), tensor.dtype) if within else load

    # -- reductions ----------------------------------------------------------------------------------------------------

    def _reduction(self, frame: Frame, scope: Scope, loops: list[Loop]) -> Steps:
        """Start, accumulate, store. The accumulators are the output elements inside the outermost reduced loop."""
        outputs = set(frame.node.output_axes())
        inner = [loop for loop in loops if loop.axis in outputs]
        tile = tile_shape(frame, self.storage, loops, self.shaped.tensors[frame.value].dtype)
        if self._runs(frame):
            yield from self._corrected(frame, scope, loops)
        elif not inner:
            yield from self._single(frame, scope, loops)
        elif tile is not None and not tile.head:
            yield from self._whole_tile(frame, scope, tile)
        else:
            yield from self._buffered(frame, scope, loops, inner, tile)

    def _single(self, frame: Frame, scope: Scope, loops: list[Loop]) -> Steps:
        """A reduction with one accumulator: a scalar variable."""
        dtype = frame.node.acc_dtype
        local = self._local("acc")
        acc = Local(local, dtype)
        scope.block.append(kernel.Define(local, dtype, start_of(frame.node), mutable=True))

        def step(body: Block) -> None:
            self._count(frame, body, kernel.Change(local, self._accumulated(frame, acc)))

        yield from self._inside(frame, scope, loops, step)
        result = self.shaped.tensors[frame.value].dtype
        self._write(frame, scope.block, converted(acc, result))

    def _whole_tile(self, frame: Frame, scope: Scope, tile: Shape) -> Steps:
        """A reduction whose reduced loops are all inside its output loops: a tile has its final values."""
        dtype = self.shaped.tensors[frame.value].dtype

        def finish(body: Block, value: Scalar) -> None:
            self._write(frame, body, converted(value, dtype))

        yield from self._tile(frame, scope, tile, finish)

    def _tile(
        self, frame: Frame, scope: Scope, tile: Shape, use: Callable[[Block, Scalar], None]
    ) -> Steps:
        """Fill a register tile, by constant loops where all of them stay inside, and use its elements."""
        node, buffer = frame.node, self.storage.tile(self._named("tile"), tile.dtype, tile.dims)

        def element() -> Load:
            at = tuple(walks(frame.variable(loop)) for loop in tile.lanes)
            return Load(buffer, at, tile.dtype)

        def step(body: Block) -> None:
            held = element()
            acc = self._accumulated(frame, held, tile.dtype)
            self._count(frame, body, kernel.Store(buffer, held.index, acc))

        within = full(frame, self.storage, tile.lanes)
        bodies: list[tuple[kernel.Statement, ...]] = []
        for constant in (True, False) if within else (True,):
            staged, inside = dict(frame.staged), Scope(scope, None, scope.names)
            frame.constant = frozenset(tile.lanes) if constant else frozenset()
            yield from self._inside(frame, inside, [*tile.core, *tile.lanes], step)
            frame.constant, frame.staged = frozenset(), staged
            bodies.append(tuple(inside.block))
        start = replace(start_of(node), dtype=tile.dtype)
        scope.block.append(kernel.Tile(buffer, start, within, bodies[0], bodies[-1]))
        self._over(frame, scope, list(tile.lanes), lambda body: use(body, element()))

    def _accumulators(self, frame: Frame, inner: list[Loop]) -> tuple[list[Loop | int], list[int]]:
        """What indexes the accumulators of some loops: whole axes, or loop parts; and the extents."""
        node, nest = frame.node, frame.nest
        kept: list[Loop | int] = []
        dims: list[int] = []
        for loop in inner:
            if not set(nest.parts(loop.axis)) <= set(inner):
                kept.append(loop)
                factors = nest.factors[loop.axis]
                dims.append(self.storage.part(node.sizes[loop.axis], factors, loop.part))
            elif loop.axis not in kept:
                kept.append(loop.axis)
                dims.append(node.sizes[loop.axis])
        return kept, dims

    def _stranded(
        self, frame: Frame, scope: Scope, strand: Strand, use: Callable[[Block, Scalar], None]
    ) -> Steps:
        """Sum a few terms in a variable, by constant loops where all of them stay inside, before they are used."""
        for loop in strand.head:
            scope = self._enter(frame, loop, scope)
            yield from self._stage_inside(frame, loop)
        within = full(frame, self.storage, strand.core)
        bodies: list[tuple[kernel.Statement, ...]] = []
        for constant in (True, False) if within else (True,):
            staged, top = dict(frame.staged), Scope(scope, None, scope.names)
            frame.constant = frozenset(strand.core) if constant else frozenset()
            inside = top
            for loop in strand.outputs:
                inside = self._enter(frame, loop, inside)
                yield from self._stage_inside(frame, loop)
            local = self._local("part")
            start = replace(start_of(frame.node), dtype=strand.dtype)
            inside.block.append(kernel.Define(local, strand.dtype, start, mutable=True))
            held = Local(local, strand.dtype)

            def step(body: Block, held: Local = held) -> None:
                value = self._accumulated(frame, held, strand.dtype)
                self._count(frame, body, kernel.Change(held.variable, value))

            yield from self._inside(frame, inside, list(strand.core), step)
            use(inside.block, held)
            for loop in reversed(strand.outputs):
                self._leave(frame, loop)
            frame.constant, frame.staged = frozenset(), staged
            bodies.append(tuple(top.block))
        if within:
            scope.block.append(kernel.If(within, bodies[0], bodies[1]))
        else:
            scope.block.extend(bodies[0])
        for loop in reversed(strand.head):
            self._leave(frame, loop)

    def _buffered(
        self, frame: Frame, scope: Scope, loops: list[Loop], inner: list[Loop], tile: Shape | None
    ) -> Steps:
        """A reduction with an accumulator per element of the loops ``inner``: a buffer over them."""
        dtype, node = frame.node.acc_dtype, frame.node
        kept, dims = self._accumulators(frame, inner)
        name = "acc" if self._is_private(scope) else f"{self.shaped.tensors[frame.value].name}_acc"
        buffer = self._scratch(name, dtype, dims, scope)

        def at() -> tuple[Affine, ...]:
            return tuple(
                walks(frame.variable(entry))
                if isinstance(entry, Loop)
                else self._indexed(frame, walks(entry))
                for entry in kept
            )

        def start(body: Block) -> None:
            body.append(kernel.Store(buffer, at(), start_of(node)))

        def step(body: Block) -> None:
            acc = self._accumulated(frame, Load(buffer, at(), dtype))
            self._count(frame, body, kernel.Store(buffer, at(), acc))

        def finish(body: Block) -> None:
            result = self.shaped.tensors[frame.value].dtype
            self._write(frame, body, converted(Load(buffer, at(), dtype), result))

        def merge(body: Block, value: Scalar) -> None:
            held = Load(buffer, at(), dtype)
            merged = self._combined(node, held, converted(value, dtype))
            body.append(kernel.Store(buffer, held.index, merged))

        self._over(frame, scope, inner, start)
        strand = strand_shape(frame, self.storage, loops, self.shaped.tensors[frame.value].dtype)
        if tile is None and strand is not None:
            yield from self._stranded(frame, scope, strand, merge)
        elif tile is None:
            yield from self._inside(frame, scope, loops, step)
        else:
            yield from self._tiled(frame, scope, tile, merge)
        self._over(frame, scope, inner, finish)

    def _tiled(
        self, frame: Frame, scope: Scope, tile: Shape, use: Callable[[Block, Scalar], None]
    ) -> Steps:
        """The loops around a register tile, and the tile."""
        for loop in tile.head:
            scope = self._enter(frame, loop, scope)
            yield from self._stage_inside(frame, loop)
        yield from self._tile(frame, scope, tile, use)
        for loop in reversed(tile.head):
            self._leave(frame, loop)

    def _inside(
        self, frame: Frame, scope: Scope, loops: list[Loop], step: Callable[[Block], None]
    ) -> Steps:
        """The reduced loops and the output loops inside them; ``step`` fills the innermost block."""
        for loop in loops:
            scope = self._enter(frame, loop, scope)
            yield from self._stage_inside(frame, loop)
        step(scope.block)
        for loop in reversed(loops):
            self._leave(frame, loop)

    def _over(
        self, frame: Frame, scope: Scope, loops: list[Loop], make: Callable[[Block], None]
    ) -> None:
        """A loop nest of its own over ``loops`` in a scope; ``make`` fills it."""
        for loop in loops:
            scope = self._enter(frame, loop, scope)
        make(scope.block)
        for loop in reversed(loops):
            self._leave(frame, loop)

    def _count(self, frame: Frame, body: Block, step: kernel.Statement) -> None:
        """Add a step of a reduction, under a condition where an iteration may not count."""
        within = tuple(
            condition
            for read in frame.node.reads
            if read.outside == "skip"
            for condition in self._inside_of(frame, read)
        )
        body.append(kernel.If(within, (step,)) if within else step)

    def _inside_of(self, frame: Frame, read: Read) -> tuple[Within, ...]:
        """That the affine indices of a read are inside its dimensions."""
        dims = self.shaped.tensors[read.value].dims
        return tuple(
            Within(self._indexed(frame, index), size)
            for index, size in zip(read.index, dims, strict=True)
            if index.terms and not index.is_whole()
        )

    def _accumulated(self, frame: Frame, acc: Scalar, dtype: str | None = None) -> Scalar:
        """The accumulator, of its own type unless another is given, after one more iteration."""
        value = converted(self._value(frame), dtype or frame.node.acc_dtype)
        return self._combined(frame.node, acc, value)

    @staticmethod
    def _combined(node: Assignment, one: Scalar, other: Scalar) -> Scalar:
        """Two partial results of a reduction as one."""
        assert node.acc is not None
        primitive = OPS[node.acc].binary
        assert primitive is not None
        return Apply(primitive, (one, other), other.dtype)

    # -- elements ------------------------------------------------------------------------------------------------------

    def _write(self, frame: Frame, block: Block, value: Scalar) -> None:
        """Put the finished value of one element where it is kept."""
        place = frame.place
        if place.local is not None:
            block.append(kernel.Define(place.local, self.shaped.tensors[frame.value].dtype, value))
            return
        assert place.buffer is not None
        block.append(kernel.Store(place.buffer, self._at(frame, place, frame.node.target), value))

    def _at(self, frame: Frame, place: Place, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
        """The index of an element of a place, for a value indexed by ``index`` over the axes of ``frame``."""
        found = []
        for entry in place.dims:
            if isinstance(entry, Walk):
                found.append(frame.walked(entry))
            elif entry[1] is None:
                found.append(self._indexed(frame, index[entry[0]]))
            else:
                axis = index[entry[0]].axis()
                assert axis is not None
                found.append(walks(frame.variable(Loop(axis, entry[1]))))
        return tuple(found)

    def _value(self, frame: Frame) -> Scalar:
        """The scalar of an assignment over loads and locals."""
        delivered = [self._element(frame, read) for read in frame.node.reads]
        return substituted(self._scalar(frame), delivered)

    def _element(self, frame: Frame, read: Read) -> Scalar:
        dtype = self.shaped.tensors[read.value].dtype
        place = frame.staged.get(read)
        if place is None:
            rank = len(read.index)
            place = Place(
                None, self.storage.whole(read.value), tuple((d, None) for d in range(rank))
            )
        if place.local is not None:
            return Local(place.local, dtype)
        assert place.buffer is not None
        load = Load(place.buffer, self._at(frame, place, read.index), dtype)
        copied = any(isinstance(entry, Walk) for entry in place.dims)
        if read.outside != "zero" or copied:
            return load
        return Select(self._inside_of(frame, read), load, Constant(0, dtype), dtype)


def _drive(steps: Steps) -> None:
    """Run a computation and all it hands over, without recursion."""
    stack = [steps]
    while stack:
        below = next(stack[-1], None)
        if below is None:
            stack.pop()
        else:
            stack.append(below)
