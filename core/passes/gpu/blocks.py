"""Give the loops of role ``t`` to the threads of a block, and the loops around them to blocks.

Example:
    in:   for i: for j                               out:  spread i j over blocks
            for k                                            for k
              for k1: for j1: copy[k1,j1] = ...                spread k1 j1 over threads: copy[k1,j1] = ...
              for i1 (t): for j1 (t)                           spread i1 j1 over threads
                for k1: acc[i1,j1] += ...                        for k1: acc[i1,j1] += ...

Loops of role ``t`` that stand right inside each other are spread together, moved outside what stands between them; work
beside them, such as a copy, is spread as its loops allow. A loop of role ``t`` that accumulates in scalar variables
gives each thread a part, and what all threads have is combined after it. A statement that stores and has no such loop
is one thread's. All else is done by every thread alike: loops around, scalar variables, conditions.

Roles tx, ty and tz are t with a dimension of the block; of loops with the role l, a warp stands for the block. Where
blocks are asked for and threads are not, they take what they may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from ilang.core.calculus.affine import Within
from ilang.core.dtype import INTEGER_ENDS
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import CombineThreads, ThreadLoop
from ilang.core.ir.ids import LocalId
from ilang.core.ir.rewriting import accesses, chain_of, parts_of
from ilang.core.ir.scalar import Apply, Constant, Local, Scalar
from ilang.core.ir.schedule import BLOCK_ROLES, THREAD_DIMENSIONS, THREAD_ROLES, Role
from ilang.core.ops import REDUCING
from ilang.core.passes.independence import Independence
from ilang.core.record import mapped, record, replace


@record
class Refusal:
    """The reason why blocks and threads cannot be as they are asked for: past a ``limit``, or for what the loops do."""

    code: str
    problem: str
    help: str
    limit: bool = False


ALONE = "give the role to another loop, or leave it out: threads then take what they may"


def is_for_blocks(kernel: ir.Kernel) -> bool:
    """Whether a kernel has loops for blocks or for their threads."""
    return any(loop.role in (*BLOCK_ROLES, *THREAD_ROLES) for loop in ir.every(kernel.body, ir.For))


def kernel_to_blocks(
    program: ir.Program, kernel: ir.Kernel, loops: list[ir.For], body: ir.Block
) -> ThreadLoop | Refusal:
    """A kernel whose ``loops`` are spread over blocks, and whose ``body`` over their threads.

    Args:
        program: the program.
        kernel: one of its kernels.
        loops: the outer loops that are spread, without bodies.
        body: what one iteration of them does.
    """
    device = program.machine.gpu()
    if any(part.looked for _, index in accesses(kernel.body) for part in index):
        return Refusal("E0335", "it looks indices up, which any thread may have made", ALONE)
    opened = {loop.variable for loop in loops}
    every = list(ir.every(kernel.body, ir.For))
    if any(loop.role in BLOCK_ROLES and loop.variable not in opened for loop in every):
        problem = (
            "its blocks would be inside of threads, or inside of loops that several values share"
        )
        return Refusal("E0335", problem, "make loops for blocks the outermost ones")
    mapper = _BlockMapper(program, kernel)
    body_of_threads = mapper.block(body)
    if body_of_threads is None:
        return mapper.refusal
    if all(loop.role == "l" for loop in every if loop.role in THREAD_ROLES) and mapper.asked:
        if all(
            loop.role in ("y", "z") for loop in loops
        ):  # nothing that the warps of a block could share
            inside = counted(body_of_threads, device.warp)
            return ThreadLoop(tuple(loops), "blocks", device.warp, inside)
        lanes = mapper.lanes(every)
        inside = counted(body_of_threads, lanes)
        return ThreadLoop(tuple(loops), "warps", device.block_threads, inside, lanes=lanes)
    if any(loop.role == "l" for loop in every):
        return Refusal("E0335", "some of its loops are for lanes, others for threads", ALONE)
    shape = mapper.shape(body_of_threads)
    count = prod(shape) if shape else mapper.wanted()
    whole = count if shape else -(-count // device.warp) * device.warp
    if device.most_block_threads < whole:
        problem = f"its parts need {whole:,} threads in a block together, of {device.most_block_threads:,}"
        return Refusal("E0332", problem, "take smaller parts", limit=True)
    if shape and device.most_deep_threads < shape[-1]:
        problem = f"its parts need {shape[-1]:,} threads along z together, of {device.most_deep_threads:,}"
        return Refusal("E0332", problem, "give tx or ty to a loop of it", limit=True)
    return ThreadLoop(tuple(loops), "blocks", whole, counted(body_of_threads, whole), shape)


def counted(body: ir.Block, threads: int) -> ir.Block:
    """A block whose spreads all know how many threads there are."""
    return mapped(body, (ThreadLoop, CombineThreads), lambda s: replace(s, threads=threads))


class _BlockMapper:
    def __init__(self, program: ir.Program, kernel: ir.Kernel) -> None:
        self.program = program
        self.independence = Independence(program, ir.statements_within(kernel.body))
        device = program.machine.gpu()
        self.most = device.most_block_threads
        self.usual = device.block_threads
        self.warp = device.warp
        self.threads = 1
        self.free = 1
        self.asked = False
        self.named = any(request.asked == "role" for request in kernel.requests)
        self.keeps = any(program.buffers[number].private for number, _ in accesses(kernel.body))
        self.refusal = Refusal("E0335", "threads would meet in what they write", ALONE)

    def wanted(self) -> int:
        """The threads of a block: those asked for, else as many as have something to do, up to the usual number."""
        return self.threads if self.asked else min(self.free, self.usual)

    def lanes(self, every: Sequence[ir.For]) -> int:
        """The adjacent lanes of a worker: a power of two that has one for each iteration, as far as a warp goes."""
        extents = [self.program.sizes[loop.size].fixed for loop in every if loop.role == "l"]
        most = max(self.warp if extent is None else extent for extent in extents)
        return min(self.warp, 1 << max(0, most - 1).bit_length())

    def shape(self, body: ir.Block) -> tuple[int, ...]:
        """The threads of a block along each of its dimensions; none where no loop names one.

        A combination takes whole warps: the last dimension is longer then.
        """
        spreads = list(ir.every(body, ThreadLoop))
        named = [loop for s in spreads for loop in s.loops if loop.role in THREAD_DIMENSIONS]
        if not named:
            return ()
        extents = [1] * len(THREAD_DIMENSIONS)
        for loop in named:
            at = THREAD_DIMENSIONS.index(loop.role)
            extents[at] = max(extents[at], self.program.sizes[loop.size].fixed or 1)
        last = max(n for n, extent in enumerate(extents) if extent > 1 or n == 0)
        combined = any(isinstance(s, CombineThreads) for s in ir.statements_within(body))
        while prod(extents) < self.threads or (combined and prod(extents) % self.warp):
            extents[last] += 1
        return tuple(extents)

    def block(self, body: ir.Block) -> ir.Block | None:
        """The statements of a block for all threads; None where that cannot be."""
        out: list[ir.Statement] = []
        started: dict[LocalId, Scalar] = {}
        for s in body:
            sums = self._reduction(s, started)
            spread = self._statement(s) if sums is None else sums[0]
            if spread is None:
                return None
            out += [spread] if sums is None else sums
            for x in ir.statements_within((s,)):
                if isinstance(x, (ir.Change, ir.HorizontalReduction)):
                    started.pop(x.variable, None)
            if isinstance(s, ir.Define) and s.mutable:
                started[s.variable] = s.value
        return tuple(out)

    def _reduction(
        self, s: ir.Statement, started: Mapping[LocalId, Scalar]
    ) -> list[ir.Statement] | None:
        """A loop for threads that accumulates in variables that were just ``started``, and their combination after it.

        None where a statement is anything else.
        """
        chain, inside = chain_of((s,))
        asked = [loop for loop in chain if loop.role in THREAD_ROLES]
        if len(asked) != 1 or is_spread_inside(inside):
            return None
        shared = _shared_out(chain, asked)
        (loop,), body = shared.loops, shared.body
        combined = self._combined(body, started)
        if not combined:
            return None
        spread = replace(loop, body=body, role="t")
        if not self.independence.holds(spread, (), combined):
            return None
        extent, most = self.program.sizes[spread.size].fixed, self.usual
        self.threads = max(self.threads, most if extent is None else min(max(1, extent), most))
        self.asked = True
        return [ThreadLoop((replace(spread, body=()),), "threads", 1, body), *combined.values()]

    def _combined(
        self, body: ir.Block, started: Mapping[LocalId, Scalar]
    ) -> dict[LocalId, CombineThreads]:
        """The statements that combine the variables in which a loop accumulates; none if one cannot be."""
        combines: dict[LocalId, CombineThreads] = {}
        inside = list(ir.statements_within(body))
        defined = {x.variable for x in inside if isinstance(x, ir.Define)}
        for x in inside:
            if isinstance(x, ir.HorizontalReduction):
                return {}
            if isinstance(x, ir.Change) and x.variable not in defined:
                primitive = _accumulates(x)
                if primitive is None or x.variable not in started or x.variable in combines:
                    return {}
                if not _is_identity(primitive, started[x.variable]):
                    return {}
                combines[x.variable] = CombineThreads(x.variable, primitive, x.value.dtype or "", 1)
        read = Counter(
            part.variable for x in inside for part in parts_of(x) if isinstance(part, Local)
        )
        return {} if any(read[n] > 1 for n in combines) else combines

    def _statement(self, s: ir.Statement) -> ir.Statement | None:
        match s:
            case ir.For():
                return self._loop(s)
            case ir.If():
                within, otherwise = self.block(s.body), self.block(s.otherwise)
                if within is None or otherwise is None:
                    return None
                return replace(s, body=within, otherwise=otherwise)
            case ir.Store():
                return ThreadLoop((), "threads", 1, (s,))
            case ir.Define() | ir.Change() | ir.HorizontalReduction():
                return s
            case _:
                return None

    def _loop(self, loop: ir.For) -> ir.Statement | None:
        """A loop: spread with those right inside it, kept around what is spread inside, or one thread's."""
        chain, _ = chain_of((loop,))
        asked = any(inner.role in THREAD_ROLES for inner in chain)
        if not asked and is_spread_inside(chain[-1].body):
            body = self.block(loop.body)
            return None if body is None else replace(loop, body=body)
        chosen = self._chosen(chain, asked)
        given = {each.variable for each in chosen}
        wished = [each for each in chain if each.role in THREAD_ROLES and self.named]
        if any(each.variable not in given for each in wished):
            return None
        if chosen:
            if is_spread_inside(chain[-1].body):
                problem = "threads would wait for each other where not all of them come: what is staged inside of a "
                problem += "loop that they share is for threads itself"
                self.refusal = Refusal(
                    "E0336", problem, "stage it outside of the loops for threads"
                )
                return None
            return _shared_out(chain, _counted_along(self.program, chosen))
        inside = list(ir.statements_within((loop,)))
        defined = {s.variable for s in inside if isinstance(s, ir.Define)}
        shares = any(
            isinstance(s, (ir.Change, ir.HorizontalReduction)) and s.variable not in defined
            for s in inside
        )
        if not any(isinstance(s, ir.Store) for s in inside):
            return loop
        return None if shares else ThreadLoop((), "threads", 1, (loop,))

    def _chosen(self, chain: list[ir.For], asked: bool) -> list[ir.For]:
        """The loops of a chain to spread over threads: those that are asked for, else all that may be."""
        chosen: list[ir.For] = []
        for n, loop in enumerate(chain):
            opened = {outer.variable for outer in chosen}
            around = {outer.variable for outer in chain[:n]}
            role = loop.role in THREAD_ROLES if asked else loop.role == ""
            plain = loop.chunk is None and role
            if plain and self.independence.holds(loop, around - opened):
                chosen.append(loop)
        extents = [self.program.sizes[loop.size].fixed for loop in chosen]
        known = [extent for extent in extents if extent is not None]
        count = prod(known) if len(known) == len(extents) else self.usual
        self.asked |= asked and bool(chosen)
        if asked and chosen:
            whole = self.named or self.keeps  # a thread then has what it keeps for one iteration
            self.threads = max(self.threads, count if whole else min(count, self.usual))
        elif chosen:
            self.free = max(self.free, count)
        return chosen if asked else self._along_memory(chosen, chain[-1].body)

    def _along_memory(self, loops: list[ir.For], body: ir.Block) -> list[ir.For]:
        """Loops in the order in which they step through the array of a caller, so that accesses are coalesced."""
        every = ((b, index) for b, index in accesses(body) if not self.program.buffers[b].private)
        _, index = next(every, (None, ()))

        def place(loop: ir.For) -> tuple[int, int]:
            steps = [
                (d, -abs(part.coefficient(loop.variable)))
                for d, part in enumerate(index)
                if loop.variable in part.variables()
            ]
            return max(steps, default=(-1, 0))

        return sorted(loops, key=place)


