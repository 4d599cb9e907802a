"""Loop nests: for every assignment its loops, their order and roles, and where its operands' producers are computed.

Produced by ``passes/shaped_to_nest.py`` (by a person's schedule or by ``schedule/auto.py``: the same value either
way), consumed by ``passes/nest_to_kernel.py``.

An axis of extent n with the factors f1 .. fm has the loops part 0 (ceil(n / (f1 ... fm)) iterations), part 1 (f1), ...,
part m (fm); its index is the sum of part times weight, the weight of a part being the product of the factors after it.

Invariants:
    - ``order`` names every loop part of every axis exactly once, outermost first.
    - ``sites[n]`` is the number of loops outside the place where the producer of read n is computed (0: the start of
      the kernel), or None: then it is computed whole, in a kernel of its own, before. A site on a read of an input, or
      of what has the space ``c``, places a copy of what is read below.
    - ``start`` is the number of loops outside the written start of a reduction, or None.
    - ``roles`` has a role or "" per loop of the order, ``spaces`` one or "" per read.
"""

from __future__ import annotations

from math import prod

from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import Machine
from ilang.core.record import record


@record
class Loop:
    """Part ``part`` of an axis: 0 is the outermost."""

    axis: int
    part: int = 0


@record
class Nest:
    """The schedule of one assignment; ``written`` where a person wrote its order."""

    factors: tuple[tuple[int, ...], ...]
    order: tuple[Loop, ...]
    sites: tuple[int | None, ...]
    start: int | None = None
    roles: tuple[str, ...] = ()
    spaces: tuple[str, ...] = ()
    written: bool = False

    def weight(self, loop: Loop) -> int:
        """What one iteration of a loop adds to the index of its axis."""
        return prod(self.factors[loop.axis][loop.part :])

    def parts(self, axis: int) -> tuple[Loop, ...]:
        """The loops of an axis, outermost part first."""
        return tuple(Loop(axis, part) for part in range(len(self.factors[axis]) + 1))

    def role(self, position: int) -> str:
        """The role of the loop at a position of the order, or ""."""
        return self.roles[position] if self.roles else ""

    def staged(self, read: int) -> int | None:
        """The site at which the producer of a read is computed; None where it is computed whole, before.

        The role ``c`` of a staged input computes it whole, and copies at the site what the loops below read.
        """
        return None if self.space(read) == "c" else self.sites[read]

    def space(self, read: int) -> str:
        """The role of a staged read, or ""."""
        return self.spaces[read] if self.spaces else ""


@record
class Scheduled:
    """A shaped program with a nest per assignment, for a machine; None for inputs."""

    shaped: Shaped
    nests: tuple[Nest | None, ...]
    machine: Machine


def loop_text(node: Assignment, loop: Loop) -> str:
    """A loop as it is written: the axis with a prime per part."""
    return node.axes[loop.axis].name + "'" * loop.part


def schedule_text(node: Assignment, nest: Nest) -> str:
    """The nest in the notation of schedules: ``| i:8 | i k i' j 0 | i:p``."""
    words = []
    for depth in range(len(nest.order) + 1):
        words += [str(node.operand(n)) for n, site in enumerate(nest.sites) if site == depth]
        words += ["!"] if nest.start == depth else []
        if depth < len(nest.order):
            words.append(loop_text(node, nest.order[depth]))
    splits = ",".join(
        ":".join([node.axes[axis].name, *map(str, factors)])
        for axis, factors in enumerate(nest.factors)
        if factors
    )
    roles = [
        f"{loop_text(node, loop)}:{role}"
        for loop, role in zip(nest.order, nest.roles, strict=False)
        if role
    ]
    roles += [f"{node.operand(n)}:{space}" for n, space in enumerate(nest.spaces) if space]
    text = (f"| {splits} | " if splits else "|| ") + " ".join(words)
    return f"{text} | {','.join(roles)}" if roles else text.rstrip()


def unscheduled(node: Assignment) -> str:
    """The text of an expression without its schedule."""
    if node.schedule is None:
        return node.text
    if node.text.startswith("einsum("):
        return node.text[: node.text.index('")') + 2]
    form, _, rest = node.text.partition("~")
    return f"{form}~{rest.partition('|')[0].rstrip()}"
