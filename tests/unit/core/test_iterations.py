"""Iterations of each thread of a block, and how many of them are in flight at a time."""

from __future__ import annotations

from math import prod

import pytest

from ilang.core import pipeline
from ilang.core.check.gpu import verify
from ilang.core.diagnostic import InternalError
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import Program, Statement, map_statements, statements_within
from ilang.core.ir.rewriting import with_bodies
from ilang.core.machine import GPU
from ilang.core.notation.files.module import parse_module
from ilang.core.record import replace
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
    [("f(a[64,64], b[64,64]) = ik*kj~ijk >> +ijk~ij", {1, 2}), ("f(x[8,4096]) = +ij~i", {16})],
)
def test_turns_are_as_many_as_iterations_need(text: str, wanted: set[int]) -> None:
    program = lowered(text)
    known = [(s, s.iterations) for s in over_threads(program) if s.iterations is not None]
    assert {iterations for _, iterations in known} == wanted
    for s, iterations in known:
        count = prod(program.sizes[loop.size].fixed or 0 for loop in s.loops)
        assert (iterations - 1) * s.threads < max(1, count) <= iterations * s.threads
        if s.in_flight is not None:
            assert GPU.device is not None
            assert s.in_flight == GPU.device.loads
            assert 1 < iterations or s.vectors is not None


def test_turns_of_unknown_iterations_are_not_known() -> None:
    spreads = over_threads(lowered("f(x) = +ij~i"))
    assert spreads
    assert all(s.iterations is None and s.in_flight is None for s in spreads)


def test_too_few_turns_are_refused() -> None:
    program = lowered("f(a[64,64], b[64,64]) = ik*kj~ijk >> +ijk~ij")

    def fewer(s: Statement) -> Statement:
        return replace(s, iterations=0) if isinstance(s, ThreadLoop) and s.iterations else s

    broken = with_bodies(program, lambda kernel: map_statements(kernel.body, fewer))
    with pytest.raises(InternalError, match="threads have iterations for all"):
        verify(broken)
