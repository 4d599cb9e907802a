"""Carry accumulators from one iteration of a loop to the next, where each reduction has the terms of the one before.

Example, cumulative sums, and sums of what follows:
    in:   for i in 0..n_i                             out:  acc = 0
            acc = 0                                         for i in 0..n_i
            for j in 0..min(n_i, i+1): acc += in0[j]          acc += in0[i]
            out[i] = acc                                      out[i] = acc

    in:   for i in 0..n_i                             out:  acc = 0
            acc = 0                                         for i in 0..n_i
            for j in i..n_i: acc += in0[j]                    acc += in0[n_i-1-i]
            out[i] = acc                                      out[n_i-1-i] = acc

The terms may depend on the outer loop by the bounds of the inner one alone. Where these leave terms out as the outer
loop goes on, it goes backwards; its iterations must share nothing then. Each iteration adds one more term; terms that
the first one has beside that are added before the loop. What is added stays the same, in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.calculus.affine import Affine, Within, axis_index, before, size_value, with_extents
from ilang.core.calculus.extent import ZERO, Extent
from ilang.core.calculus.extent import size as size_of
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.rewriting import parts_of, reads_of, substituted, with_bodies
from ilang.core.ir.scalar import Apply, Constant, Local
from ilang.core.ops import REDUCING
from ilang.core.passes.independence import Independence
from ilang.core.passes.tightened import is_same
from ilang.core.record import mapped, replace

Place = tuple[str, int]
"""A scalar variable, ``("local", number)``, or a buffer, ``("buffer", number)``."""
PLAIN = frozenset({ir.For, ir.If, ir.Define, ir.Change, ir.Store})
"""The statements that a loop may have that keeps an accumulator."""
Carried = tuple[Sequence[ir.Statement], ir.For]
"""The start of accumulators, and the loop that keeps them."""
Growth = tuple[Affine, tuple[Within, ...], ir.For | None]
"""The one more term that a reduction has in each iteration of a loop, and the conditions under which it has.

