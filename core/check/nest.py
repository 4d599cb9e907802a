"""Invariants of ``ir/nest.py``."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.diagnostic import InternalError
from ilang.core.ir.nest import Nest, Scheduled
from ilang.core.ir.shaped import Assignment
from ilang.core.schedule.auto import mapping, sole_readers


def verify(scheduled: Scheduled) -> None:
    """Raise an InternalError (E9904) naming the first invariant that does not hold."""
    readers = sole_readers(scheduled.shaped)
    for value, node in enumerate(scheduled.shaped.nodes):
        nest = scheduled.nests[value]
        _demand(
            (nest is None) != isinstance(node, Assignment),
            "assignments have nests, inputs none",
            value,
        )
        if isinstance(node, Assignment) and nest is not None:
            _demand(
                sorted(nest.order) == list(range(len(node.axes))),
                "the order names every axis once",
                value,
            )
            _demand(len(nest.sites) == len(node.reads), "a site, or None, per read", value)
            _sites(scheduled, value, node, nest, readers)


def _sites(
    scheduled: Scheduled,
    value: int,
    node: Assignment,
    nest: Nest,
    readers: Sequence[object],
) -> None:
    for read, site in zip(node.reads, nest.sites, strict=True):
        if site is None:
            continue
        made, its_nest = scheduled.shaped.nodes[read.value], scheduled.nests[read.value]
        _demand(
            isinstance(made, Assignment) and readers[read.value] is not None,
            "one reader stages a value",
            value,
        )
        assert isinstance(made, Assignment)
        assert its_nest is not None
        back = mapping(made, read)
        outer = nest.order[:site]
        _demand(
            set(outer) <= set(back.values()), "loops outside a site index the staged value", value
        )
        shared = [back[axis] for axis in its_nest.order if back.get(axis) in outer]
        _demand(tuple(dict.fromkeys(shared)) == outer, "shared loops keep their order", value)
        leading = its_nest.order[: len(shared)]
        _demand(
            all(back.get(axis) in outer for axis in leading), "shared loops are outermost", value
        )


def _demand(holds: bool, invariant: str, value: int) -> None:
    if not holds:
        raise InternalError("E9904", f"loop nests, node {value}: {invariant}")
