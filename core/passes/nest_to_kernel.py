"""Lower loop nests to kernels: stage producers, fold their storage, start reductions, write loops.

Example:
    in:   t1 || i k j      out || i k j 0
    out:  for i
            for j: acc[j] = 0
            for k
              for j: t1 = in0[i,k] * in1[k,j];  acc[j] += t1
            for j: out[i,j] = acc[j]

One kernel per assignment that is not staged. A staged producer is computed in the block of the loop its site names;
its loops outside the site are the reader's (they walk the same dimensions), so its storage keeps only the others: a
scalar variable when none is left. A reduction starts before its outermost reduced loop, over the output loops inside
it, and is stored after that loop: right for every order and every extent, 0 included.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator

from ilang.core.dtype import INTEGER_ENDS
from ilang.core.ir import kernel
from ilang.core.ir.affine import Affine, Within, walks
from ilang.core.ir.nest import Nest, Scheduled, schedule_text
from ilang.core.ir.scalar import Apply, Constant, Convert, Load, Local, Operand, Scalar, Select
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.names import Names
from ilang.core.ops import OPS
from ilang.core.record import record
from ilang.core.schedule.auto import mapping

Block = list[kernel.Statement]
Steps = Generator["Steps", None, None]
"""A computation that hands sub-computations to ``_drive``: staged producers nest as deep as programs are long."""


def nest_to_kernel(scheduled: Scheduled) -> kernel.Program:
    """Every kernel of a program, in the order in which they run."""
    shaped = scheduled.shaped
    storage = _Storage(shaped)
    staged = _staged(scheduled)
    kernels: list[kernel.Kernel] = []
    for value, node in enumerate(shaped.nodes):
        if isinstance(node, Assignment) and value not in staged:
            kernels.append(_Lowering(scheduled, storage, len(kernels)).run(value))
    buffers = tuple(storage.buffers)
    inputs = tuple(storage.of_value[value] for value in shaped.inputs)
    outputs = tuple(storage.of_value[value] for value in shaped.outputs)
    return kernel.Program(
        shaped.name,
        shaped.sizes,
        buffers,
        inputs,
        outputs,
        tuple(kernels),
        shaped.derived,
        shaped.bounds,
    )


def _staged(scheduled: Scheduled) -> set[int]:
    found = set()
    for node, nest in zip(scheduled.shaped.nodes, scheduled.nests, strict=True):
        if isinstance(node, Assignment) and nest is not None:
            found |= {
                r.value for r, site in zip(node.reads, nest.sites, strict=True) if site is not None
            }
    return found


class _Storage:
    """The buffers of a program: inputs and outputs first, temporaries as kernels ask for them."""

    def __init__(self, shaped: Shaped) -> None:
        self.shaped = shaped
        self.buffers: list[kernel.Buffer] = []
        self.of_value: dict[int, int] = {}
        self.inputs = frozenset(shaped.inputs)
        self.outputs = frozenset(shaped.outputs)
        self.names = frozenset(tensor.name for tensor in shaped.tensors)
        self.unique = Names(self.names)
        self.successor = {
            node.base: value
            for value, node in enumerate(shaped.nodes)
            if isinstance(node, Assignment) and node.base is not None
        }
        for value in (*shaped.inputs, *shaped.outputs):
            self.whole(value)

    def whole(self, value: int) -> int:
        """The buffer that holds all of a value; one that takes another's place has its buffer."""
        while value in self.successor:
            value = self.successor[value]
        if value not in self.of_value:
            tensor = self.shaped.tensors[value]
            role = "temporary"
            if value in self.outputs:
                role = "output"
            elif value in self.inputs:
                role = "input"
            self.of_value[value] = self._add(
                kernel.Buffer(tensor.name, tensor.dtype, tensor.dims, role)
            )
        return self.of_value[value]

    def scratch(self, name: str, dtype: str, dims: tuple[int, ...], private: bool) -> int:
        """A buffer of one iteration of the parallel loop (``private``), or one that stands beside that loop."""
        return self._add(kernel.Buffer(name, dtype, dims, "temporary", private))

    def _add(self, buffer: kernel.Buffer) -> int:
        self.buffers.append(buffer)
        return len(self.buffers) - 1


def fresh(name: str, *taken: Container[str]) -> str:
    """``name``, or with the first number that makes it new."""
    candidate, number = name, 1
    while any(candidate in names for names in taken):
        number += 1
        candidate = f"{name}{number}"
    return candidate


@record
class _Place:
    """Where a value is: a scalar variable, or a buffer and the dimensions of the value that index it."""

    local: int | None
    buffer: int | None
    dims: tuple[int, ...]


