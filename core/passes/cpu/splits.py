"""Split loops at boundaries: a condition on where they are holds in one interval of their iterations.

Example:
    in:   for x: t[x] = (in0[x-1] if 0 <= x-1 < n_x else 0)
    out:  for x in 0..1: t[x] = 0
          for x in 1..n_x+1: t[x] = in0[x-1]
          for x in n_x+1..: t[x] = 0

Since an index is affine, the iterations at which it is inside a dimension are consecutive. A target computes the first
and the last of them and tests nothing in between; ``For.version`` has the statement for either side. A short loop of
known extent is not split: it counts as a part of the loop around it, which is split where all of its iterations are
inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.core.calculus.affine import Affine, Within, limits, size_value, variables_of
from ilang.core.calculus.extent import ZERO, size
from ilang.core.ir import kernel as ir
from ilang.core.ir.rewriting import guards, is_guarded_load
from ilang.core.ir.scalar import Scalar, Select
from ilang.core.passes.tightened import SHORT
from ilang.core.record import mapped_inside, replace

Guard = tuple[Within, ...]
"""The conditions of one read or step: all of them hold where it is done."""


def cut(program: ir.Program, loop: ir.For) -> ir.If | None:
    """The parts of a loop: the one in the middle, and what an iteration of the others does.

    None where it has no conditions, or other loops inside that are to be cut instead.
    """
    fixed = program.sizes[loop.size].fixed
    if (fixed is not None and fixed <= SHORT) or loop.role == "u" or loop.lanes > 1:
        return None
    only = loop.body[0] if len(loop.body) == 1 else None
    reach: dict[int, int] = {}
    if not _is_innermost(program, loop.body, reach):
        if isinstance(only, ir.If) and not only.otherwise:
            return _parts(program, loop, {only.within: None}, {}, (only.body, ()))
        return None
    conditions = dict.fromkeys(guards(loop.body))
    if not conditions:
        return None
    looked = {v for guard in conditions for each in guard for v in each.index.rests_on()}
    if looked & {loop.variable, *reach}:
        return None
    inner = variables_of(each.index for guard in conditions for each in guard) & reach.keys()
    outside = loop.body if inner or len(conditions) > 1 else _settled(loop.body, False)
    return _parts(program, loop, conditions, reach, (_settled(loop.body, True), outside))


def _is_innermost(program: ir.Program, body: Sequence[ir.Statement], reach: dict[int, int]) -> bool:
    """Whether all loops inside are short; ``reach`` gets the number of the last iteration of each."""
    for s in body:
        if isinstance(s, ir.For):
            fixed = program.sizes[s.size].fixed
            if fixed is None or not 0 < fixed <= SHORT:
                return False
            if s.parallel or s.lanes > 1 or s.chunk is not None:
                return False
            reach[s.variable] = fixed - 1
            if not _is_innermost(program, s.body, reach):
                return False
        elif isinstance(s, ir.If):
            plain = all(isinstance(inner, (ir.Define, ir.Change, ir.Store)) for inner in s.body)
            if s.otherwise or not plain:
                return False
        elif not isinstance(s, (ir.Define, ir.Change, ir.Store)):
            return False
    return True


def _settled(body: Sequence[ir.Statement], holds: bool) -> tuple[ir.Statement, ...]:
    """Statements where all conditions hold, those of their reads among them, or where none of them does."""

    def side(choice: Select) -> Scalar:
        if is_guarded_load(choice):
            return choice.then if holds else choice.otherwise
        return mapped_inside(choice, Select, side)

    out: list[ir.Statement] = []
    for s in body:
        if isinstance(s, ir.For):
            inner = _settled(s.body, holds)
            out += [replace(s, body=inner)] if inner else []
        elif isinstance(s, ir.If):
            out += _settled(s.body, holds) if holds else ()
        else:
            out.append(mapped_inside(s, Select, side))
    return tuple(out)


def _parts(
    program: ir.Program,
    loop: ir.For,
    guards: Mapping[Guard, None],
    reach: Mapping[int, int],
    bodies: tuple[tuple[ir.Statement, ...], tuple[ir.Statement, ...]],
) -> ir.If:
    """The parts of a loop, given what its iterations do inside all guards and outside."""
    within: dict[Within, None] = {}
    extents = {each: last + 1 for each, last in reach.items()}
    for each in dict.fromkeys(each for guard in guards for each in guard):
        least, most = each.index.minimum(extents), each.index.maximum(extents)
        assert least is not None
        assert most is not None
        end = _past(program, each)
        if not each.index.coefficient(loop.variable):
            within |= dict.fromkeys((Within(least, each.size), Within(most, each.size)))
            continue
        if not least.is_natural():
            within[Within(least, None)] = None
        if end is not None:
            within[Within(end - most - 1, None)] = None
    begins, ends, others = limits(within, loop.variable)
    stop = size(loop.size).among("min", ends)
    middle = ir.For(loop.variable, stop, bodies[0], ZERO.among("max", begins))
    return ir.If(others, (middle,), bodies[1])


def _past(program: ir.Program, condition: Within) -> Affine | None:
    """One past the dimension of a condition, if it has one."""
    if condition.size is None:
        return None
    extent = program.sizes[condition.size].fixed
    return size_value(condition.size) if extent is None else Affine((), extent)
