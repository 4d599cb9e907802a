"""Give every assignment its loop nest.

Example:
    in:   t1 = mul in0[i,k] in1[k,j];  out = sum t1[i,j,k] over k
    out:  t1 || i k j      out || i k j 0

Schedules that a person wrote are parsed, checked and kept with the program; until their effect is built the nests
of ``schedule/auto.py`` run, and ``explain`` says so.
"""

from __future__ import annotations

from ilang.core.ir.nest import Scheduled
from ilang.core.ir.shaped import Shaped
from ilang.core.schedule.auto import choose


def shaped_to_nest(shaped: Shaped) -> Scheduled:
    """The program with a nest per assignment."""
    return Scheduled(shaped, choose(shaped))
