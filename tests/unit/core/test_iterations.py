"""Iterations of each thread of a block, and how many of them are in flight at a time."""

from __future__ import annotations

from math import prod

import pytest

from ilang.core import pipeline
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import Program, statements_within
from ilang.core.machine import GPU
from ilang.core.notation.files.module import parse_module
from ilang.core.occupancy import iterations_of, loads_in_flight
from ilang.core.source import Source


def lowered(text: str) -> Program:
    """The last kernels of the one definition of a text."""
    graph = pipeline.module_graph(parse_module(Source("f.i", text)), "f")
    return pipeline.lower(pipeline.infer(graph), GPU)


def over_threads(program: Program) -> list[ThreadLoop]:
    inside = (s for kernel in program.kernels for s in statements_within(kernel.body))
    return [s for s in inside if isinstance(s, ThreadLoop) and s.over == "threads"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("f(a[64,64], b[64,64]) = ik*kj~ijk >> +ijk~ij", {1, 2}), ("f(x[8,16384]) = +ij~i", {16})],
)
def test_turns_are_as_many_as_iterations_need(text: str, wanted: set[int]) -> None:
    program = lowered(text)
    every = [(s, iterations_of(program, s)) for s in over_threads(program)]
    known = [(s, iterations) for s, iterations in every if iterations is not None]
    assert {iterations for _, iterations in known} == wanted
    for s, iterations in known:
        count = prod(program.sizes[loop.size].fixed or 0 for loop in s.loops)
        assert (iterations - 1) * s.threads < max(1, count) <= iterations * s.threads
        together = loads_in_flight(program, s)
        if together is not None:
            assert GPU.device is not None
            assert together == GPU.device.loads
            assert 1 < iterations or s.vectors is not None


def test_turns_of_unknown_iterations_are_not_known() -> None:
    program = lowered("f(x) = +ij~i")
    spreads = over_threads(program)
    assert spreads
    assert all(iterations_of(program, s) is None for s in spreads)
    assert all(loads_in_flight(program, s) is None for s in spreads)