def _accumulates(change: ir.Change) -> str | None:
    """The primitive with which a variable takes another value; None where it becomes anything else."""
    value = change.value
    if not isinstance(value, Apply) or value.primitive not in REDUCING:
        return None
    old = value.arguments[0]
    return value.primitive if isinstance(old, Local) and old.variable == change.variable else None


def _is_identity(primitive: str, start: Scalar) -> bool:
    """Whether a primitive leaves what it is applied to, and to this number, as it is."""
    if not isinstance(start, Constant) or start.dtype is None:
        return False
    if start.dtype in INTEGER_ENDS and primitive in ("max", "min"):
        return start.value == INTEGER_ENDS[start.dtype][primitive == "min"]
    return start.value == REDUCING[primitive].identity


def _counted_along(program: ir.Program, chosen: list[ir.For]) -> list[ir.For]:
    """Loops for threads, which are those along dimensions of the block only where all of them are, and known."""
    named = all(loop.role in THREAD_DIMENSIONS for loop in chosen)
    if named and all(program.sizes[loop.size].fixed is not None for loop in chosen):
        return chosen
    plain: Role = "t"
    return [replace(loop, role=plain) if loop.role else loop for loop in chosen]


def _shared_out(chain: list[ir.For], chosen: list[ir.For]) -> ThreadLoop:
    """Some loops of a chain for threads, the others inside them.

    Where one that is moved outside of another one ends by that one's variable, or an unrolled one ends, a condition is
    there instead. A loop right around an unrolled one has no copies: registers hold what one iteration needs.
    """
    body = chain[-1].body
    given = {loop.variable for loop in chosen}
    kept = [loop for loop in chain if loop.variable not in given]
    inside = {loop.variable for loop in kept}
    loops: list[ir.For] = []
    within: list[Within] = []
    for loop in chosen:
        if loop.ends() & inside:
            within += loop.runs()
            loops.append(replace(loop.whole(), body=()))
        else:
            loops.append(replace(loop, body=()))
    for n, loop in enumerate(kept):
        if loop.role == "u":
            within += loop.runs()
            kept[n] = loop.whole()
    if within:
        body = (ir.If(tuple(within), body),)
    for loop in reversed(kept):
        around = loop.role != "u" and any(isinstance(s, ir.For) and s.role == "u" for s in body)
        body = (replace(loop, body=body, manner=ir.Unrolled(1) if around else loop.manner),)
    return ThreadLoop(tuple(loops), "threads", 1, body)


def is_spread_inside(body: ir.Block) -> bool:
    """Whether a loop for threads stands anywhere inside."""
    return any(isinstance(s, ir.For) and s.role in THREAD_ROLES for s in ir.statements_within(body))
