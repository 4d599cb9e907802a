"""Invariants of ``ir/nest.py``."""

from __future__ import annotations

from ilang.core.diagnostic import InternalError
from ilang.core.ir.nest import Loop, Nest, Scheduled
from ilang.core.ir.shaped import Assignment


def verify(scheduled: Scheduled) -> None:
    """Raise an InternalError (E9904) naming the first invariant that does not hold."""
    for value, node in enumerate(scheduled.shaped.nodes):
        nest = scheduled.nests[value]
        _demand(
            (nest is None) != isinstance(node, Assignment),
            "assignments have nests, inputs none",
            value,
        )
        if isinstance(node, Assignment) and nest is not None:
            _nest(node, nest, value)


def _nest(node: Assignment, nest: Nest, value: int) -> None:
    _demand(len(nest.factors) == len(node.axes), "factors, or none, per axis", value)
    loops = {
        Loop(axis, part)
        for axis, factors in enumerate(nest.factors)
        for part in range(len(factors) + 1)
    }
    once = len(nest.order) == len(loops) and set(nest.order) == loops
    _demand(once, "the order names every loop part once", value)
    _demand(len(nest.sites) == len(node.reads), "a site, or None, per read", value)
    inside = all(site is None or 0 <= site <= len(nest.order) for site in nest.sites)
    _demand(inside, "a site is inside some of the loops", value)
    _demand(
        not nest.roles or len(nest.roles) == len(nest.order), "a role, or none, per loop", value
    )
    _demand(not nest.spaces or len(nest.spaces) == len(node.reads), "a space per read", value)


def _demand(holds: bool, invariant: str, value: int) -> None:
    if not holds:
        raise InternalError("E9904", f"loop nests, node {value}: {invariant}")