class _Frame:
    """An assignment being lowered: the loop variable of each open axis, and the block inside it."""

    def __init__(self, value: int, node: Assignment, nest: Nest, place: _Place) -> None:
        self.value = value
        self.node = node
        self.nest = nest
        self.place = place
        self.variable: dict[int, int] = {}
        self.block: dict[int, Block] = {}
        self.staged: dict[Read, _Place] = {}

    def indexed(self, index: Affine) -> Affine:
        """An index over axes as one over loop variables."""
        return index.renamed(self.variable)


@record
class _Open:
    """A loop being filled: whose axis it walks, and the block it will stand in."""

    frame: _Frame
    axis: int
    parent: Block


class _Lowering:
    """One kernel under construction."""

    def __init__(self, scheduled: Scheduled, storage: _Storage, number: int) -> None:
        self.scheduled = scheduled
        self.shaped = scheduled.shaped
        self.storage = storage
        self.number = number
        self.top: Block = []
        self.blocks: list[Block] = []
        self.names: list[str] = []
        self.locals: list[str] = []
        self.unique = Names(storage.names)
        self.inside: dict[int, frozenset[str]] = {id(self.top): frozenset()}
        self.comments: list[str] = []
        self.root: _Frame | None = None
        self.parallel = False
        self.private: set[int] = set()  # the blocks inside the parallel loop

    def run(self, value: int) -> kernel.Kernel:
        """The kernel that computes all of ``value``."""
        rank = len(self.shaped.tensors[value].dims)
        place = _Place(None, self.storage.whole(value), tuple(range(rank)))
        frame = self._frame(value, place)
        # Iterations of the outermost loop write disjoint elements if it alone walks a dimension.
        self.root = frame
        self.parallel = any(axis in frame.node.disjoint_axes() for axis in frame.nest.order[:1])
        _drive(self._assignment(frame))
        if self.parallel:
            root = self.top[-1]
            assert isinstance(root, kernel.For)
            self.top[-1] = kernel.For(root.variable, root.size, root.body, parallel=True)
        return kernel.Kernel(
            f"k{self.number}",
            tuple(self.top),
            tuple(self.names),
            tuple(self.locals),
            tuple(self.comments),
        )

    def _frame(self, value: int, place: _Place) -> _Frame:
        node, nest = self.shaped.nodes[value], self.scheduled.nests[value]
        assert isinstance(node, Assignment)
        assert nest is not None
        return _Frame(value, node, nest, place)

    def _assignment(self, frame: _Frame) -> Steps:
        """Lower one assignment: its open loops come from the reader, the others are opened here."""
        order, node = frame.nest.order, frame.node
        reduced = set(node.reduced_axes()) if node.base is None else set()
        leading = next((n for n, axis in enumerate(order) if axis in reduced), len(order))
        yield from self._stage(frame, 0)
        opened = []
        for depth in range(leading):
            if order[depth] not in frame.variable:
                opened.append(self._enter(frame, order[depth], self._block(frame, depth)))
            yield from self._stage(frame, depth + 1)
        block = self._block(frame, leading)
        if reduced:
            yield from self._reduction(frame, block, leading)
        elif node.base is None or node.acc is None:
            self._write(frame, block, self._value(frame))
        else:
            self._accumulate(frame, block)
        for loop in reversed(opened):
            self._leave(loop)
        self._comment(frame)

    def _accumulate(self, frame: _Frame, block: Block) -> None:
        """Accumulate into an element of the base: several iterations may meet there."""
        assert frame.place.buffer is not None
        index = tuple(frame.indexed(part) for part in frame.node.target)
        held = Load(frame.place.buffer, index, frame.node.acc_dtype)
        value = self._accumulated(frame, held)
        self._count(frame, block, kernel.Store(frame.place.buffer, index, value))

    def _comment(self, frame: _Frame) -> None:
        self.comments.append(f"{frame.node.text}   {schedule_text(frame.node, frame.nest)}")

    def _block(self, frame: _Frame, depth: int) -> Block:
        """The block inside the first ``depth`` loops."""
        return frame.block[frame.nest.order[depth - 1]] if depth else self.top

    def _enter(self, frame: _Frame, axis: int, parent: Block) -> _Open:
        """Open a loop in a block."""
        names = self.inside[id(parent)]
        name = fresh(frame.node.axes[axis].name, names, self.storage.names)
        variable = len(self.names)
        self.names.append(name)
        body: Block = []
        self.blocks.append(body)  # keeps the block alive, so that its id stays its own
        self.inside[id(body)] = names | {name}
        if id(parent) in self.private or (
            self.parallel and frame is self.root and parent is self.top
        ):
            self.private.add(id(body))
        frame.variable[axis] = variable
        frame.block[axis] = body
        return _Open(frame, axis, parent)

    def _leave(self, loop: _Open) -> None:
        """Close the loop opened last: it becomes a statement of the block it was opened in."""
        variable = loop.frame.variable.pop(loop.axis)
        body = loop.frame.block.pop(loop.axis)
        loop.parent.append(kernel.For(variable, loop.frame.node.sizes[loop.axis], tuple(body)))

    def _local(self, name: str) -> int:
        self.locals.append(name)
        return len(self.locals) - 1

    def _is_private(self, block: Block) -> bool:
        """Whether what a block computes belongs to an iteration of the parallel loop, or there is no such loop."""
        return not self.parallel or id(block) in self.private

    def _stage(self, frame: _Frame, depth: int) -> Steps:
        """Compute the producers whose site is inside ``depth`` loops."""
        for read, site in zip(frame.node.reads, frame.nest.sites, strict=True):
            if site == depth and read not in frame.staged:
                yield self._producer(frame, read, depth)

    def _producer(self, reader: _Frame, read: Read, depth: int) -> Steps:
        """Lower a staged producer; the ``depth`` outer loops of the reader are shared."""
        outer = set(reader.nest.order[:depth])
        tensor = self.shaped.tensors[read.value]
        made = self.shaped.nodes[read.value]
        assert isinstance(made, Assignment)
        shared = {own: ours for own, ours in mapping(made, read).items() if ours in outer}
        kept = tuple(d for d, index in enumerate(made.target) if index.axis() not in shared)
        if kept:
            dims = tuple(tensor.dims[d] for d in kept)
            private = self._is_private(self._block(reader, depth))
            buffer = self.storage.scratch(tensor.name, tensor.dtype, dims, private)
            place = _Place(None, buffer, kept)
        else:
            place = _Place(self._local(tensor.name), None, ())
        frame = self._frame(read.value, place)
        for own, ours in shared.items():
            frame.variable[own] = reader.variable[ours]
            frame.block[own] = reader.block[ours]
        yield self._assignment(frame)
        reader.staged[read] = place

    def _reduction(self, frame: _Frame, block: Block, leading: int) -> Steps:
        """Start, accumulate, store. The accumulators are the output elements inside the outermost reduced loop."""
        outputs = set(frame.node.output_axes())
        inner = tuple(axis for axis in frame.nest.order[leading:] if axis in outputs)
        if inner:
            yield from self._buffered(frame, block, leading, inner)
        else:
            yield from self._single(frame, block, leading)

    def _single(self, frame: _Frame, block: Block, leading: int) -> Steps:
        """A reduction with one accumulator: a scalar variable."""
        dtype = frame.node.acc_dtype
        local = self._local(self.unique.fresh("acc"))
        acc = Local(local, dtype)
        block.append(kernel.Define(local, dtype, start_of(frame.node), mutable=True))

        def step(body: Block) -> None:
            self._count(frame, body, kernel.Change(local, self._accumulated(frame, acc)))

        yield from self._inside(frame, leading, step)
        result = self.shaped.tensors[frame.value].dtype
        self._write(frame, block, _converted(acc, result))

    def _buffered(self, frame: _Frame, block: Block, leading: int, inner: tuple[int, ...]) -> Steps:
        """A reduction with an accumulator per element of the loops over ``inner``: a buffer over them."""
        dtype = frame.node.acc_dtype
        dims = tuple(frame.node.sizes[axis] for axis in inner)
        private = self._is_private(block)
        name = f"{self.shaped.tensors[frame.value].name}_acc"
        name = self.unique.fresh("acc") if private else self.storage.unique.fresh(name)
        buffer = self.storage.scratch(name, dtype, dims, private)

        def start(body: Block, at: tuple[Affine, ...]) -> None:
            body.append(kernel.Store(buffer, at, start_of(frame.node)))

        def step(body: Block) -> None:
            at = tuple(walks(frame.variable[axis]) for axis in inner)
            acc = self._accumulated(frame, Load(buffer, at, dtype))
            self._count(frame, body, kernel.Store(buffer, at, acc))

        def finish(body: Block, at: tuple[Affine, ...]) -> None:
            result = self.shaped.tensors[frame.value].dtype
            self._write(frame, body, _converted(Load(buffer, at, dtype), result))

        self._over(frame, block, inner, start)
        yield from self._inside(frame, leading, step)
        self._over(frame, block, inner, finish)

    def _inside(self, frame: _Frame, leading: int, step: Callable[[Block], None]) -> Steps:
        """The reduced loops and the output loops inside them; ``step`` fills the innermost block."""
        order = frame.nest.order
        opened = []
        for depth in range(leading, len(order)):
            opened.append(self._enter(frame, order[depth], self._block(frame, depth)))
            yield from self._stage(frame, depth + 1)
        step(self._block(frame, len(order)))
        for loop in reversed(opened):
            self._leave(loop)

    def _count(self, frame: _Frame, body: Block, step: kernel.Statement) -> None:
        """Add a step of a reduction, under a condition where an iteration may not count."""
        within = tuple(
            condition
            for read in frame.node.reads
            if read.outside == "skip"
            for condition in self._inside_of(frame, read)
        )
        body.append(kernel.If(within, (step,)) if within else step)

    def _inside_of(self, frame: _Frame, read: Read) -> tuple[Within, ...]:
        """That the affine indices of a read are inside its dimensions."""
        dims = self.shaped.tensors[read.value].dims
        return tuple(
            Within(frame.indexed(index), size)
            for index, size in zip(read.index, dims, strict=True)
            if index.terms and not index.is_whole()
        )

    def _accumulated(self, frame: _Frame, acc: Scalar) -> Scalar:
        """The accumulator after one more iteration."""
        node = frame.node
        assert node.acc is not None
        primitive = OPS[node.acc].binary
        assert primitive is not None
        value = _converted(self._value(frame), node.acc_dtype)
        return Apply(primitive, (acc, value), node.acc_dtype)

    def _over(
        self,
        frame: _Frame,
        block: Block,
        axes: tuple[int, ...],
        make: Callable[[Block, tuple[Affine, ...]], None],
    ) -> None:
        """A loop nest of its own over ``axes`` in ``block``; ``make(body, index)`` fills it."""
        parent, opened = block, []
        for axis in axes:
            opened.append(self._enter(frame, axis, parent))
            parent = frame.block[axis]
        make(parent, tuple(walks(frame.variable[axis]) for axis in axes))
        for loop in reversed(opened):
            self._leave(loop)

    def _write(self, frame: _Frame, block: Block, value: Scalar) -> None:
        """Put the finished value of one element where it is kept."""
        place = frame.place
        if place.local is not None:
            block.append(kernel.Define(place.local, self.shaped.tensors[frame.value].dtype, value))
            return
        assert place.buffer is not None
        index = tuple(frame.indexed(frame.node.target[dim]) for dim in place.dims)
        block.append(kernel.Store(place.buffer, index, value))

    def _value(self, frame: _Frame) -> Scalar:
        """The scalar of an assignment over loads and locals."""
        delivered = [self._element(frame, read) for read in frame.node.reads]
        return _substituted(frame.node.scalar, delivered)

    def _element(self, frame: _Frame, read: Read) -> Scalar:
        dtype = self.shaped.tensors[read.value].dtype
        place = frame.staged.get(read)
        if place is not None and place.local is not None:
            return Local(place.local, dtype)
        if place is None:
            buffer, dims = self.storage.whole(read.value), tuple(range(len(read.index)))
        else:
            assert place.buffer is not None
            buffer, dims = place.buffer, place.dims
        load = Load(buffer, tuple(frame.indexed(read.index[d]) for d in dims), dtype)
        if read.outside != "zero":
            return load
        return Select(self._inside_of(frame, read), load, Constant(0, dtype), dtype)


def _substituted(scalar: Scalar, delivered: list[Scalar]) -> Scalar:
    match scalar:
        case Operand():
            return delivered[scalar.number]
        case Convert():
            return Convert(_substituted(scalar.argument, delivered), scalar.dtype)
        case Apply():
            arguments = tuple(_substituted(a, delivered) for a in scalar.arguments)
            return Apply(scalar.primitive, arguments, scalar.dtype)
        case _:
            return scalar


def _converted(scalar: Scalar, dtype: str) -> Scalar:
    return scalar if scalar.dtype == dtype else Convert(scalar, dtype)


def start_of(node: Assignment) -> Constant:
    """The neutral element that a reduction starts from: integers have ends where floats have infinities."""
    assert node.acc is not None
    value = OPS[node.acc].identity
    assert value is not None
    if node.acc_dtype in INTEGER_ENDS and abs(value) == float("inf"):
        return Constant(INTEGER_ENDS[node.acc_dtype][value > 0], node.acc_dtype)
    return Constant(value, node.acc_dtype)


def _drive(steps: Steps) -> None:
    """Run a computation and all it hands over, without recursion."""
    stack = [steps]
    while stack:
        below = next(stack[-1], None)
        if below is None:
            stack.pop()
        else:
            stack.append(below)
