"""Lower loop nests to kernels: fuse staged producers, fold their storage, start reductions, write loops.

Example:
    in:   t1 || i k j      out || i k j 0
    out:  for i
            for j: acc[j] = 0
            for k
              for j: t1 = in0[i,k] * in1[k,j];  acc[j] += t1
            for j: out[i,j] = acc[j]

One kernel per value that is stored whole; those whose leading loops are the same share one (``schedule/groups.py``),
and one that is overwritten before anything reads it has none. A staged producer is computed in the block of the loop
its site names, or of the loop that this one fused with; the loops it shares (``schedule/fuse.py``) are its reader's, so
its storage keeps a dimension per loop part that it does not share: a scalar variable when none is left. A producer
staged at one place for several readers is computed there once.

A reduction starts before its outermost reduced loop, over the output loops inside it, and is stored after that loop:
right for every order and every extent, 0 included. The loop opened last of a split axis stops at the rest of the
dimension, given the parts in scope: right for every order of the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ilang.core.calculus.affine import Affine, Within
from ilang.core.ir import kernel
from ilang.core.ir.ids import ValueId, VariableId
from ilang.core.ir.scalar import Constant, Load, Scalar, Select, scalars_within
from ilang.core.ir.schedule import (
    Chunks,
    Group,
    Loop,
    LoopSteps,
    Nest,
    Opened,
    PackedDimension,
    Root,
    Scheduled,
    StagedSource,
    schedule_text,
    unscheduled,
)
from ilang.core.ir.shaped import Read, Shaped
from ilang.core.ir.updates import overwritten_values
from ilang.core.passes.duplicates import without_duplicates
from ilang.core.passes.online import OnlineReductions
from ilang.core.passes.runs import Steps
from ilang.core.passes.scope import Block, Frame, Place, Scope
from ilang.core.passes.storage import Storage
from ilang.core.record import replace

if TYPE_CHECKING:
    from ilang.core.passes.packing import Copy


LONGEST = 100
"""The most characters of an assignment in a comment, and the most parts of its scalar.

