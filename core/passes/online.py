"""Lower reductions that are read while they are partial, and the sums that are corrected for it.

Example, the heart of attention for one row, as ``schedule/online.py`` plans it:
    m = -inf; s = 0; acc[d] = 0
    for n
      old = m
      m = max(m, x[n])
      factor = 1 if old == m else exp(old - (0 if m == -inf else m))
      s *= factor
      for d: acc[d] *= factor
      e = exp(x[n] - (0 if m == -inf else m))
      s += e
      for d: acc[d] += e * v[n,d]
    for d: out[d] = (NaN if m == -inf else acc[d]) / s, if there was any n, else acc[d]

Accumulators start before the outermost loop over a reduced axis and keep an element per output part inside that loop.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from ilang.core.calculus.affine import Affine, Within
from ilang.core.ir import kernel, schedule
from ilang.core.ir.scalar import (
    INFINITY,
    Apply,
    Constant,
    Load,
    Local,
    Scalar,
    Select,
    converted,
    finite,
)
from ilang.core.passes.reductions import Reductions
from ilang.core.passes.runs import Steps
from ilang.core.passes.scope import Block, Frame, Place, Scope
from ilang.core.passes.storage import Storage, start_of
from ilang.core.record import replace

WIDE = "f64"
"""Corrections are computed in the type in which sums accumulate."""


class OnlineReductions(Reductions):
    """The part of lowering a kernel that knows the plan."""

    def __init__(self, scheduled: schedule.Scheduled, storage: Storage) -> None:
        super().__init__(scheduled, storage)
        self.kept: dict[int, Place] = {}
        """The elements of running reductions."""
        self.odd: dict[int, Place] = {}
        """The same sums with every numerator divided by 0: where a divisor may end as 0, infinities and NaN decide."""
        self.frames: dict[int, Frame] = {}

    # -- instances -----------------------------------------------------------------------------------------------------

    def _reduction(self, frame: Frame, scope: Scope, loops: list[schedule.Loop]) -> Steps:
        if frame.instance in self.plan.online:
            yield from self._corrected(frame, scope, loops)
        else:
            yield from super()._reduction(frame, scope, loops)

    def _row(self, instance: int, home: dict[schedule.Loop, Scope]) -> Frame:
        """A frame for elements of a running reduction, whose output parts are walked by these loops."""
        value = self.plan.instances[instance].value
        node, nest = self.scheduled.assigned(value)
        frame = Frame(value, node, nest, Place(None, None, ()), instance)
        frame.home.update(home)
        return frame

    def _open(self, instance: int, scope: Scope) -> dict[schedule.Loop, Scope]:
        """The loops over output axes of an instance that are open around a scope, lowered now or not."""
        node, nest = self.scheduled.assigned(self.plan.instances[instance].value)
        opened_loops = {}
        for loop in nest.order:
            opened = self.plan.instances[instance].home.get(loop, schedule.Opened(instance, loop))
            owner = self.frames.get(opened.instance)
            around = None if owner is None else owner.home.get(opened.loop)
            if around is not None and loop.axis in node.output_axes() and scope.is_inside(around):
                opened_loops[loop] = around
        return opened_loops

    # -- storage -------------------------------------------------------------------------------------------------------

    def _running(self, instance: int) -> Place:
        """The places of a running reduction; it is started when it is first asked for."""
        if instance not in self.kept:
            outer = self.plan.online[instance].outer
            inside = self.frames[outer.instance].home[outer.loop]
            assert inside.parent is not None
            self._start(instance, inside.parent)
        return self.kept[instance]

    def _start(self, instance: int, scope: Scope) -> None:
        """Make room in a scope, and start there; an output part that is open around it needs no room."""
        row = self._row(instance, self._open(instance, scope))
        node, loops, running = row.node, _outputs(row), self.plan.online[instance]
        entries = tuple(running.kept)
        dims = [self.storage.number(extent) for extent in running.kept.values()]
        name, exact = self.shaped.tensors[row.value].name, running.exact
        places = []
        for role in ("run",) if exact else ("run", "odd"):
            if entries:
                buffer = self._scratch(f"{name}_{role}", row.value, node.acc_dtype(), dims, scope)
                self.storage.accumulates(buffer, node)
                places.append(Place(None, buffer, entries))
            else:
                local = self._accumulator(role, row, node.acc_dtype(), scope.block)
                places.append(Place(local.variable, None, ()))
        self.kept[instance] = places[0]
        if not exact:
            self.odd[instance] = places[1]
        if not entries:
            return

        def start(body: Block) -> None:
            body.extend(self._changed(row, place, start_of(node)) for place in places)

        self._over(row, scope, loops, start)

    def _held(self, row: Frame, place: Place, dtype: str = "") -> Scalar:
        dtype = dtype or row.node.acc_dtype()
        if place.local is not None:
            return Local(place.local, dtype)
        assert place.buffer is not None
        return Load(place.buffer, self._at(row, place, row.node.target), dtype)

    def _changed(self, row: Frame, place: Place, value: Scalar) -> kernel.Change | kernel.Store:
        """Another value for the element that a frame is at."""
        if place.local is not None:
            return kernel.Change(place.local, value)
        assert place.buffer is not None
        return kernel.Store(place.buffer, self._at(row, place, row.node.target), value)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _partial(self, frame: Frame, site: Scope, loops: list[schedule.Loop]) -> Steps:
        """One visit of a reduction that is read while it is partial: more of it, and what it scales."""
        running, kept = self.plan.online[frame.instance], self._running(frame.instance)
        yield from self._stage_outside(frame)
        rows = _outputs(frame)
        before = self._snapshot(frame, site, rows, kept) if running.scales else None
        yield from self._inside(frame, site, loops, self._step(frame, kept))
        if before is not None:
            self._scale(frame, site, rows, kept, before)

    def _step(self, frame: Frame, kept: Place) -> Callable[[Block], None]:
        """A function that fills the innermost block of a running reduction."""

        def step(body: Block) -> None:
            more = self._accumulated(frame, self._held(frame, kept))
            self._add_step(frame, body, self._changed(frame, kept, more))
            if frame.instance in self.odd:
                dtype, odd = frame.node.acc_dtype(), self.odd[frame.instance]
                value = converted(self._value(frame), dtype)
                huge: Scalar = Apply("mul", (value, Constant(INFINITY, dtype)), dtype)
                within = self._guarded(frame, self.plan.online[frame.instance].divided)
                huge = Select(within, huge, value, dtype) if within else huge
                more = Apply("add", (self._held(frame, odd), huge), dtype)
                self._add_step(frame, body, self._changed(frame, odd, more))

        return step

    def _snapshot(self, frame: Frame, site: Scope, rows: list[schedule.Loop], kept: Place) -> Place:
        name = f"{self.shaped.tensors[frame.value].name}_old"
        if not rows:
            place = Place(self._local(name, frame.value), None, ())
            assert place.local is not None
            held = self._held(frame, kept)
            site.block.append(kernel.Define(place.local, frame.node.acc_dtype(), held))
            return place
        dims = self._dims(frame, rows)
        indices = tuple(((1, loop),) for loop in rows)
        place = Place(
            None, self._scratch(name, frame.value, frame.node.acc_dtype(), dims, site), indices
        )

        def copy(body: Block) -> None:
            body.append(self._changed(frame, place, self._held(frame, kept)))

        self._over(frame, site, rows, copy)
        return place

    def _scale(
        self, frame: Frame, site: Scope, rows: list[schedule.Loop], kept: Place, before: Place
    ) -> None:
        """Scale the sums that rest on the rows that have changed.

        Where threads share the loops of a sum it has loops of its own, and what it is scaled by is kept for them.
        """
        links = self.plan.online[frame.instance].scales
        shared = [link for link in links if rows and self._is_shared(link)]
        factors = before
        if shared:
            name = f"{self.shaped.tensors[frame.value].name}_factor"
            buffer = self._scratch(name, frame.value, WIDE, self._dims(frame, rows), site)
            factors = replace(before, buffer=buffer)
        with self._opened(frame, rows, site) as scope:
            old = self._held(frame, before)
            new = self._held(frame, kept)
            factor: Scalar = _factor(old, new)
            if len(shared) < len(links):
                local = self._local(f"{self.shaped.tensors[frame.value].name}_factor", frame.value)
                scope.block.append(kernel.Define(local, WIDE, factor))
                factor = Local(local, WIDE)
            if shared:
                scope.block.append(self._changed(frame, factors, factor))
            for link in links:
                if link not in shared:
                    self._scale_sum(frame, (site, scope), link, factor)
        for link in shared:
            self._scale_sum(frame, (site, site), link, factors)

    def _dims(self, frame: Frame, rows: list[schedule.Loop]) -> list[int]:
        sizes, factors = frame.node.sizes, frame.nest.factors
        return [self.storage.part(sizes[x.axis], factors[x.axis], x.part) for x in rows]

    def _is_shared(self, link: schedule.Link) -> bool:
        _, nest = self.scheduled.assigned(self.plan.instances[link.instance].value)
        return any(nest.role(n) in schedule.THREAD_ROLES for n in range(len(nest.order)))

    def _scale_sum(
        self, frame: Frame, scopes: tuple[Scope, Scope], link: schedule.Link, factor: Scalar | Place
    ) -> None:
        """Scale the elements of a sum that rest on the row that a frame is at, by 1 where they do not.

        Args:
            frame: of what has changed.
            scopes: that of the visit, and the one in which the loops over the elements are opened.
            link: to the sum.
            factor: of the row that the frame is at, or the place of those of all rows.
        """
        home = self._open(link.instance, scopes[0])
        home.update(
            (schedule.Loop(axis, loop.part), around)
            for output, axis in link.axes.items()
            for loop, around in frame.home.items()
            if loop.axis == output
        )
        row, place = self._row(link.instance, home), self._running(link.instance)

        def scaled(body: Block) -> None:
            more = factor
            if isinstance(more, Place):
                more = self._held(self._linked(row, frame.instance, link), more, WIDE)
            times = self._live(row, link, more, Constant(1, WIDE))
            value = Apply("mul", (self._held(row, place, WIDE), times), WIDE)
            body.append(replace(self._changed(row, place, value), corrects=True))

        self._over(row, scopes[1], _outputs(row), scaled)

    def _live(self, row: Frame, link: schedule.Link, value: Scalar, otherwise: Scalar) -> Scalar:
        """A value where the element of a sum that a frame is at rests on the other side of a link."""
        within = self._guarded(row, link.live)
        return Select(within, value, otherwise, WIDE) if within else value

    # -- the end -------------------------------------------------------------------------------------------------------

    def _corrected(self, frame: Frame, scope: Scope, loops: list[schedule.Loop]) -> Steps:
        """A sum that is corrected and is read after its loops: start, accumulate, finish, store."""
        instance = frame.instance
        running = self.plan.online
        self.kept = {n: k for n, k in self.kept.items() if running[n].outer.instance != instance}
        self._start(instance, scope)
        kept, result = self.kept[instance], self.shaped.tensors[frame.value].dtype
        rows = _outputs(frame)

        def merge(body: Block, value: Scalar) -> None:
            held = self._held(frame, kept)
            more = Apply(
                "add", (held, converted(value, frame.node.acc_dtype())), frame.node.acc_dtype()
            )
            body.append(self._changed(frame, kept, more))

        held = self._accumulation(frame)
        if isinstance(held, schedule.RegisterTile | schedule.PartialSums | schedule.ThreadTile):
            yield from self._by_registers(frame, scope, held, merge)
        else:
            yield from self._inside(frame, scope, loops, self._step(frame, kept))

        def finish(body: Block) -> None:
            body.append(self._written(frame, converted(self._final(frame, instance), result)))

        self._over(frame, scope, rows, finish)

    def _final(self, row: Frame, instance: int, around: Container[Scalar] = ()) -> Scalar:
        """The final value of the element that a frame is at; ``around`` has tests that whoever reads it makes.

        The element is divided by what divides it, and NaN where a maximum has seen nothing but -inf: x - m is NaN
        there. An empty sum is what it started with, and a row all of whose terms are 0 by guards rests on nothing.
        """
        running, kept = self.plan.online[instance], self.kept[instance]
        held = self._held(row, kept)
        value: Scalar = held
        shifts = [(link, self._has_seen_nothing(row, link)) for link in running.shifts]
        tests = [test for link, (test, _) in shifts if not self._guarded(row, link.live)]
        divisors = []
        for link in running.divisors:
            element = self._linked(row, link.instance, link)
            last = self._final(element, link.instance, tests)
            dtype = self.shaped.tensors[element.value].dtype
            divisors.append((link, converted(converted(last, dtype), WIDE)))
        zero = Constant(0, WIDE)
        odd = self._held(row, self.odd[instance]) if instance in self.odd else zero
        for link, divisor in divisors:
            is_zero = Apply("eq", (divisor, zero), "bool")
            value = self._live(row, link, Apply("where", (is_zero, odd, value), WIDE), value)
        for link, divisor in divisors:
            value = self._live(row, link, Apply("div", (value, divisor), WIDE), value)
        for link, (nothing, nan) in shifts:
            if nothing not in around:
                value = self._live(row, link, Apply("where", (nothing, nan, value), WIDE), value)
        sizes = [row.node.sizes[axis] for axis in row.node.reduced_axes()]
        within = tuple(Within(Affine(()), n) for n in sizes if not self.storage.sizes[n].fixed)
        return Select(within, value, held, WIDE) if within and value is not held else value

    def _has_seen_nothing(self, row: Frame, link: schedule.Link) -> tuple[Scalar, Scalar]:
        """Whether a maximum that an element rests on is that of nothing but -inf; and the element then, NaN."""
        row = self._linked(row, link.instance, link)
        maximum, dtype = self._held(row, self.kept[link.instance]), row.node.acc_dtype()
        nothing = Apply("eq", (maximum, Constant(-INFINITY, dtype)), "bool")
        return nothing, converted(Apply("sub", (maximum, maximum), dtype), WIDE)

    def _linked(self, row: Frame, instance: int, link: schedule.Link) -> Frame:
        """The element of a reduction, an instance, that the element of a sum rests on by a link."""
        home = {
            schedule.Loop(output, loop.part): around
            for output, axis in link.axes.items()
            for loop, around in row.home.items()
            if loop.axis == axis
        }
        return self._row(instance, home)


def _outputs(frame: Frame) -> list[schedule.Loop]:
    kept = set(frame.node.output_axes())
    return [loop for loop in frame.nest.order if loop.axis in kept and loop not in frame.home]


def _factor(old: Scalar, new: Scalar) -> Scalar:
    """The factor of e^(x - m) when m grows; 1 where it has not, also for infinities."""
    shift = Apply("sub", (converted(old, WIDE), converted(finite(new), WIDE)), WIDE)
    same, one = Apply("eq", (old, new), "bool"), Constant(1, WIDE)
    return Apply("where", (same, one, Apply("exp", (shift,), WIDE)), WIDE)
