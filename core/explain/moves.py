"""Loops of a GPU that set, copy or add whole tiles, as one statement over ranges of elements.

Example, where i and m are open:
    for i1 in 0..16 and k in 0..16, threads share these
      copy[k,i1] = a[16i+i1,16m+k]                         copy[0..16,0..16] = a[16i+0..16,16m+0..16]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Within
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.ids import VariableId
from ilang.core.ir.kernel import For, If, Program, Statement, Store
from ilang.core.ir.scalar import Apply, Constant, Convert, Load, Scalar, Select
from ilang.core.record import replace

Extents = Mapping[VariableId, int]
"""The number of iterations of each loop of a statement."""


def loops_of(s: Statement) -> tuple[list[For], Store, bool] | None:
    """The loops that a statement consists of, what they store, and whether only inside of arrays; None of others."""
    loops, is_partial = list[For](), False
    while not isinstance(s, Store):
        match s:
            case ThreadLoop(over="threads", loops=shared):
                loops += shared
            case For():
                loops.append(s)
            case If(within=within, otherwise=()) if loops and _are_edges(within):
                is_partial = True
            case _:
                return None
        if len(s.body) != 1:
            return None
        s = s.body[0]
    return (loops, s, is_partial) if loops else None


Spelling = tuple[Callable[[Affine], str], Callable[[Scalar], str], Callable[[int], str]]
"""The texts of an index over the loops around, of a number, and of an array."""


def text(program: Program, s: Statement, spelled: Spelling, is_exact: bool) -> str | None:
    """The statement that loops are, with conversions and conditions where it is exact; None of other loops."""
    parts = loops_of(s)
    if parts is None:
        return None
    loops, store, is_partial = parts
    extents = {loop.variable: program.sizes[loop.size].fixed or 0 for loop in loops}
    within = [each for loop in loops for each in loop.within]
    if any(loop.chunk for loop in loops) or 0 in extents.values() or not _are_edges(within):
        return None
    moved = _moved(store)
    if moved is None or not _reaches_all(program, store, extents):
        return None
    sign, value, kinds, is_guarded = moved
    target = _ranged(program, Load(store.buffer, store.index, ""), extents, spelled)
    if isinstance(value, Constant):
        source: str | None = spelled[1](value)
    else:
        source = _ranged(program, value, extents, spelled)
    if target is None or source is None:
        return None
    for kind in kinds if is_exact else ():
        source = f"{kind}({source})"
    condition = ", where it is inside" if is_exact and (is_partial or is_guarded or within) else ""
    return f"{target} {sign} {source}{condition}"


def _moved(store: Store) -> tuple[str, Load | Constant, list[str], bool] | None:
    """The element or number that is stored: the sign before it, the types that it is converted to, if 0 is outside."""
    value, sign, kinds, is_guarded = store.value, "=", list[str](), False
    target = Load(store.buffer, store.index, value.dtype or "")
    if isinstance(value, Apply) and value.primitive == "add" and value.arguments[0] == target:
        value, sign = value.arguments[1], "+="
    while isinstance(value, Convert | Select):
        if isinstance(value, Convert):
            kinds.insert(0, value.dtype or "")
            value = value.argument
        elif isinstance(value.otherwise, Constant) and _are_edges(value.within):
            value, is_guarded = value.then, True
        else:
            return None
    return (sign, value, kinds, is_guarded) if isinstance(value, Load | Constant) else None


def _are_edges(within: Sequence[Within]) -> bool:
    """Whether conditions say no more than that an element is inside of its array."""
    return all(each.size is not None for each in within)


def _reaches_all(program: Program, store: Store, extents: Extents) -> bool:
    """Whether each iteration stores an element of its own, or each thread one of its own in registers."""
    reached = {variable for part in store.index for variable in part.axes()}
    return program.buffers[store.buffer].space == "local" or extents.keys() <= reached


def _ranged(program: Program, load: Load, extents: Extents, spelled: Spelling) -> str | None:
    """The elements of an array that loops reach, ``a[16i+0..16]``; the array alone where these are all of it."""
    affine, _, array = spelled
    buffer = program.buffers[load.buffer]
    words, is_whole = list[str](), buffer.space == "local"
    for part, size in zip(load.index, buffer.dims, strict=True):
        if not part.rests_on().isdisjoint(extents):
            return None
        inner = [(c, v) for c, v in part.steps() if v in extents]
        count = _count(inner, extents)
        if count is None:
            return None
        around = part.without([variable for _, variable in inner])
        if not inner:
            words.append(affine(part))
            is_whole = False
            continue
        first = around.offset
        base = replace(around, offset=0)
        is_all = base == Affine(()) and first == 0 and count == program.sizes[size].fixed
        is_whole = is_whole and is_all
        end, fixed = first + count, program.sizes[size].fixed
        if base.constant() == 0 and fixed is not None and buffer.space != "local":
            end = min(end, fixed)  # no element past the edge of an array is read
        start = "" if base.constant() == 0 else f"{affine(base)}+"
        words.append(f"{start}{first}..{end}")
    name = array(load.buffer)
    return name if is_whole else f"{name}[{','.join(words)}]"


def _count(inner: Sequence[tuple[int, int]], extents: Extents) -> int | None:
    """The number of indices that follow each other as loops run; None where there are gaps."""
    count = 1
    for step, variable in sorted(inner):
        if step != count:
            return None
        count *= extents[VariableId(variable)]
    return count


def store_of(s: Statement) -> Statement:
    """The store that loops consist of; the statement itself where they do anything else."""
    parts = loops_of(s)
    return s if parts is None else parts[1]


def vectors_of(s: Statement) -> Iterator[int]:
    """The buffers of which vectors move in the loops of a statement."""
    parts = loops_of(s)
    for loop in parts[0] if parts else ():
        yield from getattr(loop.manner, "buffers", ())
