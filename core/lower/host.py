"""Kernels to the host program around them: size checks, workspace, launches.

Example:
    in:   kernels of `(+ij~i & I) >> i+ij~ij`, k0 computes t1[i] and k1 out[i,j] from t1 and in1
    out:  checks    take i, take j
          layout    t1 f32[i]
          sizes     take i, take j
          launches  k0(i, j; in0, t1) writes t1;  k1(i, j; in1, out, t1) writes out

Example:
    in:   kernels of `bt@vd~btd`, k0 computes out[b,t,d] from in1[in0[b,t],d]
    out:  ranges    before k0: every element of in0 is an index of v
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.host import Argument, Finite, Grid, Host, Launch, Layout, Ranges, Role, Step
from ilang.core.ir.ids import BufferId
from ilang.core.ir.shaped import Derivation
from ilang.core.lower.uses import Use, touched, use_of
from ilang.core.record import replace

LONG = 64
"""Launches of a long host program."""


def kernel_to_host(program: ir.Program) -> Host:
    """The host program of some kernels."""
    uses = [use_of(program, kernel.body) for kernel in program.kernels]
    readers = Counter(n for use in uses for n in use.shared if n not in use.written)
    launches, finite = _launched(
        program, [_launch(program, call, uses, readers) for call in program.launched()]
    )
    shared = {program.owner(n) for launch in launches for n in launch.buffers}
    layout = Layout(
        program.machine.memory.line_bytes,
        tuple(sorted(n for n in shared if program.buffers[n].role == "temporary")),
        tuple(use.private for use in uses if use.private),
        program.machine.threads.most,
        program.machine.threads.scratch_bytes,
    )
    ranges = tuple(_ranges(program, uses))
    indices = {n for each in ranges for n in (each.size, *program.buffers[each.buffer].dims)}
    indices |= {n for each in finite for m in each.buffers for n in program.buffers[m].dims}
    indices |= {n for kernel in program.kernels for span in kernel.spans or () for n in span}
    measured = (*layout.temporaries, *(n for private in layout.scratch for n in private))
    return Host(
        program,
        tuple(arguments_of(program)),
        tuple(_checks(program, {n for m in measured for n in program.buffers[m].dims})),
        layout,
        tuple(_sizes(program, indices | {n for use in uses for n in use.sizes})),
        launches,
        ranges,
        finite,
        LONG <= len(launches),
    )


def _launched(
    program: ir.Program, launches: Sequence[Launch]
) -> tuple[tuple[Launch, ...], tuple[Finite, ...]]:
    """Launches that are told whether arrays are finite, where their loops ask, and what is looked at for that.

    An array is looked at again after a launch that writes it.
    """
    looked: list[Finite] = []
    current: dict[tuple[BufferId, ...], int] = {}
    launched: list[Launch] = []
    for number, (launch, call) in enumerate(zip(launches, program.launched(), strict=True)):
        loops = (s for s in ir.statements_within(program.kernels[call.kernel].body))
        arrays_of_loops = [s.finite for s in loops if isinstance(s, ir.For)]
        asked = {program.owner(call.array(n)) for each in arrays_of_loops for n in each}
        arrays = tuple(sorted(asked))
        if arrays and arrays not in current:
            current[arrays] = len(looked)
            looked.append(Finite(arrays, number))
        launched.append(replace(launch, finite=current.get(arrays)))
        written = {program.owner(n) for n in launch.writes}
        current = {each: n for each, n in current.items() if written.isdisjoint(each)}
    return tuple(launched), tuple(looked)


def _ranges(program: ir.Program, uses: Sequence[Use]) -> Iterator[Ranges]:
    """Checks of lookups, before the kernel that makes them first, or before all if their array is the caller's."""
    known: set[tuple[BufferId, int]] = set()
    given: list[Ranges] = []
    computed: list[Ranges] = []
    for launch, call in enumerate(program.launched()):
        for looked, size in uses[call.kernel].looked:
            buffer = call.array(looked)
            if (buffer, size) not in known:
                known.add((buffer, size))
                is_given = program.memory(buffer).role == "input"
                (given if is_given else computed).append(
                    Ranges(buffer, size, 0 if is_given else launch)
                )
    yield from (*given, *computed)


def arguments_of(program: ir.Program) -> Iterator[Argument]:
    """The arrays of a caller: inputs, then outputs; one that is both stands among the inputs."""
    for buffer in program.inputs:
        role: Role = "inout" if buffer in program.outputs else "input"
        yield Argument(buffer, role)
    yield from (Argument(n, "output") for n in program.outputs if n not in program.inputs)


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
    yield from program.bounds
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
    """The counts of loops among the sizes that are needed, and those that these follow from."""
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
    grid = _grid(program, kernel)
    read = [n for n in use.shared if n not in use.written]
    combined = next((n for n in read if program.buffers[n].instead is not None), None)
    few, many = 1, None
    if (
        combined is not None
        and 1 < readers[combined]
        and grid is not None
        and program.machine.device is not None
    ):
        most = program.machine.device.parts.of_thread
        few, many = (most, None) if grid.over == "blocks" else (1, most)
    return Launch(
        call.kernel,
        tuple(n for n in use.sizes if program.sizes[n].fixed is None),
        tuple(map(call.array, use.shared)),
        frozenset(map(call.array, use.written & set(use.shared))),
        bool(use.private),
        _is_divided(program, kernel) if grid is None else bool(use.private),
        grid,
        None if combined is None else program.buffers[combined].dims[0],
        few,
        many,
        needs=kernel.needs,
    )


def _grid(program: ir.Program, kernel: ir.Kernel) -> Grid | None:
    """The blocks that a kernel is launched with; None on a machine that has no blocks."""
    device = program.machine.device
    if device is None:
        return None
    (spread,) = kernel.body
    assert isinstance(spread, ThreadLoop)
    along: dict[str, int] = {
        loop.role: loop.size for loop in spread.loops if loop.role in ("y", "z")
    }
    return Grid(
        spread.threads,
        tuple(loop.size for loop in spread.loops if loop.role not in along),
        spread.over,
        device.most_blocks,
        (along.get("y"), along.get("z")),
        device.most_across,
        spread.shape,
        1 if spread.vectors is None else spread.vectors.count,
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
