"""Threads of a block wait for each other where they meet, and nowhere else."""

from collections.abc import Iterator

import pytest

from bench.gpu_rows import QUICK, text_of
from ilang.core.ir.gpu import Barrier, ThreadLoop
from ilang.core.ir.kernel import Block, For, If, Program, blocks_of
from ilang.core.machine import GPU
from ilang.core.notation.files.module import parse_module
from ilang.core.pipeline import infer, lower, module_graph
from ilang.core.source import Source


def barriers(body: Block) -> int:
    """How often a thread waits where every loop runs once and every condition holds."""
    count = 0
    for s in body:
        inside = s.body if isinstance(s, (For, If, ThreadLoop)) else ()
        count += isinstance(s, Barrier) or barriers(inside)
    return count


def loops(body: Block) -> Iterator[For]:
    """All loops of a block that threads go through together."""
    for s in body:
        if isinstance(s, For):
            yield s
        yield from (loop for block in blocks_of(s) for loop in loops(block))


def program_of(name: str) -> Program:
    """The program of a row of the benchmarks."""
    (row,) = (row for row in QUICK if row.workload.name == name)
    source = Source("f.i", text_of(row))
    return lower(infer(module_graph(parse_module(source), row.workload.program)), GPU)


@pytest.mark.parametrize(("name", "most"), [("attention 2 x 9", 6), ("causal 2 x 9", 6)])
def test_what_one_thread_has_of_a_row_is_not_waited_for(name: str, most: int) -> None:
    """A row's maximum, the factor by which it changes, and the sum that is corrected are of one thread."""
    (kernel,) = program_of(name).kernels
    (spread,) = kernel.body
    assert isinstance(spread, ThreadLoop)
    tiles = max((barriers(loop.body) for loop in loops(spread.body)), default=0)
    assert 0 < tiles <= most
