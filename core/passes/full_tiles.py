"""Split full tiles from boundary tiles: a tile that is inside of all dimensions needs no conditions of its elements.

Example, of 64 columns:
    in:   for j1 in 0..min(64, n_j - 64j): out[64j+j1] = t[j1]
    out:  if 0 <= 64j+63 < n_j: for j1 in 0..64: out[64j+j1] = t[j1]
          else:                 for j1 in 0..min(64, n_j - 64j): out[64j+j1] = t[j1]

Lowering splits the loops of a tile that a processor computes, ``gpu/full_tiles.py`` what the threads of a block do.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from ilang.core.calculus.affine import Within
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import VariableId
from ilang.core.ir.shaped import Size

Extents = Mapping[VariableId, int | None]
"""Iterations of the loops that are open inside of a tile; None where unknown."""


def full_test(sizes: Sequence[Size], condition: Within, inner: Extents) -> Within | None:
    """The test that a condition holds for all of a tile, given the loops in it; None where that is no one condition.

    Nor is there one where it never holds: a tile of more elements than the dimension has.
    """
    index = condition.index
    if condition.size is None or index.sizes or index.looked or not index.is_natural():
        return None
    most, extent = index.maximum(inner), sizes[condition.size].fixed
    if most is None or (extent is not None and extent <= most.offset):
        return None
    return Within(most, condition.size)


def split(sizes: Sequence[Size], body: ir.Block, variables: Container[VariableId]) -> ir.Block:
    """A block with a version for full tiles, in which the loops over some variables run to their ends."""
    inner = {loop.variable: sizes[loop.size].fixed for loop in ir.every(body, ir.For)}
    tests: dict[Within, None] = {}

    def to_end(s: ir.Statement) -> ir.Statement:
        if not isinstance(s, ir.For) or s.variable not in variables:
            return s
        asked = [full_test(sizes, end, inner) for end in s.within]
        if None in asked:
            return s
        tests.update((test, None) for test in asked if test is not None)
        return s.whole() if asked else s

    full = ir.map_statements(body, to_end)
    return (ir.If(tuple(tests), full, body),) if tests else body
