"""Online reductions of a kernel, which are read while they are partial, and how values made of them stay right.

A reduction staged under a loop over its own reduced axis is read there before it is final (docs/language.md section
6). Such a read is right where every use of the reduction ends in a sum that can be corrected:

    - a maximum m that only shifts an exponential, ``x - m`` with the x that it is the maximum of: each time m grows
      from m1 to m2, the sum so far is scaled by e^(m1 - m2);
    - a sum or maximum s that only divides: the quotient is not formed, and the sum of its numerators is divided once,
      by the final s.

Guards may stand on the way. An element that a maximum has not taken in may be more than it, and its exponential
infinite: it has to be behind guards that the maximum has, too, before it is summed. There it is 0, or left out.

``online_plan`` looks at one kernel and changes nothing. The function follows each instance that staging makes of a
value, from the partial reductions to the sums that end them, and refuses every other way. The states of a value:

    raw       it is a partial reduction
    shifted   it is x - m
    product   e^-m for the maxima ``shifts``, the numerator of ``divisors``, and factors that are free of them; or 0
"""

from __future__ import annotations

from ilang.core.calculus.affine import Affine, Within, axis_index
from ilang.core.dtype import FLOATS
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Scalar, finite
from ilang.core.ir.schedule import BLOCK_ROLES, Axes, Kept, Link, OnlineReduction, Plan, unscheduled
from ilang.core.ir.shaped import Assignment, Read
from ilang.core.ops import OPS, PRIMITIVES
from ilang.core.record import record, replace
from ilang.core.schedule.check.refusals import interleaved, parallel, unfinished
from ilang.core.schedule.fuse import mapping
from ilang.core.schedule.instances import Instances
from ilang.core.schedule.staged import kept_dims
from ilang.core.transform.conditions import Bounds, conditions, moved


def online_plan(instances: Instances) -> Plan:
    """The plan of a kernel in which something is read while it is partial.

    Raises:
        ScheduleError: E0320 to E0322 (fusion), E0323, E0328, E0329 (a partial value that cannot be made right).
    """
    return _OnlineAnalysis(instances).run()


@record
class _Correction:
    """The correction of a value to a partial reduction; its output ``axes`` there, conditions on axes of the value.

    The reduction has taken the element in where it meets what it ``needs``. The guards that stand after the operation
    that meets the reduction are ``live``: the value rests on it where they hold, and is 0 elsewhere. With those of a
    numerator, which stand before, they are ``known``: it is 0 where these do not hold, unless the divisor is.
    """

    axes: Axes
    needs: tuple[Affine, ...] = ()
    live: tuple[Affine, ...] = ()
    known: tuple[Affine, ...] = ()


Corrections = dict[int, _Correction]
"""The corrections of a value, by the instance of the partial reduction."""


@record
class _State:
    """The dependence of a value on partial reductions (see above)."""

    kind: str
    shifts: Corrections
    divisors: Corrections
    exact: bool = True

    def all(self) -> Corrections:
        """Every partial reduction it depends on."""
        return {**self.shifts, **self.divisors}

    def first(self) -> int:
        """One of them, to name it."""
        return next(iter(self.all()))


_Stateful = tuple[_State | None, Scalar]
"""The state of a scalar, and what is computed in its place."""


