"""Wide matrices computed once for each kernel that walks them, block of rows by block of rows, and never stored.

Example, the way back of attention (``directions.py``), where e = exp(s - m):
    in:   s[i,j] = sum q[i,k] * key[j,k];  m[i] = max s[i,j] over j;  l[i] = sum e[i,j] over j
          dq[i,k] = sum ds[i,j] * key[j,k] over j;  dk[j,k] = sum ds[i,j] * q[i,k] over i
    out:  s[i,j] = ...;  m, l and dq as they were;  m2[i] = m[i];  l2[i] = l[i]
          s2[j,i] = sum q[i,k] * key[j,k];  e2[j,i] = exp(s2[j,i] - m2[i]);  dk[j,k] = sum ds2[j,i] * q[i,k] over i

What one kernel has reduced of its rows is stored for the others: a value of a row, the copies m2 and l2. Matrices of
each kernel are its own, and have the dimension that it goes along before the last, so that a tile of them has rows of
that kernel.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ilang.core.ir.known_extents import Extents
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import Machine
from ilang.core.schedule.choose.accesses import accesses_of
from ilang.core.schedule.choose.inlining import inlining
from ilang.core.schedule.choose.tile import tiling
from ilang.core.schedule.choose.tilings import tilings

if TYPE_CHECKING:  # few programs have matrices to compute again
    from ilang.core.schedule.wide_matrices import Apart


def computed_apart(shaped: Shaped, extents: Extents, machine: Machine) -> list[Apart]:
    """The program with matrices of each kernel's own, or as it is, and one kernel for each set; the best one first.

    None where all matrices may be as they are.

    Args:
        shaped: a program without written schedules.
        extents: of the program.
        machine: what the loops are for.
    """
    if all(node.acc is None for node in shaped.nodes if isinstance(node, Assignment)):
        return []  # nothing is reduced, so nothing is walked along rows
    from ilang.core.schedule.matrices.directions import matrices_of

    readers = inlining(shaped)
    accesses = accesses_of(shaped, readers, machine)
    tiled = tilings(
        shaped,
        (None,) * len(shaped.nodes),
        readers,
        accesses,
        partial(tiling, extents=extents, machine=machine),
    )
    matrices = matrices_of(shaped, readers, tiled, extents, alone=machine.device is not None)
    if not matrices:
        return []
    from ilang.core.schedule.matrices.apart_copies import MatrixCopies, Worth, running

    worth = Worth(shaped, readers, tiled, matrices, machine)
    chosen = [each for n, each in enumerate(matrices) if worth.holds(n)]
    exits = {value for matrices in chosen for value in matrices.exits}
    exits -= {value for matrices in chosen if matrices.alone for value in matrices.exits}
    worked = {
        value: end[0]
        for value, end in enumerate(tiled.ends)
        if end is not None and end[0] in exits - {value}
    }
    if not chosen:
        return []
    ways = [running(shaped, readers, tiled, chosen), MatrixCopies(shaped, chosen, worked).run()]
    return [way for way in ways if way is not None]
