"""Axes that are collapsed before schedules are chosen, where nobody wrote another schedule than the one without that.

Example:
    in:   +ij~. || i j      what is chosen for the axes as they are written
    out:  +ij~. over ij     what is chosen for one long axis instead

What a person wrote is followed, so its axes stay; but the schedule that is chosen for axes as they are written is the
one that is printed, and says nothing when it is written back. A program whose kernels compute matrices again keeps its
axes: it is printed as a definition.
"""

from __future__ import annotations

from ilang.core.ir.known_extents import extents_of
from ilang.core.ir.schedule import schedule_text
from ilang.core.ir.shaped import Assignment, Input, Shaped
from ilang.core.machine import Machine
from ilang.core.record import replace
from ilang.core.schedule.choose.inlining import inlining
from ilang.core.schedule.shaped_to_schedule import computes_again, shaped_to_schedule
from ilang.core.schedule.written import written_nest


def shaped_to_collapsed(shaped: Shaped, machine: Machine) -> Shaped:
    """The program over fewer axes; itself where that is the same.

    Args:
        shaped: the program.
        machine: what it is for.
    """
    if all(len(node.axes) < 2 for node in shaped.nodes if not isinstance(node, Input)):
        return shaped
    from ilang.core.transform.collapsed import collapsed_axes
    from ilang.core.transform.distributed import distributed_functions
    from ilang.core.transform.grouped_rows import grouped_rows
    from ilang.core.transform.layouts import with_long_rows
    from ilang.core.transform.masked import masked_operands
    from ilang.core.transform.padded import padded_windows
    from ilang.core.transform.repeated import repeated_functions
    from ilang.core.transform.scans import scans_reduced
    from ilang.core.transform.scattered import summed_before

    extents = extents_of(shaped, machine)

    def changed(program: Shaped) -> Shaped:
        is_tiled = (
            machine.device is None
        )  # blocks of a GPU leave out the tiles in which no guard holds
        if is_tiled:
            program = distributed_functions(scans_reduced(program))
            program = repeated_functions(program, extents_of(program, machine))
            unstored = inlining(program).inlined
            program = with_long_rows(program, machine.vector_lanes("f32"), unstored)
            program = masked_operands(program, extents_of(program, machine))
            program = padded_windows(program, extents_of(program, machine), machine)
            program = summed_before(program, extents_of(program, machine))
        collapsed = collapsed_axes(program, extents_of(program, machine), machine)
        return grouped_rows(collapsed, machine) if is_tiled else collapsed

    bare = _unwritten(shaped)
    collapsed = changed(bare)
    if collapsed is bare or computes_again(bare, extents, machine):
        return shaped
    if bare is shaped or _is_chosen(shaped, bare, machine):
        return collapsed
    return changed(shaped)


def _unwritten(shaped: Shaped) -> Shaped:
    nodes = tuple(
        replace(node, schedule=None)
        if isinstance(node, Assignment) and node.schedule is not None
        else node
        for node in shaped.nodes
    )
    return shaped if nodes == shaped.nodes else replace(shaped, nodes=nodes)


def _is_chosen(shaped: Shaped, bare: Shaped, machine: Machine) -> bool:
    """Whether every schedule that is written is what is chosen without any."""
    chosen = shaped_to_schedule(bare, machine).nests
    for node, nest in zip(shaped.nodes, chosen, strict=True):
        written = written_nest(node) if isinstance(node, Assignment) else None
        if written is None:
            continue
        assert isinstance(node, Assignment)
        if nest is None or schedule_text(node, written) != schedule_text(node, nest):
            return False
    return True