class _OnlineAnalysis:
    """One kernel under analysis."""

    def __init__(self, instances: Instances) -> None:
        self.instances = instances
        self.states: dict[int, _State] = {}
        self.scalars: dict[int, Scalar] = {}
        self.running: dict[int, OnlineReduction] = {}

    def run(self) -> Plan:
        """Producers have smaller numbers than readers, so instances are done by value."""
        instances = self.instances.by_number
        for number in sorted(range(len(instances)), key=lambda n: instances[n].value):
            self._instance(number)
        return Plan(tuple(instances), self.running, self.scalars)

    def _instance(self, number: int) -> None:
        node, instances = self.instances.node(number), self.instances
        reads = [self._read(number, read) for read in node.reads]
        state, scalar = self._scalar(number, reads, node.scalar)
        partial = instances.partial(number)
        if state is not None:
            self.scalars[number] = scalar
            if node.acc is None or node.base is not None:
                self._check_passed(number, state)
                self.states[number] = state
                return
            state = _summed(node, state)
            self._check_sum(number, state)
        if partial:
            self._check_partial(number)
            outputs = {axis: axis for axis in node.output_axes()}
            self.states[number] = _State("raw", {}, {number: _Correction(outputs)})
        if partial or state is not None:
            self.running[number] = self._running(number, state or _State("raw", {}, {}))

    def _running(self, number: int, state: _State) -> OnlineReduction:
        """The online reduction of a sum with these corrections; the maxima among them note that they scale it.

        Raises:
            ScheduleError: E0323 (nothing says what a quotient is where its divisor ends as 0).
        """
        shifts, divisors = (self._links(number, fixes) for fixes in (state.shifts, state.divisors))
        for link in shifts:
            known, back = self.running[link.instance], Link(number, link.axes, link.live)
            self.running[link.instance] = replace(known, scales=(*known.scales, back))
        bounds, fixes = self._bounds(number), state.divisors.values()
        summed = all(bounds.follows(need, fix.known) for fix in fixes for need in fix.needs)
        if state.shifts and not summed:  # in the end, the numerators may be 0 like their divisor
            why = "sums quotients of elements that are not behind the guards of their divisor"
            raise self._refused(number, state, why, next(iter(state.divisors)))
        exact = state.exact and summed
        return OnlineReduction(
            bool(self.instances.partial(number)),
            self.instances.outermost(number),
            self._kept(number),
            shifts,
            divisors,
            exact=exact,
            divided=() if exact else self._divided_where(number, state),
        )

    def _links(self, number: int, fixes: Corrections) -> tuple[Link, ...]:
        """The corrections of a sum, with the rows that need them.

        Raises:
            ScheduleError: E0323 (that is not said by conditions).
        """
        links = []
        for instance, fix in fixes.items():
            rows = self._bounds(number).rows(fix.live) if fix.live else ()
            if rows is None:
                text = unscheduled(self.instances.node(number))
                why = f"which rows of {text} have an element inside all guards is not known"
                raise unfinished(self.instances, instance, number, why)
            links.append(Link(instance, fix.axes, rows))
        return tuple(links)

    def _divided_where(self, number: int, state: _State) -> tuple[Within, ...]:
        """The guards behind which quotients of a sum stand.

        Raises:
            ScheduleError: E0323 (those of two divisors stand behind different guards).
        """
        one, *others = [fix.live for fix in state.divisors.values()]
        if any(set(other) != set(one) for other in others):
            raise self._refused(number, state, "sums quotients behind different guards")
        out = conditions(self.instances.node(number).guards)
        least = self._bounds(number).least(each for each in one if each not in out)
        return tuple(Within(each, None) for each in least)

    def _bounds(self, number: int) -> Bounds:
        return Bounds(self.instances.shaped.sizes, self.instances.node(number))

    def _kept(self, number: int) -> Kept:
        """The elements of a running reduction: an output part that is open where it starts needs no room."""
        instances, outer = self.instances, self.instances.outermost(number)
        node, nest, instance = (
            instances.node(number),
            instances.nest(number),
            instances.by_number[number],
        )
        loops = [instances.opened(number, loop) for loop in nest.order]
        around = [*instance.chain, *(opened for opened in loops if opened.instance == number)]
        around = around[: around.index(outer)]
        outputs = set(node.output_axes())
        shared = [
            loop
            for loop, opened in zip(nest.order, loops, strict=True)
            if opened in around and loop.axis in outputs
        ]
        shaped = instances.shaped
        tensor = shaped.tensors[instance.value]
        return kept_dims(shaped.sizes, node, nest, tensor, instance.extents, shared)

    def _read(self, number: int, read: Read) -> _State | None:
        source = self.instances.by_number[number].sources.get(read)
        state = None if source is None else self.states.get(source.instance)
        if source is None or state is None:
            return None
        producer = self.instances.node(source.instance)
        names = mapping(producer, read)
        place = {
            axis: index
            for target, index in zip(producer.target, read.index, strict=True)
            if (axis := target.axis()) is not None
        }
        guards = conditions(read.guards)
        plain = True  # as long as each axis that is met is an axis of the reader, and no other's

        def known(held: tuple[Affine, ...]) -> tuple[Affine, ...]:
            """Conditions in the axes of the reader."""
            nonlocal plain
            carried = [moved(each, place) for each in held]
            plain &= None not in carried
            return tuple(each for each in carried if each is not None)

        def carried(fixes: Corrections) -> Corrections:
            """Corrections in the axes of the reader, under the guards of the read too."""
            nonlocal plain
            result = {}
            for instance, fix in fixes.items():
                axes = {output: names[axis] for output, axis in fix.axes.items() if axis in names}
                plain &= len(set(axes.values())) == len(fix.axes)
                live, of = known(fix.live) + guards, known(fix.known) + guards
                result[instance] = _Correction(axes, known(fix.needs), live, of)
            return result

        result = _State(state.kind, carried(state.shifts), carried(state.divisors), state.exact)
        if not plain:
            text = unscheduled(self.instances.node(number))
            why = f"{text} reads it, or a value that depends on it, by an index that is no axis of its own"
            raise unfinished(self.instances, state.first(), number, why)
        if read.guards and state.kind != "product":
            operand = "it" if state.kind == "raw" else "x - m"
            raise self._refused(
                number, state, f"reads {operand} behind a guard, and takes it for 0 there"
            )
        return result

    # -- what a partial value may meet ---------------------------------------------------------------------------------

    def _scalar(self, number: int, reads: list[_State | None], scalar: Scalar) -> _Stateful:
        match scalar:
            case Operand():
                return reads[scalar.number], scalar
            case Convert():
                state, inner = self._scalar(number, reads, scalar.argument)
                if state is None:
                    return None, scalar
                if {scalar.dtype, scalar.argument.dtype} - set(FLOATS):
                    raise self._refused(number, state, f"converts it to {scalar.dtype}")
                return state, Convert(inner, scalar.dtype)
            case Apply():
                arguments = [self._scalar(number, reads, part) for part in scalar.arguments]
                if all(state is None for state, _ in arguments):
                    return None, scalar
                return self._applied(number, scalar, arguments)
            case _:
                return None, scalar

    def _applied(self, number: int, scalar: Apply, arguments: list[_Stateful]) -> _Stateful:
        """A primitive on arguments of which one depends on a partial reduction."""
        states = [state for state, _ in arguments]
        kinds = ["" if state is None else state.kind for state in states]
        parts = tuple(part for _, part in arguments)
        whole = replace(scalar, arguments=parts)
        match scalar.primitive, *kinds:
            case ("copy" | "neg", "product") | ("copy", "shifted"):
                return states[0], whole
            case "mul", "" | "product", "" | "product":
                return self._together(number, states[0], states[1]), whole
            case "div", "product", "":
                return states[0], whole
            case "div", "" | "product", "raw":
                return self._divided(number, scalar, states), parts[0]
            case "recip", "raw":
                assert states[0] is not None
                return replace(states[0], kind="product", exact=False), Constant(1, scalar.dtype)
            case "sub", "", "raw":
                return self._shifted(number, scalar, states[1]), replace(
                    scalar, arguments=(parts[0], finite(parts[1]))
                )
            case "exp", "shifted":
                assert states[0] is not None
                return replace(states[0], kind="product"), whole
            case _:
                pass
        state = next(state for state in states if state is not None)
        raise self._refused(number, state, _says(scalar, kinds))

    def _together(self, number: int, left: _State | None, right: _State | None) -> _State:
        if left is None or right is None:
            state = left or right
            assert state is not None
            return state
        if set(left.all()) & set(right.all()):
            raise self._refused(number, left, "takes it twice, in both factors")
        return _State(
            "product",
            {**left.shifts, **right.shifts},
            {**left.divisors, **right.divisors},
            left.exact and right.exact,
        )

    def _divided(self, number: int, scalar: Apply, states: list[_State | None]) -> _State:
        """A quotient by a partial reduction: its numerator, and the divisor as a correction."""
        assert states[1] is not None
        instance = states[1].first()
        divisor = self.instances.node(instance)
        exact, fixes = False, states[1].divisors
        if divisor.acc == "+":
            read = self._operand(number, scalar.arguments[0])
            node = None if read is None else self.instances.shaped.nodes[read.value]
            is_positive = (
                isinstance(node, Assignment)
                and isinstance(node.scalar, Apply)
                and node.scalar.primitive == "exp"
            )
            needs = self._needs(number, scalar.arguments[0], instance, scalar.arguments[1])
            if is_positive and read is not None and needs is not None:
                exact, known = True, conditions(read.guards)
                axes = states[1].divisors[instance].axes
                fixes = {instance: _Correction(axes, needs, (), known)}
        return self._together(number, states[0], _State("product", {}, fixes, exact))

    def _shifted(self, number: int, scalar: Apply, state: _State | None) -> _State:
        """``x - m``: of the elements that m is the maximum of, or nothing keeps e^(x - m) from overflowing."""
        assert state is not None
        instance = state.first()
        if self.instances.node(instance).acc != ">":
            raise self._refused(number, state, "subtracts it: only a maximum may be subtracted")
        needs = self._needs(number, scalar.arguments[0], instance, scalar.arguments[1])
        read = self._operand(number, scalar.arguments[0])
        if needs is None or read is None:
            why = "subtracts it from something else than the elements that it is the maximum of"
            raise self._refused(number, state, why)
        fix = _Correction(state.divisors[instance].axes, (*needs, *conditions(read.guards)))
        return _State("shifted", {instance: fix}, {})

    def _operand(self, number: int, scalar: Scalar) -> Read | None:
        """The read that a scalar is, but for its type."""
        while isinstance(scalar, Convert):
            scalar = scalar.argument
        return (
            self.instances.node(number).reads[scalar.number]
            if isinstance(scalar, Operand)
            else None
        )

    def _needs(
        self, number: int, part: Scalar, instance: int, whole: Scalar
    ) -> tuple[Affine, ...] | None:
        """The conditions where the reduction ``instance`` has taken in the element that ``part`` reads.

        None where it has not, or where that is not known.
        """
        producer = self.instances.node(instance)
        read, result = self._operand(number, part), self._operand(number, whole)
        taken = self._operand(instance, producer.scalar)
        if read is None or result is None or taken is None or read.value != taken.value:
            return None
        pairs = self.instances.by_number[number].sources[result].pairs
        names = {**mapping(producer, result), **pairs}
        place = {axis: axis_index(carried) for axis, carried in names.items()}
        inside = set(producer.reduced_axes()) - set(pairs)
        for taken_index, read_index in zip(taken.index, read.index, strict=True):
            axis = taken_index.axis()
            if axis is None or (axis not in inside and axis not in names):
                return None
            if place.setdefault(axis, read_index) != read_index:
                return None
        needs = [moved(each, place) for each in conditions(producer.guards)]
        known = tuple(each for each in needs if each is not None)
        return None if taken.guards or len(known) < len(needs) else known

    # -- where it may be -----------------------------------------------------------------------------------------------

    def _check_partial(self, number: int) -> None:
        """Rules of the reduction itself: its operator, and the loops between its start and its place."""
        instances = self.instances
        node, chain = instances.node(number), instances.by_number[number].chain
        if node.acc not in ("+", ">"):
            says = OPS[node.acc or "+"].reduction_says
            raise unfinished(
                instances,
                number,
                None,
                f"no correction is known for values that depend on a {says}",
            )
        shared = set(instances.by_number[number].home.values())
        for opened in chain[chain.index(instances.outermost(number)) :]:
            if opened not in shared:
                raise interleaved(instances, number, opened)
        over = instances.partial(number)
        for other in range(len(instances.by_number)):
            nest = instances.nest(other)
            for position, loop in enumerate(nest.order):
                if (
                    nest.role(position) in ("p", *BLOCK_ROLES)
                    and instances.opened(other, loop) in over
                ):
                    raise parallel(instances, number, other, loop)

    def _check_passed(self, number: int, state: _State) -> None:
        """A value that is no sum must be used up in the iteration in which it is computed."""
        instance, text = self.instances.by_number[number], unscheduled(self.instances.node(number))
        for partial in state.all():
            if not set(self.instances.partial(partial)) <= set(instance.home.values()):
                is_stored = number == 0
                how = (
                    "stores a value that depends on it"
                    if is_stored
                    else "keeps values of several iterations"
                )
                raise unfinished(self.instances, partial, number, f"{text} {how}", is_stored)

    def _check_sum(self, number: int, state: _State) -> None:
        """Conditions (i) to (iii) of the rule on the sum that ends a path."""
        instances, node = self.instances, self.instances.node(number)
        if state.kind != "product":
            raise self._refused(number, state, "reduces it")
        if node.acc != "+":
            says = OPS[node.acc or "+"].reduction_says
            raise self._refused(number, state, f"takes the {says} of values that depend on it")
        bounds = self._bounds(number)
        for partial, fix in state.shifts.items():
            if not all(bounds.follows(need, fix.known) for need in fix.needs):
                why = "sums elements that are not behind the guards of those that it is the maximum of"
                raise self._refused(number, state, why, partial)
        for partial, fix in state.all().items():
            producer, axes = instances.node(partial), fix.axes
            lost = [output for output, axis in axes.items() if axis not in node.output_axes()]
            if lost:
                name = producer.axes[lost[0]].name
                raise self._refused(
                    number, state, f"sums over {name}, an axis that it keeps", partial
                )
            if not set(instances.partial(partial)) <= set(instances.reduced(number)):
                raise self._refused(number, state, "does not sum over that loop", partial)
            if instances.outermost(partial) != instances.outermost(number):
                why = "sums over a loop outside, in which it starts again and again"
                raise self._refused(number, state, why, partial)
            if not _is_aligned(instances, partial, number, axes):
                raise self._refused(number, state, "splits or places its rows otherwise", partial)

    def _refused(
        self, number: int, state: _State, why: str, partial: int | None = None
    ) -> Exception:
        text = unscheduled(self.instances.node(number))
        chosen = state.first() if partial is None else partial
        return unfinished(self.instances, chosen, number, f"{text} {why}")


