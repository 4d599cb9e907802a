"""Reductions that are complete where they are read: started, accumulated and stored.

Example:
    in:   +ij~j || i j
    out:  for j: acc[j] = 0
          for i
            for j: acc[j] += in0[i,j]
          for j: out[j] = acc[j]

A reduction starts before its outermost reduced loop, over the output loops inside it, and is stored after that loop:
right for every order and every extent, 0 included. The schedule says which of its loops keep the accumulators in
registers, which sum a few terms before they meet one, and which go chunk by chunk.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Generator, Sequence
from functools import partial

from ilang.core.calculus.affine import Affine, Within, axis_index
from ilang.core.calculus.extent import bounds
from ilang.core.calculus.extent import size as size_of
from ilang.core.ir import kernel
from ilang.core.ir.cpu import Tile
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.rewriting import substituted
from ilang.core.ir.scalar import Load, Scalar, converted
from ilang.core.ir.schedule import (
    Accumulation,
    Chunks,
    Loop,
    Nest,
    PartialSums,
    Parts,
    RegisterTile,
    Role,
    ThreadTile,
)
from ilang.core.ir.shaped import Tensor
from ilang.core.passes.full_tiles import split
from ilang.core.passes.loops import combined, rests
from ilang.core.passes.runs import Runs, Steps, Use
from ilang.core.passes.scope import Block, Frame, Place, Rest, Scope
from ilang.core.passes.storage import start_of
from ilang.core.record import replace


class Reductions(Runs, ABC):
    """The part of lowering a kernel that knows reductions."""

    def _reduction(self, frame: Frame, scope: Scope, loops: list[Loop]) -> Steps:
        """Start, accumulate, store. The accumulators are the output elements inside the outermost reduced loop."""
        accumulation = self._accumulation(frame)
        match accumulation:
            case Chunks():
                yield from self._in_chunks(frame, scope, loops, accumulation)
            case RegisterTile() if not accumulation.outer:
                use = None if accumulation.kept else self._finish(frame)
                yield from self._tile(frame, scope, accumulation, use)
            case ThreadTile() if accumulation.is_all():
                yield from self._in_runs(frame, scope, accumulation, self._finish(frame))
            case RegisterTile() | PartialSums() | ThreadTile() | None if _inner(frame, loops):
                yield from self._buffered(frame, scope, loops, accumulation)
            case ThreadTile():
                yield from self._single(frame, scope, loops, accumulation)
            case _:
                yield from self._single(frame, scope, loops)

    def _accumulation(self, frame: Frame) -> Accumulation | None:
        return self.plan.instances[frame.instance].accumulation

    def _single(
        self,
        frame: Frame,
        scope: Scope,
        loops: list[Loop],
        runs: ThreadTile | None = None,
        use: Use | None = None,
    ) -> Steps:
        """A reduction with one accumulator: a scalar variable, which terms or what ``runs`` give meet.

        The accumulator is the result, or that of a chunk, which has a ``use``.
        """
        dtype = frame.node.acc_dtype()
        acc = self._accumulator("acc" if use is None else "part", frame, dtype, scope.block)

        def step(body: Block) -> None:
            self._add_step(frame, body, kernel.Change(acc.variable, self._accumulated(frame, acc)))

        def merge(body: Block, value: Scalar) -> None:
            merged = combined(frame.node, acc, converted(value, dtype))
            body.append(kernel.Change(acc.variable, merged))

        if runs is None:
            yield from self._inside(frame, scope, loops, step)
        else:
            yield from self._in_runs(frame, scope, runs, merge)
        (use or self._finish(frame))(scope.block, acc)

    def _finish(self, frame: Frame) -> Use:
        result = self._tensor(frame).dtype
        return lambda body, value: body.append(self._written(frame, converted(value, result)))

    def _in_chunks(self, frame: Frame, scope: Scope, loops: list[Loop], chunks: Chunks) -> Steps:
        """A reduction outside all loops: each chunk of its outermost loop by itself, then all of them in order.

        The number of chunks depends on extents alone, and so does the result. Threads share the chunks. Inside of other
        loops there may be one chunk alone, which is the result.
        """
        name, axes = self._tensor(frame).name, dict.fromkeys(loop.axis for loop in loops)
        inner = _inner(frame, loops)
        kept, dims = self._accumulators(frame, inner)
        sizes = [frame.node.sizes[axis] for axis in axes]
        blocks = self.storage.blocks(sizes, dims, name, chunks)
        parts = self._scratch(
            f"{name}_parts", frame.value, frame.node.acc_dtype(), [blocks, *dims], scope
        )
        several = (Within(Affine((), 1), blocks),)
        inside, block = self._counting(scope)

        def keep(body: Block, value: Scalar) -> None:
            index = (axis_index(block), *self._kept_at(frame, kept))
            store = kernel.Store(parts, index, value)
            if not chunks.around:
                body.append(store)
                return
            alone: Block = []
            self._finish(frame)(alone, value)
            body.append(kernel.If(several, (store,), tuple(alone)))

        frame.chunks[chunks.loop] = blocks, chunks.multiple, block
        yield from self._chunk(frame, inside, loops, chunks, keep)
        del frame.chunks[chunks.loop]
        body = _unswitched(inside.block, several)
        scope.block.append(kernel.For(block, size_of(blocks), body))
        after = Scope(scope, None, scope.names) if chunks.around else scope
        with self._opened(frame, inner, after) as innermost:
            self._add_chunks(frame, innermost, blocks, (parts, kept))
        if chunks.around:
            scope.block.append(kernel.If(several, tuple(after.block)))

    def _chunk(
        self, frame: Frame, scope: Scope, loops: list[Loop], chunks: Chunks, use: Use
    ) -> Steps:
        rest = loops[len(chunks.around) :]

        def inside(scope: Scope) -> Steps:
            if _inner(frame, rest):
                return self._buffered(frame, scope, rest, chunks.each, use)
            return self._single(frame, scope, rest, None, use)

        yield from self._around(frame, scope, chunks.around, inside)

    def _add_chunks(
        self, frame: Frame, scope: Scope, blocks: int, parts: tuple[BufferId, Sequence[Loop | int]]
    ) -> None:
        """Add what all chunks have for an element, in a scope inside the loops over elements."""
        _, after = self._counting(scope)
        acc = self._accumulator("acc", frame, frame.node.acc_dtype(), scope.block)
        buffer, kept = parts
        part = Load(buffer, (axis_index(after), *self._kept_at(frame, kept)), acc.dtype)
        both = combined(frame.node, acc, part)
        one = self.scheduled.machine.device is not None and not kept
        role: Role = "t" if one else ""  # a block's threads share the chunks of the only element
        step = kernel.For(after, size_of(blocks), (kernel.Change(acc.variable, both),), role=role)
        scope.block.append(step)
        self._finish(frame)(scope.block, acc)

    def _place_of_parts(self, frame: Frame, parts: Parts, scope: Scope) -> Place:
        tensor = self._tensor(frame)
        counts = self._counts_of_parts(frame, parts)
        dims = [*counts, *tensor.dims]
        buffer = self._scratch(f"{tensor.name}_parts", frame.value, tensor.dtype, dims, scope)
        whole = tuple(range(len(tensor.dims)))
        if parts.least:
            assert frame.place.buffer is not None
            self.storage.instead(buffer, frame.place.buffer)
            return Place(None, buffer, whole)
        numbers = tuple(((1, loop),) for loop in parts.loops)
        return Place(None, buffer, (*numbers, *whole))

    def _counts_of_parts(self, frame: Frame, parts: Parts) -> list[int]:
        """The size numbers of how many parts there are, along each of their loops."""
        counts = [self._trip(frame, loop)[0] for loop in parts.loops]
        if not parts.least:
            return counts
        order = frame.nest.order
        around = order[: order.index(parts.loops[0])]
        tiles = [self._trip(frame, loop)[0] for loop in around]
        return [self.storage.shares(counts[0], tiles, parts.least, parts.most)]

    def _sharing(
        self, frame: Frame, scope: Scope, order: tuple[list[Loop], list[Loop]], parts: Parts
    ) -> Generator[Steps, None, None]:
        """A reduction in parts of which each has several iterations of a loop, by a loop over the parts.

        Args:
            frame: the reduction.
            scope: of the loop over the parts.
            order: the loops inside it, those over elements and those from the reduced one on.
            parts: how many iterations share a part.
        """
        elements, loops = order
        (loop,) = parts.loops
        (count,) = self._counts_of_parts(frame, parts)
        inside, number = self._counting(scope)
        frame.place = replace(frame.place, part=(axis_index(number),))
        frame.chunks[loop] = count, 1, number
        yield from self._around(
            frame, inside, elements, lambda inner: self._reduction(frame, inner, loops)
        )
        del frame.chunks[loop]
        body = tuple(inside.block)
        if loops[1:] == [Loop(loop.axis, 1)] and parts.threads:
            whole = frame.node.sizes[loop.axis]
            body = tuple(_over_elements(s, whole, frame.nest.weight(loop)) for s in body)
        scope.block.append(kernel.For(number, size_of(count), body, role="p"))

    def _combine_parts(self, frame: Frame, whole: Place, parts: Parts, scope: Scope) -> None:
        """Combine what the parts of each element have, in their order, and store it.

        A thread does, or the threads of a block; or there are both ways, one of which runs. A loop over parts stops
        where that of the reduction did.
        """
        node, dtype = frame.node, self._tensor(frame).dtype
        assert frame.place.buffer is not None
        counts = self._counts_of_parts(frame, parts)
        elements = tuple(Loop(axis) for axis in dict.fromkeys(node.output_axes()))
        plain = Nest(((),) * len(node.axes), elements, (None,) * len(node.reads))
        after = Frame(frame.value, node, plain, whole, frame.instance)
        for by_threads in (False, True) if parts.by_count else (parts.threads,):
            with self._opened(after, elements, scope) as element:
                acc = self._accumulator("acc", frame, node.acc_dtype(), element.block)
                around, inside, ends = dict[Loop, VariableId](), element, list[tuple[Rest, ...]]()
                for loop in parts.loops:
                    inside, number = self._counting(inside)
                    ends.append(rests(self.storage, frame, loop, around))
                    around[loop] = number
                numbers = map(axis_index, around.values())
                at = (*numbers, *(self._indexed(after, part) for part in node.target))
                part = converted(Load(frame.place.buffer, at, dtype), acc.dtype)
                step: kernel.Statement = kernel.Change(acc.variable, combined(node, acc, part))
                for number, count, end in reversed(
                    [*zip(around.values(), counts, ends, strict=True)]
                ):
                    role: Role = "t" if by_threads and number == [*around.values()][-1] else ""
                    stop = size_of(count).among("min", end)
                    step = kernel.For(number, stop, (step,), role=role)
                element.block.append(step)
                element.block.append(self._written(after, converted(acc, dtype)))

    def _tensor(self, frame: Frame) -> Tensor:
        return self.shaped.tensors[frame.value]

    def _tile(self, frame: Frame, scope: Scope, tile: RegisterTile, use: Use | None) -> Steps:
        """Fill a register tile, and use its elements.

        Without a ``use``, the storage of a staged value is no more than the tile, and is the tile itself.
        """
        node, buffer = frame.node, frame.place.buffer
        if use is None:
            assert buffer is not None
            self.storage.into_tile(buffer)
        else:
            dims = [self._trip(frame, loop)[0] for loop in tile.elements]
            tensor = self._tensor(frame)
            name = self._named(f"{tensor.name}_tile")
            buffer = self.storage.tile(name, tile.dtype, dims, tensor.origin())
        self.storage.accumulates(buffer, node)

        def element() -> Load:
            at = tuple(axis_index(frame.variable(loop)) for loop in tile.elements)
            return Load(buffer, at, tile.dtype)

        def step(body: Block) -> None:
            held = element()
            acc = self._accumulated(frame, held, tile.dtype)
            self._add_step(frame, body, kernel.Store(buffer, held.index, acc))

        around = scope
        for loop in tile.blocks:
            around = self._enter(frame, loop, around)
        loops = [*tile.core, *tile.elements]
        staged, inside = dict(frame.staged), Scope(around, None, around.names)
        yield from self._inside(frame, inside, loops, step)
        frame.staged = staged
        start = replace(start_of(node), dtype=tile.dtype)
        trips = [(frame.variable(loop), *self._trip(frame, loop)) for loop in tile.blocks]
        for loop in tile.blocks:
            assert not frame.home.pop(loop).block, "blocks of a tile have no room for statements"
        blocks = tuple(
            kernel.For(variable, size_of(size).among("min", rests), ())
            for variable, size, rests in trips
        )
        scope.block.append(
            Tile(
                buffer,
                start,
                tuple(inside.block),
                blocks,
                tile.partial,
                vector=tile.vector,
                micro_tiles=tile.micro_tiles,
            )
        )
        if use is not None:
            outputs = node.output_axes()  # in whose order elements stand in the result
            stored = sorted(tile.elements, key=lambda x: (outputs.index(x.axis), x.part))
            order = tile.elements if tile.outer else tuple(stored)
            self._over_lanes(frame, scope, order, lambda body: use(body, element()))

    def _accumulators(self, frame: Frame, inner: list[Loop]) -> tuple[list[Loop | int], list[int]]:
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

    def _kept_at(self, frame: Frame, kept: Sequence[Loop | int]) -> tuple[Affine, ...]:
        """The index of the accumulator of an iteration, among those for each of these loops and whole axes."""
        return tuple(
            axis_index(frame.variable(entry))
            if isinstance(entry, Loop)
            else self._indexed(frame, axis_index(entry), kept=True)
            for entry in kept
        )

    def _summed(self, frame: Frame, scope: Scope, sums: PartialSums, use: Use) -> Steps:
        """Sum a few terms in a variable, which all are there in a full tile, before they are used."""

        def terms(scope: Scope) -> Steps:
            held = self._accumulator("part", frame, sums.dtype, scope.block)
            return self._in_variable(frame, scope, held, sums.core, use)

        def inside(scope: Scope) -> Steps:
            staged, top = dict(frame.staged), Scope(scope, None, scope.names)
            yield from self._around(frame, top, sums.outputs, terms)
            frame.staged = staged
            variables = {frame.variables[loop] for loop in sums.core}
            scope.block += split(self.storage.sizes, tuple(top.block), variables)

        yield from self._around(frame, scope, sums.outer, inside)

    def _buffered(
        self,
        frame: Frame,
        scope: Scope,
        loops: list[Loop],
        held: RegisterTile | PartialSums | ThreadTile | None,
        use: Use | None = None,
    ) -> Steps:
        dtype, node = frame.node.acc_dtype(), frame.node
        inner, finished = _inner(frame, loops), use or self._finish(frame)
        kept, dims = self._accumulators(frame, inner)
        name = self.shaped.tensors[frame.value].name
        buffer = self._scratch(f"{name}_acc", frame.value, dtype, dims, scope)
        self.storage.accumulates(buffer, node)

        def at() -> tuple[Affine, ...]:
            return self._kept_at(frame, kept)

        def start(body: Block) -> None:
            body.append(kernel.Store(buffer, at(), start_of(node)))

        def step(body: Block) -> None:
            acc = self._accumulated(frame, Load(buffer, at(), dtype))
            self._add_step(frame, body, kernel.Store(buffer, at(), acc))

        def finish(body: Block) -> None:
            finished(body, Load(buffer, at(), dtype))

        def merge(body: Block, value: Scalar) -> None:
            held = Load(buffer, at(), dtype)
            merged = combined(node, held, converted(value, dtype))
            body.append(kernel.Store(buffer, held.index, merged))

        self._over(frame, scope, inner, start)
        if held is None:
            yield from self._inside(frame, scope, loops, step)
        else:
            yield from self._by_registers(frame, scope, held, merge)
        self._over(frame, scope, inner, finish)

    def _by_registers(
        self, frame: Frame, scope: Scope, held: RegisterTile | PartialSums | ThreadTile, use: Use
    ) -> Steps:
        """A reduction whose terms registers hold a few of at a time, and what becomes of these."""
        match held:
            case RegisterTile():
                tile = partial(self._tile, frame, tile=held, use=use)
                return self._around(frame, scope, held.outer, tile)
            case PartialSums():
                return self._summed(frame, scope, held, use)
            case ThreadTile():
                return self._in_runs(frame, scope, held, use)


def _inner(frame: Frame, loops: Sequence[Loop]) -> list[Loop]:
    outputs = set(frame.node.output_axes())
    return [loop for loop in loops if loop.axis in outputs]


def _unswitched(body: Sequence[kernel.Statement], test: tuple[Within, ...]) -> kernel.Block:
    """A block with a test around the loops that do nothing else than what depends on it: they can be vectorized."""
    out: list[kernel.Statement] = []
    for s in body:
        loop = replace(s, body=_unswitched(s.body, test)) if isinstance(s, kernel.For) else s
        only = loop.body[0] if isinstance(loop, kernel.For) and len(loop.body) == 1 else None
        if isinstance(loop, kernel.For) and isinstance(only, kernel.If) and only.within == test:
            first, second = (replace(loop, body=part) for part in (only.body, only.otherwise))
            out.append(kernel.If(test, (first,), (second,)))
        else:
            out.append(loop)
    return tuple(out)


def _over_elements(s: kernel.Statement, whole: int, step: int) -> kernel.Statement:
    """A loop over blocks of ``step`` elements, and the loop over each, as one loop; other statements stay.

    The new loop goes along the whole dimension, of this size, in the chunks of the outer one.
    """
    match s:
        case kernel.For(body=(kernel.For() as inner,), chunk=(count, multiple, block)):
            at = Affine(((-step, s.variable), (1, inner.variable)))
            body = substituted(inner.body, {inner.variable: at})
            begin, end = bounds(whole, (count, step * multiple, block))
            return replace(inner, begin=begin, end=end, body=body)
        case _:
            return s