Then the loop over the terms that it has before the first iteration; None where there are none."""
Limit = tuple[Affine, int]
"""A bound of a loop, ``ceil(index / step)``."""


def kernel_to_carried(program: ir.Program) -> ir.Program:
    """The program whose reductions over triangles keep their accumulators, each term being added once."""
    return with_bodies(program, lambda kernel: _Carrying(program, kernel).block(kernel.body))


class _Carrying:
    """The loops of one kernel."""

    def __init__(self, program: ir.Program, kernel: ir.Kernel) -> None:
        self.program = program
        self.kernel = kernel
        self.inside = list(ir.statements_within(kernel.body))

    def block(self, body: ir.Block) -> ir.Block:
        """A block whose loops keep accumulators, the inner ones first."""
        out: list[ir.Statement] = []
        for s in body:
            inner = ir.map_blocks(s, self.block)
            out += self._loop(inner) if isinstance(inner, ir.For) else (inner,)
        same = len(out) == len(body) and all(a is b for a, b in zip(body, out, strict=True))
        return body if same else tuple(out)

    def _loop(self, loop: ir.For) -> Sequence[ir.Statement]:
        """A loop, and before it the start of what it keeps."""
        is_whole = loop.begin == ZERO and loop.end == size_of(loop.size)
        if not is_whole or loop.manner is not None or loop.role not in ("", "q") or loop.finite:
            return (loop,)
        starts: list[ir.Statement] = []
        while carried := next(self._all_carried(loop), None):
            starts += carried[0]
            loop = carried[1]
        return (*starts, loop)

    def _all_carried(self, loop: ir.For) -> Iterator[Carried]:
        """Every way to keep what one of the reductions in a loop has accumulated."""
        reductions = (s for s in loop.body if isinstance(s, ir.For))
        carried = (self._carried(loop, reduction) for reduction in reductions)
        return (each for each in carried if each is not None)

    def _carried(self, loop: ir.For, reduction: ir.For) -> Carried | None:
        """The start of a reduction, and the loop that keeps it; None where it starts anew in each iteration."""
        moving = _moving(loop, reduction)
        accumulators = None if moving is None else self._accumulators(loop, reduction)
        if moving is None or accumulators is None:
            return None
        starts = [s for s in loop.body if _started(s) in accumulators]
        if _mentions(starts, loop.variable):
            return None
        turned = loop.body
        if not moving:
            if not Independence(self.program, self.inside).holds(loop):
                return None
            backwards = self._known(size_value(loop.size) - 1) - axis_index(loop.variable)
            turned = substituted(turned, {loop.variable: backwards})
        at = next(n for n, s in enumerate(loop.body) if s is reduction)
        growing = turned[at]
        assert isinstance(growing, ir.For)
        place, within, first = self._growth(loop, growing)
        term = substituted(growing.body, {growing.variable: place})
        body: list[ir.Statement] = []
        for n, s in enumerate(turned):
            if n == at:
                body += (ir.If(within, term),) if within else term
            elif not any(loop.body[n] is each for each in starts):
                body.append(s)
        firsts = () if first is None else (first,)
        return (*starts, *firsts), replace(loop, body=tuple(body))

    # -- accumulators --------------------------------------------------------------------------------------------------

    def _accumulators(self, loop: ir.For, reduction: ir.For) -> set[Place] | None:
        """The accumulators of a reduction, if each is started in the same iteration of the loop and read after that.

        None where a term depends on anything that the loop does, or the reduction does anything else.
        """
        at = next(n for n, s in enumerate(loop.body) if s is reduction)
        before_it = [*ir.statements_within(loop.body[:at])]
        after_it = [*ir.statements_within(loop.body[at + 1 :])]
        inner = [*ir.statements_within(reduction.body)]
        if not all(type(s) in PLAIN for s in (*before_it, *inner, *after_it)):
            return None
        outside = self._outside(loop)
        elsewhere = {name for s in (*before_it, *after_it) for name in _touched(s)} | outside
        folded = [s for s in inner if self._escapes(s, elsewhere)]
        if not folded or not all(map(_folds, folded)):
            return None
        accumulators = {name for s in folded if (name := _target(s)) is not None}
        starts = [name for s in loop.body[:at] if (name := _started(s)) in accumulators]
        given = [name for s in (*before_it, *after_it) if (name := _target(s)) in accumulators]
        if accumulators & outside or {*starts} != accumulators or len(given) != len(accumulators):
            return None
        if any(_read(s) & accumulators for s in before_it):
            return None
        written = {self._owner(name) for s in (*before_it, *after_it) if (name := _target(s))}
        read = {self._owner(name) for s in inner for name in _read(s)}
        return None if (read - accumulators) & written else accumulators

    def _outside(self, loop: ir.For) -> set[Place]:
        """The variables and buffers that statements of the kernel outside of a loop touch."""
        within = {id(s) for s in ir.statements_within(loop.body)}
        return {name for s in self.inside if id(s) not in within for name in _touched(s)}

    def _escapes(self, s: ir.Statement, elsewhere: set[Place]) -> bool:
        """Whether what a statement gives a value is more than an iteration of a reduction has for itself."""
        name = _target(s)
        if name is None or isinstance(s, ir.Define):
            return False
        is_private = name[0] == "local" or self.program.buffers[name[1]].private
        return not is_private or name in elsewhere

    def _owner(self, name: Place) -> Place:
        """A variable, or the buffer whose memory one is."""
        kind, number = name
        return name if kind == "local" else (kind, self.program.owner(BufferId(number)))

    # -- what an iteration adds ----------------------------------------------------------------------------------------

    def _growth(self, loop: ir.For, reduction: ir.For) -> Growth:
        """The term that each iteration of a loop adds to a reduction that grows."""
        variable, at = loop.variable, reduction.variable
        begins, (begin,) = _apart(reduction.begin.limits(), variable)
        ends, (end,) = _apart(reduction.end.limits(), variable)
        first: ir.For | None
        if end is not None:
            term, none_yet = end - 1, end.substituted({variable: Affine((), -1)})
            bounds = replace(reduction, end=_bounded(reduction.end, "min", [*ends, (none_yet, 1)]))
            first = None if self._is_natural(-none_yet, loop) else bounds
        else:
            assert begin is not None
            term, none_yet = begin, begin.substituted({variable: Affine((), -1)})
            bounds = replace(
                reduction, begin=_bounded(reduction.begin, "max", [*begins, (none_yet, 1)])
            )
            beyond = none_yet - size_value(reduction.size)
            first = None if self._is_natural(beyond, loop) else bounds
        within = [Within(step * axis_index(at) - index, None) for index, step in begins]
        within += [before(at, *limit) for limit in ends]
        inside = Within(axis_index(at), reduction.size)
        placed = [self._left(each.at(at, term), loop) for each in (inside, *within)]
        return term, tuple(each for each in placed if each is not None), first

    def _left(self, condition: Within, loop: ir.For) -> Within | None:
        """The part of a condition that does not hold in every iteration of a loop."""
        size, index = condition.size, condition.index
        if size is not None and self._is_natural(size_value(size) - 1 - index, loop):
            size = None
        if size is None and self._is_natural(index, loop):
            return None
        return Within(index, size)

    def _is_natural(self, index: Affine, loop: ir.For) -> bool:
        """Whether an index is at least 0 in every iteration of a loop."""
        step = index.coefficient(loop.variable)
        last = Affine(()) if 0 <= step else size_value(loop.size) - 1
        return self._known(index.substituted({loop.variable: last})).merged().is_natural()

    def _known(self, index: Affine) -> Affine:
        return with_extents(index, lambda size: self.program.sizes[size].fixed)


def _moving(loop: ir.For, reduction: ir.For) -> bool | None:
    """Whether a reduction grows with a loop, or shrinks; None where it has no bound that says so, or other terms."""
    if reduction.manner is not None or reduction.role not in ("", "q", "u") or reduction.finite:
        return None
    if reduction.chunk is not None or reduction.first:
        return None
    variable = loop.variable
    _, begin = _apart(reduction.begin.limits(), variable)
    _, end = _apart(reduction.end.limits(), variable)
    bounds = [each for each in (*begin, *end) if each is not None]
    if len(begin) != 1 or len(end) != 1 or len(bounds) != 1 or _mentions(reduction.body, variable):
        return None
    (bound,) = bounds
    if bound.variables() != {variable} or bound.looked or abs(bound.coefficient(variable)) != 1:
        return None
    return (end[0] is not None) == (0 < bound.coefficient(variable))


def _apart(
    limits: Iterator[Limit], variable: VariableId
) -> tuple[list[Limit], tuple[Affine | None, ...]]:
    """The limits that do not move with a variable, and those that do: one of step 1, None for none, or several."""
    still: list[Limit] = []
    moving: list[Affine | None] = []
    for index, step in limits:
        if variable not in index.axes():
            still.append((index, step))
        else:
            moving += [index] if step == 1 else [index, index]
    return still, tuple(moving) or (None,)


def _bounded(bound: Extent, operation: str, limits: Sequence[Limit]) -> Extent:
    """A bound with other indices among which it is the least, or the greatest."""
    return bound.unlimited().among(operation, limits)


def _mentions(body: Sequence[ir.Statement], variable: VariableId) -> bool:
    """Whether anything in a block depends on a loop variable."""
    seen: list[Affine] = []

    def note(index: Affine) -> Affine:
        seen.append(index)
        return index

    mapped(tuple(body), Affine, note)
    return any(variable in index.axes() for index in seen)


def _target(s: ir.Statement) -> Place | None:
    """The variable or the buffer that a statement itself gives a value."""
    if isinstance(s, (ir.Define, ir.Change)):
        return "local", s.variable
    return ("buffer", s.buffer) if isinstance(s, ir.Store) else None


def _folds(s: ir.Statement) -> bool:
    """Whether a statement combines a term with what it changes, whatever the order of terms is."""
    if not isinstance(s, (ir.Change, ir.Store)) or s.corrects:
        return False
    value, name = s.value, _target(s)
    if not isinstance(value, Apply) or value.primitive not in REDUCING:
        return False
    held, *terms = value.arguments
    is_alone = len(terms) == 1 and name not in _read(replace(s, value=terms[0]))
    return is_alone and is_same(held, s)


def _read(s: ir.Statement) -> set[Place]:
    """The variables and buffers that a statement itself reads."""
    variables = {part.variable for part in parts_of(s) if isinstance(part, Local)}
    return {("local", v) for v in variables} | {("buffer", buffer) for buffer, _ in reads_of(s)}


def _touched(s: ir.Statement) -> set[Place]:
    """The variables and buffers that a statement itself mentions."""
    target = _target(s)
    return _read(s) if target is None else {target, *_read(s)}


def _started(s: ir.Statement) -> Place | None:
    """The accumulator that a statement gives a constant: a variable, or all elements of a buffer; None of any other."""
    while isinstance(s, ir.For) and len(s.body) == 1:
        (s,) = s.body
    if isinstance(s, ir.Define) and not s.mutable:
        return None
    is_start = isinstance(s, (ir.Define, ir.Store)) and isinstance(s.value, Constant)
    return _target(s) if is_start else None