def _says(scalar: Apply, kinds: list[str]) -> str:
    says = PRIMITIVES[scalar.primitive].says
    kind = next(kind for kind in kinds if kind)
    operand = {"raw": "it", "shifted": "x - m", "product": "a value that depends on it"}[kind]
    if kind == "shifted":
        return f"applies {says} to x - m, where only exp is corrected"
    return f"applies {says} to {operand}, and no correction is known for that"


def _summed(node: Assignment, state: _State) -> _State:
    """The corrections of a sum of values that have corrections: its own guards leave terms out."""
    guards = conditions(node.guards)

    def carried(fixes: Corrections) -> Corrections:
        return {
            instance: replace(fix, live=(*fix.live, *guards), known=(*fix.known, *guards))
            for instance, fix in fixes.items()
        }

    return replace(state, shifts=carried(state.shifts), divisors=carried(state.divisors))


def _is_aligned(instances: Instances, partial: int, number: int, axes: Axes) -> bool:
    """Whether the rows of a partial reduction are rows of a sum, part by part."""
    chain, home = instances.by_number[partial].chain, instances.by_number[partial].home
    for output, axis in axes.items():
        if instances.nest(partial).factors[output] != instances.nest(number).factors[axis]:
            return False
        for loop, other in zip(
            instances.nest(partial).parts(output), instances.nest(number).parts(axis), strict=True
        ):
            opened = instances.opened(number, other)
            if opened in chain and home.get(loop) != opened:
                return False
    return True