A text writes shared parts again: that of a long derivative would be exponentially long."""
AssignmentText = Callable[[Shaped, int], str]
"""The text of an assignment, by its value."""


def nest_to_kernel(scheduled: Scheduled, text: AssignmentText) -> kernel.Program:
    """Every kernel of a program, in the order in which they run; comments have the ``text`` of assignments."""
    shaped = scheduled.shaped
    storage = Storage(shaped, scheduled.whole(), scheduled.machine)
    overwritten = overwritten_values(shaped)
    kernels = {
        number: _Lowering(scheduled, storage, number, text).run(group)
        for number, group in enumerate(scheduled.groups)
        if not overwritten.issuperset(root.value for root in group.roots)
    }
    kept, calls = without_duplicates(kernels, storage.buffers, storage.sizes)
    inputs = tuple(storage.of_value[value] for value in shaped.inputs)
    outputs = tuple(storage.of_value[value] for value in shaped.outputs)
    return kernel.Program(
        name=shaped.name,
        sizes=tuple(storage.sizes),
        buffers=tuple(storage.buffers),
        inputs=inputs,
        outputs=outputs,
        kernels=kept,
        derived=shaped.derived,
        counts=tuple(storage.counts),
        machine=scheduled.machine,
        reaches=shaped.reaches,
        calls=calls,
    )


class _Lowering(OnlineReductions):
    def __init__(
        self, scheduled: Scheduled, storage: Storage, number: int, text: AssignmentText
    ) -> None:
        super().__init__(scheduled, storage)
        self.number = number
        self.comments: list[str] = []
        self.text = text

    def run(self, group: Group) -> kernel.Kernel:
        """The kernel of a fusion group: the loops that its roots share, and inside them each root in turn."""
        roots = group.roots
        frames = {root.value: self._frame(root.value, n) for n, root in enumerate(roots)}
        self.plan = group.plan
        self.frames = {frame.instance: frame for frame in frames.values()}
        sharing: dict[int, list[Root]] = {root.value: [] for root in roots}
        for root in roots:
            if root.owner != root.value:
                sharing[root.owner].append(root)
        self._roots(sharing, frames, roots[0], [self.top])
        return kernel.Kernel(
            f"k{self.number}",
            tuple(self.top.block),
            tuple(self.names),
            tuple(self.locals),
            tuple(self.comments),
            requests=tuple(self._requests(group)),
            parts=tuple(self.parts),
        )

    def _requests(self, group: Group) -> Iterator[kernel.LaunchRequest]:
        for value in dict.fromkeys(instance.value for instance in group.plan.instances):
            node, nest = self.scheduled.assigned(value)
            if nest.asked and node.schedule is not None:
                yield kernel.LaunchRequest(nest.asked, unscheduled(node), node.schedule.span)

    def _roots(
        self,
        sharing: dict[int, list[Root]],
        frames: dict[int, Frame],
        root: Root,
        scopes: list[Scope],
    ) -> None:
        """Lower a root and those that share its loops; ``scopes`` are the kernel's own and the loops open around it."""
        frame, order = frames[root.value], self.scheduled.assigned(root.value)[1].order
        frame.home.update(zip(order, scopes[1:], strict=False))
        others = sharing[root.value]
        depth = max((other.shared for other in others), default=0)
        for loop in order[root.shared : depth]:
            scopes = [*scopes, self._enter(frame, loop, scopes[-1])]
        turns: list[list[Root]] = [[] for _ in scopes]
        turns[-1].append(root)
        for other in others:
            turns[max(other.shared, root.shared)].append(other)
        for depth in range(len(scopes) - 1, root.shared - 1, -1):
            for other in sorted(turns[depth], key=lambda other: other.value):
                if other is root:
                    _drive(self._assignment(frame, scopes[depth]))
                else:
                    self._roots(sharing, frames, other, scopes[: other.shared + 1])
            if depth > root.shared:
                self._leave(frame, order[depth - 1])

    def _frame(self, value: int, instance: int) -> Frame:
        rank = len(self.shaped.tensors[value].dims)
        place = Place(None, self.storage.whole(ValueId(value)), tuple(range(rank)))
        return Frame(value, *self.scheduled.assigned(value), place, instance)

    def _assignment(self, frame: Frame, site: Scope) -> Steps:
        """Lower one assignment at a site: its shared loops are open, the others are opened here."""
        order, node = frame.nest.order, frame.node
        loops = [loop for loop in order if loop not in frame.home]
        reduced = set(node.reduced_axes()) if node.base is None else set()
        if any(loop in frame.home for loop in order if loop.axis in reduced):
            yield from self._partial(frame, site, loops)
            self._comment(frame)
            return
        yield from self._stage_outside(frame)
        parts = self.plan.instances[frame.instance].parts
        apart = () if parts is None or parts.least else parts.loops
        folded = (n for n, loop in enumerate(loops) if loop.axis in reduced and loop not in apart)
        chunks = self._accumulation(frame)
        in_chunks = isinstance(chunks, Chunks) and chunks.around
        leading = 0 if in_chunks else next(folded, len(loops))
        whole = frame.place
        if parts is not None:
            frame.place = self._place_of_parts(frame, parts, site)
        scope, opened = site, []
        outer = 0 if parts is not None and parts.by_count else leading
        for loop in loops[:outer]:
            scope = self._enter(frame, loop, scope)
            opened.append(loop)
            yield from self._stage_inside(frame, loop)
        mirror = self.plan.mirror if frame.instance == 0 else None
        if mirror is not None:
            self._end_at_diagonal(frame, mirror)
        if parts is not None and parts.least:
            yield from self._sharing(frame, scope, (loops[outer:leading], loops[leading:]), parts)
        elif reduced:
            yield from self._reduction(frame, scope, loops[leading:])
        elif node.acc is None:
            self._add_step(frame, scope.block, self._written(frame, self._value(frame)))
        else:
            self._accumulate(frame, scope.block)
        for loop in reversed(opened):
            self._leave(frame, loop)
        if parts is not None:
            self._combine_parts(frame, whole, parts, site)
        if mirror is not None:
            self._copy_across_diagonal(frame, mirror, site)
        self._comment(frame)

    @staticmethod
    def _end_at_diagonal(frame: Frame, mirror: tuple[int, int]) -> None:
        """End the blocks along one axis of a symmetric result at the end of the block of the other one."""
        (block, *_), (step, *_) = (frame.nest.factors[axis] for axis in mirror)
        outer, inner = map(Loop, mirror)
        end = Affine(((block, frame.variable(outer)),), block)
        frame.ends[inner] = end, step

    def _copy_across_diagonal(self, frame: Frame, mirror: tuple[int, int], site: Scope) -> None:
        """Copy the elements of a symmetric result before the diagonal blocks to the other side of these."""
        node, (outer, inner) = frame.node, mirror
        factors: list[tuple[int, ...]] = [()] * len(node.axes)
        factors[inner] = frame.nest.factors[outer]
        others = [Loop(axis) for axis in dict.fromkeys(node.output_axes()) if axis not in mirror]
        block, both = Loop(inner), [Loop(inner, 1), Loop(outer)]
        if node.target[-1].axis() == inner:
            both.reverse()  # along the memory of what is written
        nest = Nest(tuple(factors), (*others, block, *both), (None,) * len(node.reads))
        after = Frame(frame.value, node, nest, frame.place, frame.instance)
        swapped = {**{axis: axis for axis in range(len(node.axes))}, outer: inner, inner: outer}
        source = tuple(index.renamed(swapped) for index in node.target)
        with self._opened(after, nest.order, site) as scope:
            start = Affine(((nest.weight(block), after.variable(block)),))
            after.ends[Loop(outer)] = start, 1
            assert frame.place.buffer is not None
            at = self._at(after, frame.place, source)
            value = Load(frame.place.buffer, at, self._tensor(frame).dtype)
            scope.block.append(self._written(after, value))

    def _accumulate(self, frame: Frame, block: Block) -> None:
        """Accumulate into an element of the base: several iterations may meet there."""
        assert frame.place.buffer is not None
        index = tuple(self._indexed(frame, part) for part in frame.node.target)
        held = Load(frame.place.buffer, index, frame.node.acc_dtype())
        value = self._accumulated(frame, held)
        self._add_step(frame, block, kernel.Store(frame.place.buffer, index, value))

    def _comment(self, frame: Frame) -> None:
        schedule = schedule_text(frame.node, frame.nest)
        line = f"{unscheduled(frame.node)}  {schedule}"
        parts = islice(scalars_within(frame.node.scalar), LONGEST)
        if sum(1 for _ in parts) < LONGEST:
            assignment = self.text(self.shaped, frame.value)
            line = f"{assignment};  {line}" if len(assignment) <= LONGEST else line
        if self.comments[-1:] != [line]:
            self.comments.append(line)

    def _stage_outside(self, frame: Frame) -> Steps:
        """Compute the producers whose site is the start of the kernel, or inside a shared loop."""
        for number, site in enumerate(frame.nest.sites):
            if site is None:
                continue
            if site == 0:
                yield self._producer(frame, number, self.top)
            else:
                loop = frame.nest.order[site - 1]
                if loop in frame.home:
                    yield self._producer(frame, number, frame.home[loop])

    def _stage_inside(self, frame: Frame, loop: Loop) -> Steps:
        """Compute the producers whose site is inside a loop just opened."""
        for number, site in enumerate(frame.nest.sites):
            if site and frame.nest.order[site - 1] == loop:
                yield self._producer(frame, number, frame.home[loop])

    def _producer(self, reader: Frame, number: int, site: Scope) -> Steps:
        """Lower the staged producer of a read in the scope of its site, or find it computed there."""
        read, fusion = reader.node.reads[number], self.scheduled.fusions[reader.value][number]
        if read in reader.staged:
            return
        instance = self.plan.instances[reader.instance]
        if fusion is None:  # the read copies what is there already
            if number not in instance.copies:
                return
            below = tuple(loop for loop in reader.nest.order if loop not in reader.home)
            above = [s for s in reader.home.values() if site.is_inside(s)]
            copied = (reader.value, read, below, tuple(id(s) for s in above))
            if copied not in site.places:
                site.places[copied] = self._copied(reader, read, instance.copies[number], site)
            reader.staged[read] = site.places[copied]
            self._doubled(reader, number)
            return
        node, nest = self.scheduled.assigned(read.value)
        home = {
            inner: reader.home[outer]
            for inner, outer in fusion.loops.items()
            if outer in reader.home and site.is_inside(reader.home[outer])
        }
        source = instance.sources[read]
        if source.instance not in site.places:
            frame = Frame(read.value, node, nest, Place(None, None, ()), source.instance)
            frame.home.update(home)
            self._place_intervals(frame)
            online = self.plan.online.get(frame.instance)
            is_partial = online is not None and online.partial
            kept = self._running(frame.instance) if is_partial else None
            frame.place = kept or self._staged_place(frame, site)
            self.frames[frame.instance] = frame
            yield self._assignment(frame, site)
            site.places[source.instance] = frame.place
        reader.staged[read] = as_read(site.places[source.instance], source)
        self._doubled(reader, number)

    def _doubled(self, reader: Frame, number: int) -> None:
        """Say that what a read is staged in has two buffers, where a schedule asks for them."""
        buffer = reader.staged[reader.node.reads[number]].buffer
        if buffer is not None and reader.nest.space(number) in ("s2", "c2"):
            self.storage.doubles(buffer)

    def _place_intervals(self, frame: Frame) -> None:
        """Let axes walk intervals, from loops that are open."""
        instance, sizes = self.plan.instances[frame.instance], list(frame.node.sizes)
        for axis, (start, offset) in instance.intervals.items():
            terms = tuple((step, self._variable(opened)) for step, opened in start)
            frame.origin[axis] = Within(Affine(terms, offset), frame.node.sizes[axis])
            sizes[axis] = self.storage.number(instance.extents[axis])
        frame.node = replace(frame.node, sizes=tuple(sizes))

    def _variable(self, opened: Opened) -> VariableId:
        return self.frames[opened.instance].variable(opened.loop)

    def _staged_place(self, frame: Frame, site: Scope) -> Place:
        tensor, kept = self.shaped.tensors[frame.value], self.plan.instances[frame.instance].kept
        if not kept:
            return Place(self._local(tensor.name, frame.value), None, ())
        dims = [self.storage.number(extent) for extent in kept.values()]
        buffer = self._scratch(tensor.name, frame.value, tensor.dtype, dims, site)
        return Place(None, buffer, tuple(kept))

    def _copied(
        self, reader: Frame, read: Read, packed: tuple[PackedDimension, ...], site: Scope
    ) -> Place:
        tensor = self.shaped.tensors[read.value]
        from ilang.core.passes.packing import copy_of

        home = {loop: s for loop, s in reader.home.items() if site.is_inside(s)}
        copy = copy_of(self.storage, tensor, reader, read, packed, home)
        content = copy.content(read.value, {loop: s.variable for loop, s in home.items()})
        # On a GPU the threads of a reader make its copies.
        is_shared = self.storage.machine.device is None
        if is_shared and content in site.places:
            return replace(site.places[content], dims=copy.kept)
        name = f"{tensor.name}_copy"
        if copy.kept:
            place = Place(
                None,
                self._scratch(name, read.value, tensor.dtype, copy.dims, site),
                copy.kept,
                True,
            )
        else:
            place = Place(self._local(name, read.value), None, (), True)
        frame = Frame(read.value, copy.node, copy.nest, place, reader.instance)
        frame.home.update(home)

        def fill(body: Block) -> None:
            value = self._source(read, copy, frame)
            if place.buffer is None:
                assert place.local is not None
                body.append(kernel.Define(place.local, tensor.dtype, value))
            else:
                at = tuple(frame.index_of(each) for each in copy.at)
                body.append(kernel.Store(place.buffer, at, value))

        outer = copy.nest.order[: len(copy.nest.order) - copy.inner] if copy.inner else ()
        with self._opened(frame, outer, site) as inside:
            if outer:
                self._over_lanes(frame, inside, copy.nest.order[len(outer) :], fill)
            else:
                self._over(frame, inside, list(copy.nest.order), fill)
        if place.buffer is not None:
            inside.places[content] = place
        return place

    def _source(self, read: Read, copy: Copy, frame: Frame) -> Scalar:
        """The scalar that a copy takes from its input: 0 where its loops leave it."""
        tensor = self.shaped.tensors[read.value]
        index = tuple(
            begin + frame.index_of(steps)
            for begin, steps in zip(copy.begin, copy.source, strict=True)
        )
        load = Load(self.storage.whole(read.value), index, tensor.dtype)
        within = tuple(
            Within(part, size)
            for part, size, leaves in zip(index, tensor.dims, copy.leaves, strict=True)
            if leaves
        )
        return Select(within, load, Constant(0, tensor.dtype), tensor.dtype) if within else load


def as_read(place: Place, source: StagedSource) -> Place:
    """A place as its reader sees it: intervals by the reader's own loops below the place."""

    def walked(entry: int | Loop | LoopSteps) -> int | Loop | LoopSteps:
        if isinstance(entry, tuple):
            return entry
        return source.walks.get(entry.axis if isinstance(entry, Loop) else entry, entry)

    return replace(place, dims=tuple(map(walked, place.dims)))


def _drive(steps: Steps) -> None:
    """Run a computation and all it hands over, without recursion."""
    stack = [steps]
    while stack:
        below = next(stack[-1], None)
        if below is None:
            stack.pop()
        else:
            stack.append(below)
