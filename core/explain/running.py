"""One line on how a program runs: tiles, copies, lanes, and what cores or blocks share.

Example, of a product of matrices: ``tiles of 6 × 64 in registers; b is copied for them; cores share j``
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import For, HorizontalReduction, If, Kernel, Program, Statement, every
from ilang.core.ir.schedule import Chunks, RegisterTile, Scheduled
from ilang.core.ops import OPS, REDUCING


def runs_as(scheduled: Scheduled, program: Program) -> str:
    """The line; words are said once, of whichever kernel they are."""
    words: dict[str, None] = {}
    if 1 < len(program.launched()):
        words[f"{len(program.launched())} kernels, one after the other"] = None
    for word in _tiles(scheduled):
        words[word] = None
    steps = program.parts()
    for kernel in program.kernels:
        for word in _blocks(kernel, steps) if program.machine.device else _lanes(kernel):
            words[word] = None
    shared = [] if program.machine.device else list(dict.fromkeys(_shared(program)))
    if shared:
        words[f"cores share {' and '.join(shared)}"] = None
    return "; ".join(words) or "plain loops, one element after the other"


def _tiles(scheduled: Scheduled) -> Iterator[str]:
    """The tiles that sums keep in registers, and the inputs that are copied for them."""
    for group in scheduled.groups:
        for instance in group.plan.instances:
            held = instance.accumulation
            held = held.each if isinstance(held, Chunks) else held
            if isinstance(held, RegisterTile):
                yield f"tiles of {' × '.join(map(str, held.extents))} in registers"
            if instance.along is not None:
                node = scheduled.shaped.assignment(instance.value)
                many, along = OPS[node.acc or ""].many, node.axes[instance.along.axis].name
                yield f"{many} carried along {along}"
        if group.plan.mirror is not None:
            yield "half of a symmetric result copied"


def _lanes(kernel: Kernel) -> Iterator[str]:
    """The results that lanes hold beside each other, by what combines them: sums, maxima."""
    most: dict[str, int] = {}
    for s in every(kernel.body, HorizontalReduction):
        word = REDUCING[s.primitive].many
        most[word] = max(s.lanes, most.get(word, 0))
    ordered = dict.fromkeys(REDUCING[each.ordered].many for each in kernel.locals if each.ordered)
    words = [*ordered, *(f"{lanes} {word}" for word, lanes in most.items())]
    if words:
        yield f"{' and '.join(words)} in vectors"


def _shared(program: Program) -> Iterator[str]:
    """The loops that cores share: the outermost, or else those inside of others."""
    for kernel in program.kernels:
        parts = {loop.chunk[2] for loop in every(kernel.body, For) if loop.chunk}
        inner = (loop for loop in every(kernel.body, For) if loop.parallel)
        for loop in list(_outermost(kernel.body)) or inner:
            name = kernel.names[loop.variable]
            if loop.variable in parts:
                yield "parts of the sum"
            elif "_" not in name:  # v_0 is a dimension of a copy, and no axis
                yield name


def _outermost(body: Sequence[Statement]) -> Iterator[For]:
    """The outermost parallel loops, each with those that are all of its body, but for parts of a split axis."""
    for s in body:
        if isinstance(s, If):
            yield from _outermost((*s.body, *s.otherwise))
        elif isinstance(s, For) and s.parallel:
            if s.part() is None:
                yield s
            if len(s.body) == 1:
                yield from _outermost(s.body)


def _blocks(kernel: Kernel, steps: Mapping[int, tuple[int, int]]) -> Iterator[str]:
    """Words on each launch: the elements, steps of several, or part of a sum that a thread or block computes."""
    for s in kernel.body:
        if isinstance(s, ThreadLoop):
            parts = {loop.chunk[2] for loop in every(s.body, For) if loop.chunk}
            names = []
            for loop in s.loops:
                name, (_, step) = kernel.names[loop.variable], steps.get(loop.size, (0, 1))
                name = name if step == 1 else f"{step} {name}"
                names.append("part of the sum" if loop.variable in parts else name)
            each = f"a block of {s.threads} threads"
            each = f"a thread, {s.threads} in a block," if s.over == "grid" else each
            if names:
                yield f"{each} for each {' and '.join(names)}"
            else:
                yield "one thread" if s.over == "grid" else f"one block of {s.threads} threads"
