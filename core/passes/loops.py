"""Loops and elements: the lowest layer of lowering a kernel (``nest_to_kernel.py`` has the whole of it).

A loop is opened in a scope and becomes a statement of that scope's block when it is closed; the loop opened last of a
split axis stops at the rest of the dimension, given the parts in scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ilang.core.calculus.affine import Affine, Looked, Within, axis_index, inside, size_value
from ilang.core.calculus.extent import bounds
from ilang.core.ir import kernel, scalar
from ilang.core.ir.ids import BufferId, LocalId, ValueId, VariableId
from ilang.core.ir.schedule import UNIT_ROLES, Loop, Plan, Scheduled
from ilang.core.ir.shaped import Assignment, Read
from ilang.core.ops import COSTS, OPS
from ilang.core.passes.full_tiles import split
from ilang.core.passes.scope import Block, Frame, Place, Rest, Scope, fresh
from ilang.core.passes.storage import Storage, start_of, wraps
from ilang.core.record import replace


class Loops:
    """One kernel under construction: its scopes, its names, its buffers, and how elements are read and written."""

    def __init__(self, scheduled: Scheduled, storage: Storage) -> None:
        self.scheduled = scheduled
        self.shaped = scheduled.shaped
        self.storage = storage
        self.names: list[str] = []
        self.parts: list[kernel.AxisPart | None] = []
        self.loop_names: set[str] = set()
        self.locals: list[kernel.Variable] = []
        self.taken: set[str] = set()
        self.serial: dict[str, int] = {}
        self.top = Scope(None, None, frozenset())
        self.plan = Plan((), {}, {})

    def _enter(self, frame: Frame, loop: Loop, parent: Scope) -> Scope:
        axis = frame.node.axes[loop.axis].name
        name = axis + (str(loop.part) if loop.part else "")
        scope, frame.variables[loop] = self._counting(parent, name)
        self.parts[-1] = axis, frame.nest.weight(loop), None
        frame.home[loop] = scope
        return scope

    def _counting(self, parent: Scope, name: str = "b") -> tuple[Scope, VariableId]:
        """A scope for a loop over a new variable, which becomes a statement when it is closed."""
        name = fresh(name, parent.names, self.storage.names, self.taken)
        variable = VariableId(len(self.names))
        self.names.append(name)
        self.parts.append(None)
        self.loop_names.add(name)
        return Scope(parent, variable, parent.names | {name}), variable

    def _leave(self, frame: Frame, loop: Loop) -> None:
        """Close the loop opened last: it becomes a statement of the block it was opened in."""
        scope = frame.home.pop(loop)
        assert scope.parent is not None
        assert scope.variable is not None
        size, rests = self._trip(frame, loop)
        limits = (*rests, frame.ends[loop]) if loop in frame.ends else rests
        role = frame.nest.role(frame.nest.order.index(loop))
        if role in ("u", "v") and self.storage.sizes[size].fixed is None:
            role = ""
        if role in UNIT_ROLES and self.storage.machine.device is None:  # factors are rounded anyway
            role = ""
        if role == "p" and loop in frame.chunks:  # the loop over the parts has it
            role = ""
        inside = _inside_of_dimension(frame, loop, scope.variable)
        body = tuple(scope.block)
        begin, end = bounds(size, frame.chunks.get(loop))
        block = (kernel.If(inside, body),) if inside else body
        end = end.among("min", limits)
        scope.parent.block.append(kernel.For(scope.variable, end, block, begin, role))

    def _trip(self, frame: Frame, loop: Loop) -> tuple[int, tuple[Rest, ...]]:
        """The number of iterations of a loop, given the parts of its axis that stay open around it."""
        axis, nest = loop.axis, frame.nest
        whole = frame.node.sizes[axis]
        if not nest.factors[axis]:
            origin = frame.origin.get(axis)
            if origin is None or not origin.index.is_natural():
                return whole, ()
            assert origin.size is not None
            return whole, ((size_value(origin.size) - origin.index, 1),)
        size = self.storage.part(whole, nest.factors[axis], loop.part)
        return size, rests(self.storage, frame, loop, {x: frame.variable(x) for x in frame.home})

    def _indexed(self, frame: Frame, index: Affine, kept: bool = False) -> Affine:
        """An index over axes as one over loop variables; ``kept``: of what is kept, from the origins of axes on."""
        looked = tuple(
            (
                c,
                Looked(
                    self.storage.whole(ValueId(each.source)),
                    tuple(self._indexed(frame, part) for part in each.index),
                    each.size,
                ),
            )
            for c, each in index.looked
        )
        position = replace(index, looked=looked)
        position = position.without(position.variables())
        for c, axis in index.steps():
            parts = frame.nest.parts(axis)
            walked = tuple((frame.nest.weight(part), frame.variable(part)) for part in parts)
            position = position + c * Affine(walked)
            if axis in frame.origin and not kept:
                begin = frame.origin[axis].index
                position = position + c * begin
                position = replace(position, window=True)  # an interval is not the whole dimension
        return position

    def _named(self, name: str) -> str:
        """``name``, or with the first number that makes it new among the variables and buffers of the kernel."""
        whole = self.storage.whole_names
        chosen = fresh(name, self.taken, whole, self.loop_names, serial=self.serial)
        self.taken.add(chosen)
        return chosen

    def _local(self, name: str, value: int, wrapping: bool = False) -> LocalId:
        tensor = self.shaped.tensors[value].origin()
        self.locals.append(kernel.Variable(self._named(name), wrapping=wrapping, tensor=tensor))
        return LocalId(len(self.locals) - 1)

    def _accumulator(self, role: str, frame: Frame, dtype: str, block: Block) -> scalar.Local:
        """A variable of a type that a reduction accumulates in, which starts anew in a block."""
        name = f"{self.shaped.tensors[frame.value].name}_{role}"
        local = self._local(name, frame.value, wraps(frame.node, dtype))
        start = replace(start_of(frame.node), dtype=dtype)
        block.append(kernel.Define(local, dtype, start, mutable=True))
        return scalar.Local(local, dtype)

    def _scratch(
        self, name: str, value: int, dtype: str, dims: list[int], scope: Scope
    ) -> BufferId:
        private = scope is not self.top
        chosen = self._named(name) if private else self.storage.unique.fresh(name)
        while not private and (chosen in self.taken or chosen in self.loop_names):
            chosen = self.storage.unique.fresh(name)
        self.taken.add(chosen)
        tensor = self.shaped.tensors[value].origin()
        return self.storage.scratch(chosen, dtype, tuple(dims), private, tensor)

    def _over(
        self, frame: Frame, scope: Scope, loops: list[Loop], make: Callable[[Block], None]
    ) -> None:
        """A loop nest of its own over ``loops`` in a scope; ``make`` fills it."""
        with self._opened(frame, loops, scope) as inside:
            make(inside.block)

    @contextmanager
    def _opened(self, frame: Frame, loops: Sequence[Loop], scope: Scope) -> Iterator[Scope]:
        for loop in loops:
            scope = self._enter(frame, loop, scope)
        yield scope
        for loop in reversed(loops):
            self._leave(frame, loop)

    def _over_lanes(
        self, frame: Frame, scope: Scope, loops: tuple[Loop, ...], make: Callable[[Block], None]
    ) -> None:
        """A loop nest, split where its innermost loop runs to its end."""
        inside = Scope(scope, None, scope.names)
        self._over(frame, inside, list(loops), make)
        variables = {frame.variables[loops[-1]]}
        scope.block += split(self.storage.sizes, tuple(inside.block), variables)

    def _add_step(
        self, frame: Frame, body: Block, step: kernel.Store | kernel.Change | kernel.Define
    ) -> None:
        within = self._guarded(frame, frame.node.guards)
        steps: Block = []
        name = self.shaped.tensors[frame.value].name

        def define(part: scalar.Apply) -> scalar.Scalar:
            """A variable for what is computed several times."""
            local, dtype = self._local(f"{name}_{part.primitive}", frame.value), part.dtype or ""
            steps.append(kernel.Define(local, dtype, part))
            return scalar.Local(local, dtype)

        value = step.value
        primitives = [
            part.primitive
            for part in scalar.scalars_within(value)
            if isinstance(part, scalar.Apply)
        ]
        if not COSTS.keys().isdisjoint(primitives) or 1 < primitives.count("where"):
            from ilang.core.passes.subexpressions import with_variables

            value = with_variables(value, define)
        steps.append(step if value is step.value else replace(step, value=value))
        body += [kernel.If(within, tuple(steps))] if within else steps

    def _guarded(self, frame: Frame, guards: tuple[Within, ...]) -> tuple[Within, ...]:
        """Guards over axes as conditions on loop variables."""
        return tuple(replace(guard, index=self._indexed(frame, guard.index)) for guard in guards)

    def _accumulated(
        self, frame: Frame, acc: scalar.Scalar, dtype: str | None = None
    ) -> scalar.Scalar:
        """The accumulator, of its own type unless another is given, after one more iteration."""
        value = scalar.converted(self._value(frame), dtype or frame.node.acc_dtype())
        return combined(frame.node, acc, value)

    def _written(self, frame: Frame, value: scalar.Scalar) -> kernel.Define | kernel.Store:
        place = frame.place
        if place.local is not None:
            return kernel.Define(place.local, self.shaped.tensors[frame.value].dtype, value)
        assert place.buffer is not None
        return kernel.Store(place.buffer, self._at(frame, place, frame.node.target), value)

    def _at(self, frame: Frame, place: Place, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
        """The index of an element of a place, for a value indexed by ``index`` over the axes of ``frame``."""
        indices = list(place.part)
        for entry in place.dims:
            if isinstance(entry, int):
                indices.append(self._indexed(frame, index[entry], place is frame.place))
            elif isinstance(entry, Loop):
                axis = index[entry.axis].axis()
                assert axis is not None
                indices.append(axis_index(frame.variable(Loop(axis, entry.part))))
            else:
                indices.append(frame.index_of(entry))
        return tuple(indices)

    def _value(self, frame: Frame) -> scalar.Scalar:
        delivered = [self._element(frame, read) for read in frame.node.reads]
        return scalar.with_operands(
            self.plan.scalars.get(frame.instance, frame.node.scalar),
            delivered,
            lambda index: self._indexed(frame, index),
        )

    def _element(self, frame: Frame, read: Read) -> scalar.Scalar:
        dtype = self.shaped.tensors[read.value].dtype
        place = frame.staged.get(read)
        if place is None:
            place = Place(None, self.storage.whole(read.value), tuple(range(len(read.index))))
        element: scalar.Scalar
        if place.local is not None:
            element = scalar.Local(place.local, dtype)
        else:
            assert place.buffer is not None
            element = scalar.Load(place.buffer, self._at(frame, place, read.index), dtype)
        guards = read.guards
        if guards and place.copy:  # a copy has 0 outside the dimensions
            held = inside(read.index, self.shaped.tensors[read.value].dims)
            guards = tuple(guard for guard in guards if guard not in held)
        if not guards:
            return element
        return scalar.Select(
            self._guarded(frame, guards), element, scalar.Constant(0, dtype), dtype
        )


def rests(
    storage: Storage, frame: Frame, loop: Loop, around: Mapping[Loop, VariableId]
) -> tuple[Rest, ...]:
    """The end of a loop over a part of a split axis: of the dimension, where all other parts are ``around`` it.

    Another part, opened inside, stops at the end of the dimension otherwise.
    """
    nest, whole = frame.nest, frame.node.sizes[loop.axis]
    factors = nest.factors[loop.axis]
    others = [part for part in nest.parts(loop.axis) if part != loop and part in around]
    if not factors or len(others) < len(factors) or storage.divides(whole, factors):
        return ()
    terms = tuple((nest.weight(part), around[part]) for part in others)
    return ((size_value(whole) - Affine(terms), nest.weight(loop)),)


def _inside_of_dimension(frame: Frame, loop: Loop, variable: int) -> tuple[Within, ...]:
    """Conditions that an axis with an origin is in its dimension, for the loop opened last, if no end says so."""
    origin, nest = frame.origin.get(loop.axis), frame.nest
    others = [part for part in nest.parts(loop.axis) if part != loop]
    if origin is None or any(part not in frame.home for part in others):
        return ()
    if not others and origin.index.is_natural():
        return ()
    inside = (
        *((nest.weight(part), frame.variable(part)) for part in others),
        (nest.weight(loop), variable),
    )
    return (Within(origin.index + Affine(inside), origin.size),)


def combined(node: Assignment, one: scalar.Scalar, other: scalar.Scalar) -> scalar.Scalar:
    """Two partial results of a reduction as one."""
    assert node.acc is not None
    primitive = OPS[node.acc].binary
    assert primitive is not None
    return scalar.Apply(primitive, (one, other), other.dtype)
