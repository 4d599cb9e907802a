"""Blocks of kernels on a GPU, as rows of a page."""

from __future__ import annotations

from collections.abc import Mapping

from ilang.core.ir.kernel import Program
from ilang.core.machine import MULTIPROCESSORS
from ilang.core.occupancy import occupancy_of, resources_of
from ilang.core.record import record

HEADS = ("threads", "registers", "shared bytes", "blocks at a time", "of its threads", "limited by")


@record
class OccupancyRow:
    """A kernel: what a block takes, and how many of them a multiprocessor of a device runs at a time.

    ``share`` is that of the threads which it could run. Registers are a compiler's where it was asked, else guessed.
    """

    kernel: str
    device: str
    threads: int
    registers: int
    asked: bool
    shared: int
    blocks: int
    share: float
    limit: str

    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        registers = f"{'' if self.asked else '~'}{self.registers}"
        numbers = (str(self.threads), registers, f"{self.shared:,}", str(self.blocks))
        return (self.kernel, *numbers, f"{self.share:.0%}", self.limit)


def occupancy_rows(
    program: Program, registers: Mapping[str, int] | None = None
) -> tuple[OccupancyRow, ...]:
    """A row for each kernel of a program for a GPU, on the device that schedules aim at; none for a CPU.

    Args:
        program: finished kernels.
        registers: of a thread of each kernel by name, where a compiler was asked.
    """
    device = program.machine.device
    if device is None:
        return ()
    rows, multiprocessor = [], MULTIPROCESSORS[-1]
    for kernel in program.kernels:
        asked = None if registers is None else registers.get(kernel.name)
        taken = resources_of(program, kernel, asked)
        runs = occupancy_of(taken, multiprocessor, device)
        known = (taken.threads, taken.registers, asked is not None, taken.shared)
        rows.append(
            OccupancyRow(
                kernel.name, multiprocessor.name, *known, runs.blocks, runs.share, runs.limit
            )
        )
    return tuple(rows)


def occupancy_table(rows: tuple[OccupancyRow, ...]) -> list[tuple[str, ...]]:
    """The rows below their heads; nothing where there are none."""
    return [(f"on {rows[0].device}", *HEADS), *(row.cells() for row in rows)] if rows else []
