"""Choose everything that the loops of a program rest on: nests, fused loops, fusion groups, online reductions.

A nest that a person wrote and one that ``choose`` gives give the same value by the same functions; lowering follows
it and chooses nothing.

Example:
    in:   t1 = in0[i,k] * in1[k,j];  out = sum t1[i,j,k] over k
    out:  t1 || i k j      out || i k j 0      k0: out;  t1 shares i k j with out
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.known_extents import Extents, extents_of
from ilang.core.ir.schedule import Group, Nest, Plan, Root, Scheduled, has_units
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import CPU, Machine
from ilang.core.record import replace
from ilang.core.schedule.accumulation import accumulated, copies
from ilang.core.schedule.check.legal import check_equalities, check_nests, check_storage
from ilang.core.schedule.choose.choice import choose
from ilang.core.schedule.choose.nests import Choice
from ilang.core.schedule.fuse import Provenance, nested
from ilang.core.schedule.groups import completed
from ilang.core.schedule.matrices.apart import computed_apart
from ilang.core.schedule.plans import Plans
from ilang.core.schedule.symmetric import mirror
from ilang.core.schedule.written import without_blocks, written_nest

_Chosen = tuple[Shaped, Choice, bool]
"""A program, what is chosen for it, and whether it has matrices of each kernel's own that its text has not."""


def priced_schedule(shaped: Shaped, machine: Machine = CPU) -> Scheduled:
    """The schedule of a program in which values are computed once, or again for each reader, by price (``places.py``).

    Arguments and errors are those of ``shaped_to_schedule``, which takes the program as it is.
    """
    chosen = _chosen(shaped, machine)
    _, choice, is_apart = chosen
    if machine.core is not None and not is_apart:
        from ilang.core.schedule.places import computed_again

        extents = extents_of(shaped, machine)
        program = computed_again(shaped, extents, machine, choice.nests)
        chosen = chosen if program is shaped else _chosen(program, machine)
    return _scheduled(chosen, machine)


def shaped_to_schedule(shaped: Shaped, machine: Machine = CPU) -> Scheduled:
    """The program with its schedule for a machine.

    Args:
        shaped: the program.
        machine: what it is for.

    Raises:
        ScheduleError: E0320 to E0334.
        MeaningError: E0251.
    """
    return _scheduled(_chosen(shaped, machine), machine)


def _chosen(shaped: Shaped, machine: Machine) -> _Chosen:
    """The choice for a program whose written schedules are legal."""
    written = [
        written_nest(node) if isinstance(node, Assignment) else None for node in shaped.nodes
    ]
    if has_units(shaped):
        from ilang.core.schedule.check.units import check_units

        check_units(shaped)
    if machine.device is None:
        check_nests(shaped, written)
        written = [nest if nest is None else without_blocks(nest) for nest in written]
    extents = extents_of(shaped, machine)
    apart = _apart(shaped, written, extents, machine)
    if apart is not None:
        return *apart, apart[0] is not shaped
    choice = choose(shaped, written, Provenance(shaped), extents, machine)
    return shaped, choice, False


def _scheduled(chosen: _Chosen, machine: Machine) -> Scheduled:
    """A program with what its loops rest on, in the nests that are chosen."""
    shaped, choice, is_apart = chosen
    check_nests(shaped, choice.nests)
    program = nested(shaped, choice.nests, choice.kernels.provenance, machine)
    plans = Plans(program)
    roots = completed(choice.kernels, choice.placed, choice.nests, plans)
    groups = tuple(Group(each, _planned(program, plans, each)) for each in roots)
    scheduled = replace(program, groups=groups, is_apart=is_apart)
    check_storage(scheduled)
    if machine.device is not None:
        from ilang.core.schedule.check.device import check_device
        from ilang.core.schedule.check.units import check_loops_of_units

        check_loops_of_units(scheduled, machine.device)
        check_device(scheduled, machine.device)
    check_equalities(shaped, plans.computations.count)
    for group in scheduled.groups:
        for instance, times in zip(group.plan.instances, copies(program, group.plan), strict=True):
            plans.computations.add(instance.value, times - 1)
    return scheduled


def _planned(program: Scheduled, plans: Plans, roots: Sequence[Root]) -> Plan:
    """The plan of a kernel, with the storage of what reductions fold."""
    plan = accumulated(program, plans.of(roots))
    axes = mirror(program, plan) if len(roots) == 1 else None
    return replace(plan, mirror=axes) if axes else plan


def computes_again(shaped: Shaped, extents: Extents, machine: Machine) -> bool:
    """Whether kernels of a program without schedules compute matrices again."""
    apart = _apart(shaped, (None,) * len(shaped.nodes), extents, machine)
    return apart is not None and apart[0] is not shaped


def _apart(
    shaped: Shaped, written: Sequence[Nest | None], extents: Extents, machine: Machine
) -> tuple[Shaped, Choice] | None:
    """The program with matrices of each kernel's own, and what is chosen for it; None where one would be stored.

    A program with a written schedule is computed as it stands; a schedule that is chosen can be written.
    """
    is_written = any(nest is not None for nest in written)
    if is_written and machine.device is None:
        return None
    for apart in computed_apart(shaped, extents, machine):
        is_as_it_is = apart.shaped is shaped
        if is_written and not is_as_it_is:
            continue
        provenance = Provenance(apart.shaped)
        none = (None,) * len(apart.shaped.nodes)
        choice = choose(apart.shaped, none, provenance, extents, machine, apart)
        roots = {root.value for group in choice.kernels.groups for root in group}
        if is_written and not _are_chosen(written, choice):
            continue
        if not roots & apart.matrices and (not is_as_it_is or _runs(choice, shaped, machine)):
            return apart.shaped, choice
    return None


def _are_chosen(written: Sequence[Nest | None], choice: Choice) -> bool:
    from ilang.core.schedule.choose.gpu import is_chosen

    pairs = zip(written, choice.nests, strict=True)
    return all(nest is None or (other and is_chosen(nest, other)) for nest, other in pairs)


def _runs(choice: Choice, shaped: Shaped, machine: Machine) -> bool:
    """Whether what is read while it is partial can be made right."""
    try:
        check_nests(shaped, choice.nests)
        plans = Plans(nested(shaped, choice.nests, choice.kernels.provenance, machine))
        for group in choice.kernels.groups:
            for root in group:
                plans.online(root.value)
    except ScheduleError:
        return False
    return True
