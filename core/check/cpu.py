"""Invariants of ``ir/cpu.py``: that what a target is told agrees with the loops that say what it means."""

from __future__ import annotations

from collections.abc import Callable

from ilang.core.ir.affine import Affine
from ilang.core.ir.cpu import Product, Strided, Transpose, Trips
from ilang.core.ir.kernel import For, Program, Store
from ilang.core.ir.scalar import Load
from ilang.core.passes.rewriting import step_of

Demand = Callable[[bool, str], None]
"""What raises the error of an invariant that does not hold."""


def transpose(program: Program, s: Transpose, demand: Demand) -> None:
    """A copy in squares: two loops around a store of one element, each along one of the buffers."""
    columns = s.loops
    rows = columns.body[0] if len(columns.body) == 1 else None
    store = rows.body[0] if isinstance(rows, For) and len(rows.body) == 1 else None
    demand(isinstance(store, Store), "a transposing copy is two loops around a store")
    assert isinstance(rows, For)
    assert isinstance(store, Store)
    load = store.value
    demand(isinstance(load, Load), "a transposing copy stores what it loads")
    assert isinstance(load, Load)
    demand(store.buffer != load.buffer, "a transposing copy does not read what it writes")
    demand(load.dtype == s.dtype, "a transposing copy has the type of what it loads")
    demand(
        (s.columns, s.rows) == (Trips(columns.size, columns.rest), Trips(rows.size, rows.rest)),
        "a transposing copy counts as its loops do",
    )
    for at, buffer, index, along, across in (
        (s.target, store.buffer, store.index, rows, columns),
        (s.source, load.buffer, load.index, columns, rows),
    ):
        steps = [step_of(part, along.variable) for part in index]
        demand(
            [*steps] == [0] * (len(index) - 1) + [1], "a transposing copy runs along both buffers"
        )
        demand(
            at == _strided(program, buffer, index, across, along),
            "a transposing copy starts and steps as its loops do",
        )


def _strided(
    program: Program, buffer: int, index: tuple[Affine, ...], across: For, along: For
) -> Strided:
    """The first element of two loops in a buffer, and what an iteration of the one across adds to it."""
    own = (across.variable, along.variable)
    first = tuple(
        Affine(tuple(t for t in x.terms if t[1] not in own), x.offset, x.window, x.sizes)
        for x in index
    )
    steps = [(step_of(part, across.variable), d) for d, part in enumerate(index)]
    dims = program.buffers[buffer].dims
    return Strided(buffer, first, tuple(Product(n, dims[d + 1 :]) for n, d in steps if n))
