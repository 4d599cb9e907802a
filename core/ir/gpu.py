"""Statements of kernels that only a GPU has; ``ir/kernel.py`` has those of every machine.

Invariants of a kernel for a GPU:
    - Its body is one ``Spread`` over the grid or over blocks, and no other one of these is inside.
    - What a worker of a spread writes, no other worker of it reads or writes.
    - A private buffer stands in local memory, or in scratch storage of the thread that owns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ilang.core.record import record

if TYPE_CHECKING:  # a kernel has these statements, and these statements have loops
    from ilang.core.ir.kernel import For, Statement

Over = Literal["grid"]
"""Who shares iterations: all threads of all blocks."""


@record
class Spread:
    """The iterations of ``loops``, outermost first and without bodies, shared out: each is one worker's.

    ``over`` says who the workers are, ``threads`` how many a block has at most. Worker n does iteration n, as the loops
    count them, and every further one as far on as there are workers. An iteration past the ``rest`` of one of the loops
    does nothing.
    """

    loops: tuple[For, ...]
    over: Over
    threads: int
    body: tuple[Statement, ...]
