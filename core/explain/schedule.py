"""The whole schedule of a program as text: what ``i explain --emit schedule`` prints.

Example, a sum of products:
    t1   ik*kj~ijk  || i k j
    out  +ijk~ij    || i k j 0

    kernel k0: out
      t1 in out, shares i k j

The nests stand first, in the notation in which a person writes them. Then each kernel: the values that it stores whole,
with the loops that they share, and below them what it stages: producers, with the loops that are their reader's, copies
of what is read, and reductions that are read while they run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ilang.core.explain.expression import aligned
from ilang.core.ir.schedule import (
    Group,
    Instance,
    Loop,
    Nest,
    Root,
    Running,
    Scheduled,
    loop_text,
    schedule_text,
    unscheduled,
)
from ilang.core.ir.shaped import Assignment


def scheduled_text(scheduled: Scheduled) -> str:
    """A line per assignment, ``name  expression  schedule``, then a paragraph per kernel."""
    rows = []
    for value in range(len(scheduled.nests)):
        if scheduled.nests[value] is not None:
            node, nest = _assigned(scheduled, value)
            rows.append((_name(scheduled, value), unscheduled(node), schedule_text(node, nest)))
    kernels = ("\n".join(_group(scheduled, n, g)) for n, g in enumerate(scheduled.groups))
    return "\n\n".join(["\n".join(aligned(rows)), *kernels])


def _group(scheduled: Scheduled, number: int, group: Group) -> Iterator[str]:
    """The lines of a kernel."""
    yield f"kernel k{number}: " + "; ".join(_root(scheduled, root) for root in group.roots)
    todo = [root.value for root in reversed(group.roots)]
    seen = set(todo)
    while todo:
        value = todo.pop()
        node, nest = _assigned(scheduled, value)
        staged = [n for n, site in enumerate(nest.sites) if site is not None]
        yield from dict.fromkeys(f"  {_staged(scheduled, value, n)}" for n in staged)
        below = [
            read.value
            for number, read in enumerate(node.reads)
            if scheduled.fusions[value][number] is not None and read.value not in seen
        ]
        todo += dict.fromkeys(reversed(below))
        seen.update(below)
    for instance, running in group.plan.running.items():
        yield f"  {_running(scheduled, group.plan.instances, instance, running)}"


def _root(scheduled: Scheduled, root: Root) -> str:
    """A value that is stored whole, and the loops that it shares: ``t2 shares i with out``."""
    name = _name(scheduled, root.value)
    if root.owner == root.value:
        return name
    node, nest = _assigned(scheduled, root.value)
    loops = " ".join(loop_text(node, loop) for loop in nest.order[: root.shared])
    return f"{name} shares {loops} with {_name(scheduled, root.owner)}"


def _staged(scheduled: Scheduled, value: int, number: int) -> str:
    """What is staged for a read: ``t1 in out, shares i k j``, or ``in1 copied in out, inside j``."""
    node, nest = _assigned(scheduled, value)
    read, site, fusion = node.reads[number], nest.sites[number], scheduled.fusions[value][number]
    name, reader = _name(scheduled, read.value), _name(scheduled, value)
    outside = " ".join(loop_text(node, loop) for loop in nest.order[: site or 0])
    within = f"inside {outside}" if outside else "before all loops"
    if fusion is None:
        return f"{name} copied in {reader}, {within}"
    made, inner = _assigned(scheduled, read.value)
    shared = _shared(made, inner, node, fusion.loops)
    return f"{name} in {reader}, {within}" + (f", shares {shared}" if shared else "")


def _shared(made: Assignment, inner: Nest, node: Assignment, loops: Mapping[Loop, Loop]) -> str:
    """Loops that are those of a reader, ``p as i`` where it calls them otherwise."""
    words = []
    for loop in inner.order:
        if loop in loops:
            own, outer = loop_text(made, loop), loop_text(node, loops[loop])
            words.append(own if own == outer else f"{own} as {outer}")
    return " ".join(words)


def _running(
    scheduled: Scheduled, instances: tuple[Instance, ...], number: int, running: Running
) -> str:
    """A reduction of a plan: ``out online, corrected by m, divided by s``."""

    def named(instance: int) -> str:
        return _name(scheduled, instances[instance].value)

    outer = running.outer
    node, _ = _assigned(scheduled, instances[outer.instance].value)
    words = [
        f"{named(number)} online, over {loop_text(node, outer.loop)} of {named(outer.instance)}"
    ]
    words += ["read while partial"] if running.partial else []
    for says, links in (
        ("corrected by", running.shifts),
        ("divided by", running.divisors),
        ("scales", running.scales),
    ):
        words += [f"{says} {' '.join(named(link.instance) for link in links)}"] if links else []
    return ", ".join(words)


def _assigned(scheduled: Scheduled, value: int) -> tuple[Assignment, Nest]:
    """An assignment and its nest."""
    node, nest = scheduled.shaped.nodes[value], scheduled.nests[value]
    assert isinstance(node, Assignment)
    assert nest is not None
    return node, nest


def _name(scheduled: Scheduled, value: int) -> str:
    return scheduled.shaped.tensors[value].name
