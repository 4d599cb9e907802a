"""Invariants of ``ir/host.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ilang.core.diagnostic import InternalError
from ilang.core.ir.host import Host, Launch, Look, Step
from ilang.core.ir.kernel import Call
from ilang.core.ir.shaped import Derivation, Reach


def verify(host: Host) -> None:
    """Raise an InternalError (E9905) naming the first invariant that does not hold."""
    _arguments(host)
    _workspace(host)
    _launches(host)
    program = host.program
    measured = [*program.arguments(), *host.temporaries]
    measured += (n for private in host.scratch for n in private)
    wanted = {size for number in measured for size in program.buffers[number].dims}
    _steps(host, host.checks, wanted, "a size of what is measured is given")
    taken = {size for launch in host.launches() for size in launch.sizes}
    for array, size in (each for look in host.looks() for each in look.arrays):
        taken |= {*program.buffers[array].dims, *(() if size is None else (size,))}
    _steps(host, host.sizes, taken, "a size that a launch takes is given")


def _demand(host: Host, holds: bool, invariant: str) -> None:
    if not holds:
        raise InternalError("E9905", f"host program of {host.program.name}: {invariant}")


def _steps(host: Host, steps: Sequence[Step], wanted: set[int], invariant: str) -> None:
    """Steps read what is known before them, give each size once, and in the end all that are wanted."""
    known = {n for n, size in enumerate(host.program.sizes) if size.fixed is not None}
    for step in steps:
        reads, gives = _touched(step)
        _demand(host, reads <= known, "a step reads sizes that are known before it")
        _demand(host, gives is None or gives not in known, "a size is given once")
        known |= set() if gives is None else {gives}
    _demand(host, wanted <= known, invariant)


def _touched(step: Step) -> tuple[set[int], int | None]:
    """The sizes that a step reads, and the one that it gives."""
    match step:
        case int():
            return set(), step
        case Derivation():
            reads = {*step.sources(), *step.spread}
            return (reads | {step.size}, None) if step.known else (reads, step.size)
        case Reach():
            inside = set() if step.size is None else {step.size}
            return {*step.index.variables(), *inside}, None
        case (size, value):
            return set(value.sizes()), size
        case _:
            assert_never(step)


def _arguments(host: Host) -> None:
    inputs, outputs = host.program.inputs, host.program.outputs
    for number in host.program.arguments():
        is_both = number in inputs and number in outputs
        role = "inout" if is_both else ("input" if number in inputs else "output")
        same = host.program.buffers[number].role == role
        _demand(host, same, "an argument is for what the program does with it")


def _workspace(host: Host) -> None:
    buffers = host.program.buffers
    taken = {host.program.owner(n) for launch in host.launches() for n in launch.buffers}
    temporaries = {n for n in taken if buffers[n].role == "temporary"}
    placed = list(host.temporaries)
    _demand(host, set(placed) == temporaries, "a temporary that a launch takes has a place")
    private = [n for each in host.scratch for n in each]
    _demand(host, all(buffers[n].private for n in private), "scratch is private")
    _demand(host, not taken & set(private), "a launch takes no scratch as an array")
    every = placed + private
    _demand(host, len(set(every)) == len(every), "a buffer has one place")


def _launches(host: Host) -> None:
    buffers = host.program.buffers
    marks = [look.mark for look in host.looks()]
    _demand(host, len(set(marks)) == len(marks), "a mark is that of one look")
    read_only = {n for n in host.program.arguments() if buffers[n].role == "input"}
    written: set[int] = set()
    looked_at: dict[int, set[int]] = {}
    for launch in host.operations:
        if isinstance(launch, Look):
            looked_at[launch.mark] = {host.program.owner(n) for n, _ in launch.arrays}
            given = {buffers[n].role for n in looked_at[launch.mark] - written}
            _demand(host, given <= {"input", "inout"}, "what is looked at has been written")
            continue
        _demand(host, launch.writes <= set(launch.buffers), "a launch takes what it writes")
        once = len(set(launch.buffers)) == len(launch.buffers)
        _demand(host, once, "a launch takes each array once")
        gives = {host.program.owner(n) for n in launch.writes}
        _demand(host, not gives & read_only, "inputs are not written")
        _demand(host, len(gives) == len(launch.writes), "a launch writes memory as one array")
        reads = {host.program.owner(n) for n in set(launch.buffers) - launch.writes}
        _demand(host, not reads & gives, "a view is read where its owner is not written")
        read = {n for n in reads if buffers[n].role == "temporary"}
        _demand(host, read <= written, "a temporary is written before it is read")
        if launch.infinite is not None:
            known = launch.infinite in looked_at
            _demand(host, known, "what is known to be finite is not written")
        looked_at = {mark: looked for mark, looked in looked_at.items() if not gives & looked}
        written |= gives
    outputs = (n for n in host.program.arguments() if buffers[n].role == "output")
    full = {n for n in outputs if 0 not in {host.program.sizes[d].fixed for d in buffers[n].dims}}
    _demand(host, full <= written, "an output is written")
    for launch, call in zip(host.launches(), host.program.launched(), strict=True):
        _is_outlined(host, launch, call)


def _is_outlined(host: Host, launch: Launch, call: Call) -> None:
    """A launch gives the function of a kernel what that takes, where that is known."""
    outline = host.program.kernels[launch.kernel].outline
    if outline is None:
        return
    given = (launch.sizes, launch.buffers, launch.writes, launch.scratch, launch.divided)
    captured, flags = outline.captured, (outline.scratch, outline.divided)
    arrays = tuple(map(call.array, captured.buffers))
    taken = (captured.sizes, arrays, frozenset(map(call.array, outline.written)), *flags)
    _demand(host, given == taken, "a launch gives what the function of a kernel takes")
