"""Kernels to the host program around them: size checks, workspace, launches.

Example:
    in:   kernels of `(+ij~i & I) >> i+ij~ij`, k0 computes t1[i] and k1 out[i,j] from t1 and in1
    out:  checks    take i, take j
          layout    t1 f32[i]
          sizes     take i, take j
          launches  k0(i, j; in0, t1) writes t1;  k1(i, j; in1, out, t1) writes out

Example:
    in:   kernels of `bt@vd~btd`, k0 computes out[b,t,d] from in1[in0[b,t],d]
    out:  look      every element of in0 is an index of v
          launches  k0(b, t, v, d; in0, in1, out) writes out
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from ilang.core.calculus.extent import size as extent_of
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import threads_of
from ilang.core.ir.host import Condition, Grid, Host, Launch, Look, Step
from ilang.core.ir.ids import BufferId
from ilang.core.ir.shaped import Derivation
from ilang.core.lower.uses import Use, touched, use_of
from ilang.core.record import replace


def kernel_to_host(program: ir.Program) -> Host:
    """The host program of some kernels."""
    uses = [use_of(program, kernel.body) for kernel in program.kernels]
    operations = tuple(_operations(program, uses))
    launches = [each for each in operations if isinstance(each, Launch)]
    looks = [each for each in operations if isinstance(each, Look)]
    shared = {program.owner(n) for launch in launches for n in launch.buffers}
    temporaries = tuple(sorted(n for n in shared if program.buffers[n].role == "temporary"))
    scratch = tuple(use.private for use in uses if use.private)
    needed = {n for use in uses for n in use.sizes}
    needed |= {n for kernel in program.kernels for span in kernel.spans or () for n in span}
    for array, size in (each for look in looks for each in look.arrays):
        needed |= {*program.buffers[array].dims, *(() if size is None else (size,))}
    measured = (*temporaries, *(n for private in scratch for n in private))
    return Host(
        program,
        tuple(_checks(program, {n for m in measured for n in program.buffers[m].dims})),
        temporaries,
        scratch,
        0 if program.machine.device is None else len(looks),
        tuple(_sizes(program, needed)),
        operations,
    )


def _operations(program: ir.Program, uses: Sequence[Use]) -> Iterator[Look | Launch]:
    """The launches, each after the looks at arrays that it waits for.

    Floats are looked at where loops ask whether they are finite, again after a launch that writes them.
    """
    readers = Counter(n for use in uses for n in use.shared if n not in use.written)
    lookups = _lookups(program, uses)
    marks = count(len(lookups))
    outside: int | None = None
    infinite: dict[tuple[BufferId, ...], int] = {}
    for number, call in enumerate(program.launched()):
        if number in lookups:
            before, outside = outside, 0 if outside is None else outside + 1
            yield Look(tuple(lookups[number]), outside, before)
        arrays = _arrays_of_loops(program, call)
        if arrays and arrays not in infinite:
            infinite[arrays] = next(marks)
            yield Look(tuple((n, None) for n in arrays), infinite[arrays], outside)
        launch = _launch(program, call, uses, readers)
        mark = (outside or 0) if lookups else None
        yield replace(launch, outside=mark, infinite=infinite.get(arrays))
        written = {program.owner(n) for n in launch.writes}
        infinite = {each: n for each, n in infinite.items() if written.isdisjoint(each)}


def _arrays_of_loops(program: ir.Program, call: ir.Call) -> tuple[BufferId, ...]:
    loops = (s for s in ir.statements_within(program.kernels[call.kernel].body))
    asked = (n for s in loops if isinstance(s, ir.For) for n in s.finite)
    return tuple(sorted({program.owner(call.array(n)) for n in asked}))


def _lookups(program: ir.Program, uses: Sequence[Use]) -> dict[int, list[tuple[BufferId, int]]]:
    """The arrays of indices, each before the launch that reads it first; an array of the caller before all."""
    known: set[tuple[BufferId, int]] = set()
    lookups: dict[int, list[tuple[BufferId, int]]] = {}
    for launch, call in enumerate(program.launched()):
        for looked, size in uses[call.kernel].looked:
            buffer = call.array(looked)
            if (buffer, size) not in known:
                known.add((buffer, size))
                is_given = program.memory(buffer).role == "input"
                lookups.setdefault(0 if is_given else launch, []).append((buffer, size))
    return lookups


def _checks(program: ir.Program, measured: set[int]) -> Iterator[Step]:
    """Every size that a caller gives, what must hold of them, and the sizes of what is measured."""
    checked = [rule for rule in program.derived if not rule.is_collapsed()]
    for number, size in enumerate(program.sizes):
        if size.is_argument():
            yield number
    known = {n for n in range(len(program.sizes)) if _is_given(program, n)}
    for rule in checked:
        least, spread = _least(program, rule)
        yield replace(rule, known=rule.size in known, least=least, spread=spread)
        known.add(rule.size)
    yield from program.reaches
    needed = _needed_for_counts(program, measured)
    rules = (rule for rule in program.derived if rule.is_collapsed())
    yield from ((rule.size, rule.value()) for rule in rules if rule.size in needed)
    yield from _counts(program, measured)


def _sizes(program: ir.Program, needed: set[int]) -> Iterator[Step]:
    """The sizes that kernels take, once all of them are known to fit."""
    needed = _needed_for_counts(program, needed)
    for rule in reversed(program.derived):
        if rule.size in needed and not _is_given(program, rule.size):
            needed |= set(rule.sources())
    for number, size in enumerate(program.sizes):
        if number in needed and size.is_argument():
            yield number
    followed: set[int] = set()
    for rule in program.derived:
        if rule.size in needed - followed and not _is_given(program, rule.size):
            yield rule.size, rule.value()
            followed.add(rule.size)
    yield from _counts(program, needed)


def _counts(program: ir.Program, needed: set[int]) -> Iterator[ir.Count]:
    every = _needed_for_counts(program, needed)
    yield from (count for count in program.counts if count[0] in every)


def _needed_for_counts(program: ir.Program, needed: set[int]) -> set[int]:
    """Sizes, and those from which what loops count follows."""
    every = set(needed)
    for size, value in reversed(program.counts):
        if size in every:
            every.update(value.sizes())
    return every


def _is_given(program: ir.Program, number: int) -> bool:
    """Whether an extent is a number or an argument, and not only derived."""
    size = program.sizes[number]
    return size.fixed is not None or size.is_argument()


def _least(program: ir.Program, rule: Derivation) -> tuple[int, tuple[int, ...]]:
    """The least extent; of the positions of windows 1, where a window spreads over several elements."""
    if rule.padding is None:
        return rule.least, ()
    members = [size for _, size in rule.whole.steps()[1:]]
    if any(1 < (program.sizes[size].fixed or 0) for size in members):
        return 1, ()
    return rule.least, tuple(size for size in members if program.sizes[size].fixed is None)


def _launch(
    program: ir.Program, call: ir.Call, uses: Sequence[Use], readers: Mapping[BufferId, int]
) -> Launch:
    """A call of a kernel; of two that combine the same parts, that by blocks is for many of them."""
    use = uses[call.kernel]
    kernel = program.kernels[call.kernel]
    grid = _grid(program, kernel, bool(use.private))
    conditions: list[Condition] = [(extent_of(n), 0, None) for n in kernel.needs]
    read = [n for n in use.shared if n not in use.written]
    combined = next((n for n in read if program.buffers[n].whole() is not None), None)
    if combined is not None:
        few, many = 1, None
        device = program.machine.device
        if 1 < readers[combined] and grid is not None and device is not None:
            most = device.parts.of_thread
            few, many = (most, None) if grid.over == "blocks" else (1, most)
        conditions.append((extent_of(program.buffers[combined].dims[0]), few, many))
    return Launch(
        kernel=call.kernel,
        sizes=tuple(n for n in use.sizes if program.sizes[n].fixed is None),
        buffers=tuple(map(call.array, use.shared)),
        writes=frozenset(map(call.array, use.written & set(use.shared))),
        scratch=bool(use.private),
        divided=_is_divided(program, kernel) if grid is None else bool(use.private),
        grid=grid,
        conditions=tuple(conditions),
    )


def _grid(program: ir.Program, kernel: ir.Kernel, scratch: bool) -> Grid | None:
    """The blocks that a kernel is launched with; None on a machine that has no blocks."""
    device = program.machine.device
    if device is None:
        return None
    spread = threads_of(kernel)
    along: dict[str, int] = {
        loop.role: loop.size for loop in spread.loops if loop.role in ("y", "z")
    }
    sizes = tuple(loop.size for loop in spread.loops if loop.role not in along)
    vector = 1 if spread.vectors is None else spread.vectors.count
    workers = {"grid": spread.threads * vector, "warps": spread.parts()}
    is_limited = scratch and bool(sizes) and spread.over == "grid" and vector == 1
    return Grid(
        threads=spread.threads,
        sizes=sizes,
        over=spread.over,
        most_blocks=device.most_blocks,
        each=None if is_limited else workers.get(spread.over, 1),
        across=(along.get("y"), along.get("z")),
        most_across=device.most_across,
        shape=spread.shape,
        vector=vector,
    )


def _is_divided(program: ir.Program, kernel: ir.Kernel) -> bool:
    """Whether threads have scratch storage of their own: a private buffer is touched inside one parallel loop alone."""
    loops: dict[int, set[int | None]] = {}
    outermost = 0
    todo: list[tuple[Sequence[ir.Statement], int | None]] = [(kernel.body, None)]
    while todo:
        body, around = todo.pop()
        for s in body:
            for buffer in touched(s):
                described = program.buffers[buffer]
                if described.private and described.role != "tile":
                    loops.setdefault(buffer, set()).add(around)
            inside = around
            if isinstance(s, ir.For) and s.parallel and around is None:
                outermost += 1
                inside = outermost
            todo += [(block, inside) for block in ir.blocks_of(s)]
    return any(len(around) == 1 and None not in around for around in loops.values())
