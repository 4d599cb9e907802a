"""Loop nests: for every assignment the order of its loops and where its operands' producers are computed.

Produced by ``passes/shaped_to_nest.py`` (by a person's schedule or by ``schedule/auto.py``: the same value either
way), consumed by ``passes/nest_to_kernel.py``.

Invariants:
    - ``order`` names every axis of the assignment exactly once, outermost first.
    - ``sites[n]`` is the number of loops outside the place where the producer of read n is computed, or None: then
      it is computed whole, in a kernel of its own, before. Reads of inputs have None.
    - A staged value has no reader but the one that stages it, and is no output.
    - The loops outside a site are over axes that index the staged value: nothing is computed twice.
"""

from __future__ import annotations

from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.record import record


@record
class Nest:
    """The schedule of one assignment."""

    order: tuple[int, ...]
    sites: tuple[int | None, ...]


@record
class Scheduled:
    """A shaped program with a nest per assignment; None for inputs."""

    shaped: Shaped
    nests: tuple[Nest | None, ...]


def schedule_text(node: Assignment, nest: Nest) -> str:
    """The nest in the notation of schedules: ``|| i k j 0``."""
    words = []
    for depth in range(len(nest.order) + 1):
        words += [str(number) for number, site in enumerate(nest.sites) if site == depth]
        if depth < len(nest.order):
            words.append(node.axes[nest.order[depth]].name)
    return ("|| " + " ".join(words)).rstrip()
