"""What a program costs: one count for assignments and for loops, and its sums as formulas."""

from collections.abc import Sequence

import pytest

from ilang.core.cost import Total, Work, of_assignments, of_loop
from ilang.core.ir.kernel import For
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU
from ilang.core.pipeline import graph_of, infer, lower, text_component

PRODUCT = "ik*kj~ijk >> +ijk~ij"


def shaped_of(text: str, shapes: Sequence[tuple[int, ...]] | None = None) -> Shaped:
    return infer(graph_of(text_component(text), "f"), shapes=shapes)


def works_of(text: str, shapes: Sequence[tuple[int, ...]]) -> list[Work]:
    program = lower(shaped_of(text, shapes))
    loops = [s for kernel in program.kernels for s in kernel.body if isinstance(s, For)]
    return [work for loop in loops for work in of_loop(program, loop)]


@pytest.mark.parametrize(
    ("text", "operations", "times"),
    [
        ("-ij~ij", [1], [2.0]),
        ("ij~ji", [0], [2.0]),
        ("ij/i~ij", [1], [3.5]),
        ("+ij~i", [1], [1.0]),
        (PRODUCT, [1, 1], [0.0, 1 / CPU.tiles.gain]),
        ("ik*kj~ijk >> >ijk~ij", [1, 1], [2.0, 1.0]),
    ],
)
def test_assignments(text: str, operations: list[int], times: list[float]) -> None:
    works = of_assignments(shaped_of(text), CPU).values()
    assert [work.operations for work in works] == operations
    assert [work.time for work in works] == times


def test_loops_count_what_assignments_count() -> None:
    shaped = shaped_of("ij+j~ij", [(4, 8), (8,)])
    (assignment,) = of_assignments(shaped, CPU).values()
    (loop,) = works_of("ij+j~ij", [(4, 8), (8,)])
    assert assignment.split(shaped.sizes) == (96.0, ())
    assert loop.split(lower(shaped).sizes) == (96.0, ())


def test_what_an_iteration_does_under_a_condition_counts() -> None:
    text, shapes = "*(2y+u:3-1)~y", [(2000,)]
    (work,) = works_of(text, shapes)
    assert work.split(lower(shaped_of(text, shapes)).sizes) == (3000.0, ())


def test_totals_are_formulas() -> None:
    program = lower(shaped_of(PRODUCT))
    total = Total(program)
    work = of_assignments(shaped_of(PRODUCT), CPU)
    for each in work.values():
        total.add(each.operations, each.sizes)
    total.add(3, ())
    assert total.result() == "2·i·j·k + 3"
    fixed = Total(lower(shaped_of(PRODUCT, [(2, 3), (3, 4)])))
    fixed.add(1, work[2].sizes)
    assert fixed.spelled() == "24"
