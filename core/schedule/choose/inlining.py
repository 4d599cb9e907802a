"""Readers of each value, and values computed in their reader's innermost loop: rules 1 and 2 of the choice.

Example:
    in:   t = -in0[i];  out = t[i] * t2[i]      t2 is an output too
    out:  sole reader of t: out, at [i];  t is inlined, t2 is not
"""

from __future__ import annotations

from collections.abc import Collection

from ilang.core.ir.assignments import all_reads
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.record import record
from ilang.core.schedule.fuse import mapping


@record
class Inlining:
    """Per value: every read of it, the one read by which it can be staged, and whether it is inlined there.

    ``kept`` are the values that are stored whole in any case.
    """

    all_reads: tuple[tuple[tuple[int, Read], ...], ...]
    kept: frozenset[int]
    sole: tuple[tuple[Assignment, Read] | None, ...]
    inlined: tuple[bool, ...]


def inlining(shaped: Shaped, stored: Collection[int] = (), scalars: bool = False) -> Inlining:
    """The readers of every value of a program, and the values that are inlined; none that is to be ``stored``.

    With ``scalars``, a value of rank 0 is inlined, too, although each iteration computes it again: on a GPU that takes
    less than a kernel.
    """
    reads, kept = all_reads(shaped)
    kept |= {*stored}
    sole = [  # the one assignment and index that read a value (rule 1)
        (shaped.assignment(each[0][0]), each[0][1])
        if len(each) == 1 and value not in kept
        else None
        for value, each in enumerate(reads)
    ]
    inlined: list[bool] = []
    gathering: set[int] = set()
    for value in range(len(shaped.nodes)):
        gathers = _gathers(shaped, value, gathering)
        inlined.append(_is_inlined(shaped, value, sole[value], gathers, scalars))
        gathering |= {value} if gathers and inlined[-1] else set()
    return Inlining(
        tuple(tuple(each) for each in reads), frozenset(kept), tuple(sole), tuple(inlined)
    )


def _gathers(shaped: Shaped, value: int, gathering: set[int]) -> bool:
    """Whether a value reads at indices that are looked up: itself, or by what is computed in its innermost loop."""
    node = shaped.nodes[value]
    return isinstance(node, Assignment) and any(
        read.value in gathering or any(index.looked for index in read.index) for read in node.reads
    )


def _is_inlined(
    shaped: Shaped, value: int, sole: tuple[Assignment, Read] | None, gathers: bool, scalars: bool
) -> bool:
    """Rule 2: pointwise, and its reader's index has every axis of the reader.

    A gather is inlined where its reader is pointwise, too: a tile reads it again and again.
    """
    node = shaped.nodes[value]
    if not isinstance(node, Assignment) or node.acc is not None or sole is None:
        return False
    reader, read = sole
    if any(index.looked for index in read.index) or (gathers and reader.acc is not None):
        return False
    if scalars and not node.axes and not gathers:
        return True
    renamed = mapping(node, read)
    return len(renamed) == len(node.output_axes()) and len(set(renamed.values())) == len(
        reader.axes
    )
