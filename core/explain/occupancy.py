"""Blocks of kernels on a GPU, as rows of a page."""

from __future__ import annotations

from collections.abc import Mapping

from ilang.core.ir.kernel import Program
from ilang.core.machine import MULTIPROCESSORS
from ilang.core.occupancy import Occupancy, occupancy_of, resources_of

HEADS = ("threads", "registers", "shared bytes", "blocks per SM", "occupancy", "limited by")


def occupancy_rows(
    program: Program, registers: Mapping[str, int] | None = None
) -> tuple[Occupancy, ...]:
    """The blocks of each kernel of a program for a GPU, on the device that schedules aim at; none for a CPU.

    Args:
        program: finished kernels.
        registers: of a thread of each kernel by name, where a compiler was asked.
    """
    device = program.machine.device
    if device is None:
        return ()
    asked = {} if registers is None else registers
    taken = [resources_of(program, each, asked.get(each.name)) for each in program.kernels]
    return tuple(occupancy_of(each, MULTIPROCESSORS[-1], device) for each in taken)


def occupancy_table(rows: tuple[Occupancy, ...]) -> list[tuple[str, ...]]:
    """A row for each kernel, below their heads; nothing where there are none. Guessed registers have a ``~``."""
    return [(f"on {rows[0].device}", *HEADS), *map(_cells, rows)] if rows else []


def _cells(row: Occupancy) -> tuple[str, ...]:
    taken = row.taken
    registers = f"{'~' if taken.guessed else ''}{taken.registers}"
    numbers = (str(taken.threads), registers, f"{taken.shared:,}", str(row.blocks))
    return (taken.kernel, *numbers, f"{row.share:.0%}", row.limit)
