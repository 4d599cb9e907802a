"""The whole schedule of a program as text: what ``i explain --emit schedule`` prints.

Example, a sum of products:
    t1   ik*kj~ijk  || i k j
    out  +ijk~ij    || i k j 0

    kernel k0: out
      t1 in out, shares i k j

The nests stand first, in the notation in which a person writes them, and which values are stored otherwise than they
are written. Then each kernel: the values that it stores whole,
with the loops that they share, and below them what it stages: producers, with the loops that are their reader's, copies
of what is read, and reductions that are read while they run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from ilang.core.calculus.affine import Within
from ilang.core.calculus.extent import Extent
from ilang.core.explain.expression import aligned, guards_text, size_text, stored_text
from ilang.core.ir.extent import extent_text
from ilang.core.ir.schedule import (
    Accumulation,
    Chunks,
    Group,
    Instance,
    Link,
    Loop,
    Nest,
    OnlineReduction,
    Opened,
    PartialSums,
    Parts,
    RegisterTile,
    Root,
    Scheduled,
    ThreadTile,
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
            node, nest = scheduled.assigned(value)
            rows.append((_name(scheduled, value), unscheduled(node), schedule_text(node, nest)))
    kernels = ("\n".join(_group(scheduled, n, g)) for n, g in enumerate(scheduled.groups))
    stored = [
        f"{tensor.name} stored by {stored_text(tensor.order)}"
        for tensor in scheduled.shaped.tensors
        if tensor.order
    ]
    layouts = ["\n".join(stored)] if stored else []
    return "\n\n".join(["\n".join(aligned(rows)), *layouts, *kernels])


def _group(scheduled: Scheduled, number: int, group: Group) -> Iterator[str]:
    yield f"kernel k{number}: " + "; ".join(_root(scheduled, root) for root in group.roots)
    for instance in group.plan.instances:
        if instance.parts is not None:
            yield f"  {_parts(scheduled, instance, instance.parts)}"
        if instance.accumulation is not None:
            yield f"  {_accumulation(scheduled, instance, instance.accumulation)}"
        if instance.along is not None:
            along = loop_text(scheduled.assigned(instance.value)[0], instance.along)
            yield f"  {_name(scheduled, instance.value)} carried along {along}"
        numbers = _staged_reads(scheduled, instance)
        yield from dict.fromkeys(
            f"  {_staged(scheduled, group, instance, number)}" for number in numbers
        )
    if group.plan.mirror is not None:
        node, name = (
            scheduled.assigned(group.roots[0].value)[0],
            _name(scheduled, group.roots[0].value),
        )
        axes = " ".join(node.axes[axis].name for axis in group.plan.mirror)
        yield f"  {name} symmetric in {axes}: half of it is copied"
    for reduced, online in group.plan.online.items():
        yield f"  {_online(scheduled, group.plan.instances, reduced, online)}"


def _root(scheduled: Scheduled, root: Root) -> str:
    """A value that is stored whole, and the loops that it shares: ``t2 shares i with out``."""
    name = _name(scheduled, root.value)
    if root.owner == root.value:
        return name
    node, nest = scheduled.assigned(root.value)
    loops = " ".join(loop_text(node, loop) for loop in nest.order[: root.shared])
    return f"{name} shares {loops} with {_name(scheduled, root.owner)}"


def _staged_reads(scheduled: Scheduled, instance: Instance) -> list[int]:
    """The reads of an instance for which something is computed or copied, by number."""
    node, nest = scheduled.assigned(instance.value)
    return [
        number
        for number, read in enumerate(node.reads)
        if number in instance.copies
        or (nest.sites[number] is not None and read in instance.sources)
    ]


def _staged(scheduled: Scheduled, group: Group, instance: Instance, number: int) -> str:
    """The staging of a read: ``t1 in out, shares i k j``, or ``in1 copied in out, inside j, as [n_k, 64]``."""
    node, nest = scheduled.assigned(instance.value)
    read, site = node.reads[number], nest.sites[number]
    name, reader = _name(scheduled, read.value), _name(scheduled, instance.value)
    outside = " ".join(loop_text(node, loop) for loop in nest.order[: site or 0])
    words = [f"inside {outside}" if outside else "before all loops"]
    if number in instance.copies:
        dims = _dims(scheduled, [dim.extent for dim in instance.copies[number]])
        return ", ".join([f"{name} copied in {reader}", *words, *([f"as {dims}"] if dims else [])])
    producer, inner = scheduled.assigned(read.value)
    source = group.plan.instances[instance.sources[read].instance]
    fusion = scheduled.fusions[instance.value][number]
    shared = _shared(producer, inner, node, fusion.loops) if fusion else ""
    words += [f"shares {shared}"] if shared else []
    for axis, (steps, offset) in source.intervals.items():
        extent = extent_text(scheduled.shaped.sizes, source.extents[axis])
        start = " + ".join(
            f"{step if step > 1 else ''}{_opened(scheduled, group, opened)}"
            for step, opened in steps
        )
        start += f" + {offset}" if offset else ""
        words.append(f"{producer.axes[axis].name} from {start or 0}, {extent} long")
    dims = _dims(scheduled, [*source.kept.values()])
    words += [f"kept as {dims}"] if dims else []
    return ", ".join([f"{name} in {reader}", *words])


def _dims(scheduled: Scheduled, extents: Sequence[Extent]) -> str:
    """The dimensions of what is kept, "" where it is one number."""
    words = [extent_text(scheduled.shaped.sizes, extent) for extent in extents]
    return f"[{', '.join(words)}]" if words else ""


def _opened(scheduled: Scheduled, group: Group, opened: Opened) -> str:
    """A loop of a kernel: its name, and whose it is."""
    value = group.plan.instances[opened.instance].value
    return f"{loop_text(scheduled.assigned(value)[0], opened.loop)} of {_name(scheduled, value)}"


def _parts(scheduled: Scheduled, instance: Instance, parts: Parts) -> str:
    """The reduction that goes in parts: ``out in parts of k, added by one thread for each element``."""
    node, name = scheduled.assigned(instance.value)[0], _name(scheduled, instance.value)
    loops = " ".join(loop_text(node, loop) for loop in parts.loops)
    adder = "all threads of a block" if parts.threads else "one thread"
    each = f"one for each {loops}"
    if parts.least:
        each = f"each of {parts.least} {loops} or more, as many as give {parts.most} blocks"
    if parts.by_count:
        adder = "one thread, many by all threads of a block,"
        each = each.replace("blocks", "threads")
    return f"{name} in parts, {each}, combined by {adder} for each element"


def _accumulation(scheduled: Scheduled, instance: Instance, held: Accumulation) -> str:
    """The manner in which a reduction folds: ``out in a register tile i' j' of 6 x 64, over k', blocks of k``."""
    node, _ = scheduled.assigned(instance.value)
    name = _name(scheduled, instance.value)

    def spelled(loops: tuple[Loop, ...]) -> str:
        return " ".join(loop_text(node, loop) for loop in loops)

    match held:
        case Chunks():
            chunks = (
                f"{name} in chunks of {spelled((held.loop,))}, of {held.work} terms or more, "
                f"{held.most} at most"
            )
            if held.around:
                chunks += f", around {spelled(held.around)} where there are several"
            if held.each is None:
                return chunks
            return f"{chunks}; of each {_accumulation(scheduled, instance, held.each)}"
        case RegisterTile():
            shape = " x ".join(map(str, held.extents))
            words = [f"{name} in a register tile {spelled(held.elements)} of {shape} {held.dtype}"]
            words += [f"over {spelled(held.core)}"]
            words += [f"blocks of {spelled(held.blocks)}"] if held.blocks else []
            words += [f"inside {spelled(held.outer)}"] if held.outer else []
            words += (
                [f"partial sums of {held.partial.step} at depth {held.partial.depth}"]
                if held.partial
                else []
            )
            words += ["kept there"] if held.kept else []
            parts = ", ".join(f"{part.rows[0]} x {part.lanes}" for part in held.micro_tiles)
            words += [f"vectors of {held.vector}: {parts} at a time"] if parts else []
            return ", ".join(words)
        case PartialSums():
            return f"{name} in partial sums over {spelled(held.core)}, in {held.dtype}"
        case ThreadTile():
            words = [f"{name} in runs over {spelled(held.core)}, in {held.dtype}"]
            words += [f"added over {spelled(held.runs)}"] if held.runs else []
            words += [f"{held.most} at a time at most"] if held.most else []
            words += [f"{spelled(held.elements)} at a time"] if held.elements else []
            return ", ".join(words)
        case _:
            assert_never(held)


