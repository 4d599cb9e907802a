"""Tighten loop bounds from guards: iterations in which a guard holds for no element are not run.

Example, a band:
    in:   for j in 0..n_j: if 0 <= j-i+2 and 0 <= i-j: acc += in0[i,j]
    out:  for j in max(0, i-2)..min(n_j, i+1): acc += in0[i,j]

Example, of causal attention on a GPU, whose blocks have 64 rows, and tiles 32 columns:
    in:   for j in 0..n_j_32                         out:  for j in 0..n_j_32, to ceil((64i+64) / 32)
            spread i1 over the threads                       the same
              for j1: if 0 <= 64i+i1-32j-j1
                acc[i1] += t[i1,j1]

A test that the new bounds make is left out, so that a processor can vectorize the loop. On a processor a loop that only
fills a private buffer ends where all loops that read the buffer end (``filled``).

An iteration may be skipped if nothing outside of it reads what it stores in its private memory, and if everything else
that it does has no effect where the guard is false: a statement that is under the guard, adds 0, multiplies by 1, or
corrects sums for a reduction that does not change. Of similar guards the widest one is taken. Variables of inner loops
are replaced by the end of their range that the guard needs, so that all threads of a block have the same bounds; of the
loops inside each other the outermost one is tightened on a GPU, each on a processor.

A product with 0 is 0 if the other factor is finite. If that factor is an element of an array that the kernel does not
write, the loop names the array (``For.finite``), and runs all iterations if an element of it is not finite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isnan
from operator import itemgetter

from ilang.core.calculus import affine
from ilang.core.dtype import FLOATS
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile
from ilang.core.ir.gpu import CombineThreads, ThreadLoop
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import accesses, loops_of, parts_of, unless_same, with_bodies
from ilang.core.ir.scalar import Apply, Constant, Convert, Load, Local, Scalar, Select, arguments_of
from ilang.core.ops import PRIMITIVES, REDUCING
from ilang.core.record import record, replace

SHORT = 8
"""A loop without barriers that is known to have no more iterations stays whole: a compiler writes each of them out."""
FEW = 4
"""One that is known to have no more is not worth a look at arrays, which is a launch of its own."""
FAR = 1 << 20
"""No bound has numbers that are larger, so that 32 bits are enough for it."""

Conditions = Mapping[affine.Affine, int]
"""Offsets of conditions by what these rest on: each is at least 0 in an iteration of which some element meets it."""
FOLDED = {name: PRIMITIVES[name].python for name in ("add", "mul", "max", "min")}
"""Primitives as functions of two numbers."""


@record
class FixedUnless:
    """A number that something is wherever one of the conditions is not met; None where it always is.

    The number holds if all elements of the ``finite`` arrays are finite.
    """

    value: float
    unmet: Conditions | None
    finite: frozenset[BufferId] = frozenset()


Update = tuple[ir.Store | ir.Change | ir.Define | CombineThreads, Conditions]
"""A statement that gives a buffer, or a scalar variable, a value, and the conditions that it is behind."""


def kernel_to_tightened(program: ir.Program) -> ir.Program:
    """The program with loops that begin and end where conditions hold for any element."""
    return with_bodies(program, lambda kernel: _body(program, kernel))


def _body(program: ir.Program, kernel: ir.Kernel) -> ir.Block:
    is_on_gpu = program.machine.kind == "gpu"

    def block(body: ir.Block) -> ir.Block:
        return unless_same(body, [statement(s) for s in body])

    def statement(s: ir.Statement) -> ir.Statement:
        result = tightened(program, kernel, s) if isinstance(s, ir.For) else s
        is_last = isinstance(s, Tile) or (is_on_gpu and result is not s)
        return result if is_last else ir.map_blocks(result, block)

    body = block(kernel.body)
    return body if is_on_gpu else filled(program, body)


def tightened(program: ir.Program, kernel: ir.Kernel, loop: ir.For) -> ir.For:
    """A loop that begins and ends where it does anything; itself where it does something in all of its iterations."""
    extent, is_on_gpu = program.sizes[loop.size].fixed, program.machine.kind == "gpu"
    if extent is not None and extent <= (1 if ir.has_spread(loop) else SHORT):
        return loop
    if loop.role == "u" or loop.lanes > 1 or loop.within or not (is_on_gpu or loop.chunk is None):
        return loop
    if not _is_guarded(loop.body):
        return loop
    needed = _Iteration(program, kernel, loop).needed()
    if needed is None or (needed.finite and extent is not None and extent <= FEW):
        return loop
    if needed.finite and not is_on_gpu:
        return loop
    unmet = needed.unmet.items() if needed.unmet else ()
    begins, ends, _ = affine.limits(
        (affine.Within(x + offset, None) for x, offset in unmet), loop.variable
    )
    begin, end = loop.begin.among("max", begins), loop.end.among("min", ends)
    if (begin, end) == (loop.begin, loop.end):
        return loop
    result = replace(loop, begin=begin, end=end, finite=tuple(sorted(needed.finite)))
    return result if needed.finite else replace(result, body=_settled(result))


def _settled(loop: ir.For) -> ir.Block:
    """The body of a loop without the tests that its bounds make."""
    known = {affine.canonical(each.index) for each in loop.within if each.size is None}

    def is_known(test: affine.Within) -> bool:
        return test.is_plain() and affine.canonical(test.index) in known

    def settle(body: ir.Block) -> ir.Block:
        out: list[ir.Statement] = []
        for each in body:
            s = ir.map_blocks(each, settle)
            if isinstance(s, ir.If) and not s.otherwise and s.stored is None:
                left = tuple(test for test in s.within if not is_known(test))
                out += (replace(s, within=left),) if left else s.body
            else:
                out.append(s)
        return unless_same(body, out)

    return settle(loop.body)


def _is_guarded(body: ir.Block) -> bool:
    """Whether a block has conditions other than that an index is inside its dimension, and no tile."""
    every = list(ir.statements_within(body))
    if any(isinstance(s, Tile) for s in every):
        return False
    within = [each for s in every if isinstance(s, ir.If) for each in s.within]
    parts = (part for s in every for part in parts_of(s))
    within += [each for part in parts if isinstance(part, Select) for each in part.within]
    return any(each.is_plain() for each in within)


class _Iteration:
    """An iteration of a loop: what it does, and what of it changes anything outside.

    What a statement gives a value is called ``("buffer", number)`` or ``("local", number)``. ``inner`` has the size of
    each loop inside, by its variable; ``steps`` the statements in the loop that give each thing a value; ``stores`` all
    those of the kernel; ``private`` is what only this iteration has.
    """

    def __init__(self, program: ir.Program, kernel: ir.Kernel, loop: ir.For) -> None:
        self.program = program
        self.loop = loop
        inside = (each for s in ir.statements_within(loop.body) for each in loops_of(s))
        self.inner = {each.variable: each.size for each in inside}
        every = list(ir.statements_within(kernel.body))
        self.written = {program.owner(s.buffer) for s in every if isinstance(s, ir.Store)}
        self.stores: dict[int, list[ir.Store]] = {}
        for s in every:
            if isinstance(s, ir.Store):
                self.stores.setdefault(s.buffer, []).append(s)
        self.steps: dict[tuple[str, int], list[Update]] = {}
        self._collect(loop.body, {})
        self.private = self._own_buffers(kernel) | {
            ("local", s.variable) for s in ir.every(loop.body, ir.Define)
        }
        self.known: dict[tuple[str, int], FixedUnless | None] = {}

    def _own_buffers(self, kernel: ir.Kernel) -> set[tuple[str, int]]:
        """The private buffers that no statement outside touches."""
        inside, everywhere = dict[int, int](), dict[int, int]()
        for counts, body in ((inside, self.loop.body), (everywhere, kernel.body)):
            for number, _ in accesses(body):
                counts[number] = counts.get(number, 0) + 1
        return {
            ("buffer", number)
            for number, count in inside.items()
            if self.program.buffers[number].private and everywhere[number] == count
        }

    def _collect(self, body: ir.Block, behind: Conditions) -> None:
        for s in body:
            match s:
                case ir.Store():
                    self.steps.setdefault(("buffer", s.buffer), []).append((s, behind))
                case ir.Define() | ir.Change() | CombineThreads():
                    self.steps.setdefault(("local", s.variable), []).append((s, behind))
                case ir.If():
                    self._collect(s.body, either(behind, self._conditions(s.within)))
                    self._collect(s.otherwise, behind)
                case ir.For() | ThreadLoop():
                    self._collect(s.body, behind)
                case _:
                    raise AssertionError("other statements come later, or are of a CPU")

    def needed(self) -> FixedUnless | None:
        """The conditions without any of which an iteration changes nothing, and the arrays that must be finite."""
        unmet: Conditions | None = None
        finite: frozenset[BufferId] = frozenset()
        for name, steps in self.steps.items():
            for step in steps if name not in self.private else ():
                idle = self._idle(step)
                if not idle.unmet and idle.unmet is not None:
                    return None
                unmet, finite = both(unmet, idle.unmet), finite | idle.finite
        return FixedUnless(0, unmet, finite) if unmet else None

    def _idle(self, step: Update) -> FixedUnless:
        s, behind = step
        if isinstance(s, (ir.Change, ir.Store)) and s.corrects:
            return FixedUnless(0, None)
        if isinstance(s, (ir.Change, ir.Store)) and isinstance(s.value, Apply):
            primitive, arguments = s.value.primitive, s.value.arguments
            fold = REDUCING.get(primitive)
            if fold is not None and len(arguments) == 2 and is_same(arguments[0], s):
                term = self._fixed(arguments[1])
                if term is not None and term.value == fold.identity:
                    if term.unmet is None:
                        return term
                    return replace(term, unmet=either(behind, term.unmet))
        return FixedUnless(0, behind)

    # -- what is a number where conditions are not met -----------------------------------------------------------------

    def _fixed(self, scalar: Scalar) -> FixedUnless | None:
        """The number that a scalar is without some conditions; None where it is none."""
        match scalar:
            case Constant():
                return FixedUnless(float(scalar.value), None)
            case Convert():
                argument = self._fixed(scalar.argument)
                plain = argument is not None and argument.value in (0, 1)
                floats = scalar.dtype in FLOATS and scalar.argument.dtype in FLOATS
                infinite = floats and argument is not None and abs(argument.value) == inf
                return argument if plain or infinite else None
            case Load():
                return self._of(("buffer", scalar.buffer))
            case Local():
                return self._of(("local", scalar.variable))
            case Select():
                return self._chosen(scalar)
            case Apply() if len(scalar.arguments) == 2:
                return self._applied(scalar)
            case _:
                return None

    def _chosen(self, scalar: Select) -> FixedUnless | None:
        """Of a value behind conditions: what it is without them, where that is a number."""
        other = self._fixed(scalar.otherwise)
        if other is None:
            return None
        behind, then = self._conditions(scalar.within), self._fixed(scalar.then)
        if then is not None and then.value == other.value:
            first = None if then.unmet is None else either(behind, then.unmet)
            return FixedUnless(other.value, both(first, other.unmet), other.finite | then.finite)
        return FixedUnless(other.value, both(behind, other.unmet), other.finite)

    def _applied(self, scalar: Apply) -> FixedUnless | None:
        """Of a primitive: of two numbers what it gives, of a product with 0 and what is finite 0."""
        one, other = (self._fixed(argument) for argument in scalar.arguments)
        fold = FOLDED.get(scalar.primitive)
        if one is not None and other is not None and fold is not None:
            value = fold(one.value, other.value)
            if isnan(value):
                return None
            return FixedUnless(value, both(one.unmet, other.unmet), one.finite | other.finite)
        if scalar.primitive != "mul":
            return None
        for zero, factor in ((one, scalar.arguments[1]), (other, scalar.arguments[0])):
            arrays = self._arrays(factor, frozenset())
            if zero is not None and zero.value == 0 and arrays is not None:
                return replace(zero, finite=zero.finite | arrays)
        return None

    def _of(self, name: tuple[str, int]) -> FixedUnless | None:
        """The number that all elements of what an iteration alone has are without some conditions."""
        if name not in self.private:
            return None
        if name not in self.known:
            self.known[name] = None  # what rests on itself by way of another one is none
            self.known[name] = self._joined(name)
        return self.known[name]

    def _joined(self, name: tuple[str, int]) -> FixedUnless | None:
        """The number that all steps give, or leave as it is."""
        joined: FixedUnless | None = None
        idle: list[FixedUnless] = []
        for step in self.steps.get(name, ()):
            s, _ = step
            if isinstance(s, CombineThreads):
                return None
            if _combines(s):
                idle.append(self._idle(step))
                continue
            value = self._fixed(s.value)
            if value is None or (joined is not None and joined.value != value.value):
                return None
            unmet = value.unmet
            joined = replace(
                value,
                unmet=unmet if joined is None else both(unmet, joined.unmet),
                finite=value.finite | (joined.finite if joined is not None else frozenset()),
            )
        for each in idle:
            if joined is None:
                return None
            unmet = both(joined.unmet, each.unmet)
            joined = replace(joined, unmet=unmet, finite=joined.finite | each.finite)
        return joined

    # -- what is finite ------------------------------------------------------------------------------------------------

    def _arrays(self, scalar: Scalar, opened: frozenset[int]) -> frozenset[BufferId] | None:
        """The arrays of which a scalar is an element, or a finite number; None where it is computed."""
        match scalar:
            case Constant():
                return frozenset() if abs(float(scalar.value)) < inf else None
            case Convert():
                wider = (scalar.argument.dtype, scalar.dtype) != ("f64", "f32")
                return self._arrays(scalar.argument, opened) if wider else None
            case Select():
                then, other = (
                    self._arrays(part, opened) for part in (scalar.then, scalar.otherwise)
                )
                return None if then is None or other is None else then | other
            case Local():
                steps = self.steps.get(("local", scalar.variable), [])
                one = steps[0][0] if len(steps) == 1 else None
                return self._arrays(one.value, opened) if isinstance(one, ir.Define) else None
            case Load():
                return self._of_array(scalar, opened)
            case _:
                return None if scalar.dtype in FLOATS else frozenset()

    def _of_array(self, load: Load, opened: frozenset[int]) -> frozenset[BufferId] | None:
        """The arrays that have to be finite for an element to be: one that the kernel leaves alone, or a copy of it."""
        if load.dtype not in FLOATS:
            return frozenset()
        if not self.program.buffers[load.buffer].private:
            owner = self.program.owner(load.buffer)
            return None if owner in self.written else frozenset((owner,))
        if load.buffer in opened:
            return None
        arrays: frozenset[BufferId] = frozenset()
        for store in self.stores.get(load.buffer, ()):
            each = self._arrays(store.value, opened | {load.buffer})
            if each is None:
                return None
            arrays |= each
        return arrays

    # -- conditions ----------------------------------------------------------------------------------------------------

    def _conditions(self, within: Sequence[affine.Within]) -> Conditions:
        """The conditions that some element of an iteration meets where they hold for any."""
        conditions: Conditions = {}
        for each in within:
            if each.is_plain():
                most = self._most(each.index)
                numbers = [c for c, _ in (*most.steps(), *most.sizes)]
                if sum(map(abs, numbers)) + abs(most.offset) <= FAR:
                    conditions = either(conditions, {most - most.offset: most.offset})
        return conditions

    def _most(self, index: affine.Affine) -> affine.Affine:
        """The most that an index is in an iteration of the loop, over the variables around it.

        Each inner loop is at its last iteration, or at its first one where the index falls with it. Terms are sorted,
        so that conditions on the same are equal.
        """
        index = index.merged()
        last = {
            v: affine.size_value(n) - 1 if 0 < index.coefficient(v) else affine.Affine(())
            for v, n in self.inner.items()
        }
        most = affine.with_extents(index.substituted(last), lambda n: self.program.sizes[n].fixed)
        terms = tuple(sorted(most.steps(), key=itemgetter(1)))
        sizes = tuple(sorted(most.sizes, key=itemgetter(1)))
        return affine.Affine(terms, most.offset, window=True, sizes=sizes)


def either(first: Conditions, others: Conditions) -> Conditions:
    """Conditions of which one that is not met is enough: of those alike the narrower one."""
    joined = dict(first)
    for each, offset in others.items():
        joined[each] = min(offset, joined.get(each, offset))
    return joined


def both(first: Conditions | None, others: Conditions | None) -> Conditions | None:
    """Conditions that are not met on either side: of those alike the wider one. None is a side that needs none."""
    if first is None or others is None:
        return others if first is None else first
    return {each: max(offset, others[each]) for each, offset in first.items() if each in others}


def is_same(scalar: Scalar, s: ir.Store | ir.Change) -> bool:
    """Whether a scalar is what a statement changes."""
    if isinstance(s, ir.Store):
        return isinstance(scalar, Load) and (scalar.buffer, scalar.index) == (s.buffer, s.index)
    return isinstance(scalar, Local) and scalar.variable == s.variable


def _combines(s: ir.Store | ir.Change | ir.Define) -> bool:
    """Whether a statement combines something with what it changes."""
    if isinstance(s, ir.Define) or not isinstance(s.value, Apply):
        return False
    return len(s.value.arguments) == 2 and is_same(s.value.arguments[0], s)


End = tuple[affine.Affine, int]
"""The end of a loop, ``ceil(index / step)``: an index, and a step."""


def filled(program: ir.Program, body: ir.Block) -> ir.Block:
    """The body of a kernel, whose loops fill no more of private buffers than is read.

    Example, of a softmax over a triangle:
        in:   for j in 0..n_j: t[j] = exp(in0[i,j])              out:  for j in 0..min(n_j, i+1): t[j] = exp(in0[i,j])
              for j in 0..min(n_j, i+1): out[i,j] = t[j] / acc         the same
    """
    read: dict[int, set[End | None]] = {}
    for buffer, end in _reads(body, {}):
        if program.buffers[buffer].private:
            read.setdefault(buffer, set()).add(end)
    ends = {buffer: end for buffer, (end, *more) in read.items() if end is not None and not more}
    return _filled(body, ends, frozenset()) if ends else body


def _filled(body: ir.Block, ends: Mapping[int, End], opened: frozenset[int]) -> ir.Block:
    """A block whose loops end where those do that read what they fill."""
    return unless_same(body, [_filling(s, ends, opened) for s in body])


def _filling(s: ir.Statement, ends: Mapping[int, End], opened: frozenset[int]) -> ir.Statement:
    """A statement whose loops, and it itself, end so; ``opened`` are the variables of the loops around it."""
    if isinstance(s, ir.If):
        return ir.map_blocks(s, lambda block: _filled(block, ends, opened))
    if not isinstance(s, ir.For):
        return s
    end = ends.get(_fills(s))
    if end is not None and end[0].axes() <= opened:
        return replace(s, end=s.end.among("min", (end,)))
    variable = s.variable
    return ir.map_blocks(s, lambda block: _filled(block, ends, opened | {variable}))


def _fills(loop: ir.For) -> int:
    """The buffer of which a whole loop fills an element after the other, and does nothing else; -1 for any other."""
    is_whole = not loop.within and loop.chunk is None and loop.lanes == 1 and loop.role != "u"
    store = loop.body[-1] if loop.body and is_whole else None
    if not isinstance(store, ir.Store) or store.index != (affine.axis_index(loop.variable),):
        return -1
    others = all(isinstance(s, ir.Define) and not s.mutable for s in loop.body[:-1])
    return store.buffer if others else -1


def _reads(
    body: Sequence[ir.Statement], loops: Mapping[int, ir.For]
) -> Iterator[tuple[int, End | None]]:
    """The buffers that a block reads, each with the end of what is read of it; None where that is not known."""
    for s in body:
        if isinstance(s, ir.For):
            yield from _reads(s.body, {**loops, s.variable: s})
        elif isinstance(s, ir.If):
            yield from _reads((*s.body, *s.otherwise), loops)
        elif isinstance(s, (ir.Define, ir.Change, ir.Store)):
            yield from _parts(s.value, (), loops)
        else:
            yield from ((buffer, None) for buffer, _ in accesses((s,)))


def _parts(
    scalar: Scalar, within: tuple[affine.Within, ...], loops: Mapping[int, ir.For]
) -> Iterator[tuple[int, End | None]]:
    """The loads of a scalar where some conditions hold."""
    match scalar:
        case Load():
            yield scalar.buffer, _end_of_reads(scalar, within, loops)
            looked = (each.source for each in affine.lookups(scalar.index))
            yield from ((source, None) for source in looked)
        case Select():
            yield from _parts(scalar.then, (*within, *scalar.within), loops)
            yield from _parts(scalar.otherwise, within, loops)
        case _:
            for argument in arguments_of(scalar):
                yield from _parts(argument, within, loops)


def _end_of_reads(
    load: Load, within: Sequence[affine.Within], loops: Mapping[int, ir.For]
) -> End | None:
    """The end of what is read one element after the other: with its loop, or where a condition ceases to hold."""
    variable = load.index[0].axis() if len(load.index) == 1 else None
    if variable is None:
        return None
    loop = loops[variable]
    if loop.within and not loop.part():
        return next(loop.end.limits(), None)
    for each in within:
        if each.index.coefficient(variable) < 0 and each.is_plain():
            return each.limit(variable)
    return None