def _shared(producer: Assignment, inner: Nest, node: Assignment, loops: Mapping[Loop, Loop]) -> str:
    """Loops that are those of a reader, ``p as i`` where it calls them otherwise."""
    words = []
    for loop in inner.order:
        if loop in loops:
            inner_text, outer = loop_text(producer, loop), loop_text(node, loops[loop])
            words.append(inner_text if inner_text == outer else f"{inner_text} as {outer}")
    return " ".join(words)


def _online(
    scheduled: Scheduled, instances: tuple[Instance, ...], number: int, online: OnlineReduction
) -> str:
    """A reduction of a plan: ``out online, corrected by m where 0 <= i-n, divided by s``."""

    def named(instance: int) -> str:
        return _name(scheduled, instances[instance].value)

    def linked(link: Link, summed: int) -> str:
        return named(link.instance) + _where(scheduled, instances[summed].value, link.live)

    outer = online.outer
    node, _ = scheduled.assigned(instances[outer.instance].value)
    words = [
        f"{named(number)} online, over {loop_text(node, outer.loop)} of {named(outer.instance)}"
    ]
    words += ["read while partial"] if online.partial else []
    quotients = _where(scheduled, instances[number].value, online.divided)
    for says, links in (("corrected by", online.shifts), ("divided by", online.divisors)):
        words += [f"{says} {' '.join(linked(link, number) for link in links)}"] if links else []
    words += [f"quotients{quotients}"] if quotients else []
    scaled = " ".join(linked(link, link.instance) for link in online.scales)
    return ", ".join([*words, *([f"scales {scaled}"] if scaled else [])])


def _where(scheduled: Scheduled, value: int, guards: Sequence[Within]) -> str:
    """Conditions on the axes of an assignment: `` where 0 <= i-j``; nothing where there are none."""
    node, _ = scheduled.assigned(value)
    sizes = scheduled.shaped.sizes
    text = guards_text(guards, lambda n: node.axes[n].name, lambda n: size_text(sizes[n]))
    return f" where {text}" if guards else ""


def _name(scheduled: Scheduled, value: int) -> str:
    return scheduled.shaped.tensors[value].name
