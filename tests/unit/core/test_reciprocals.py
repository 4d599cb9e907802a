"""Loops that divide by one number: which do not, from how many iterations on, and what the verifier refuses."""

from __future__ import annotations

import pytest

from ilang.core import pipeline
from ilang.core.check import kernel as check
from ilang.core.diagnostic import InternalError
from ilang.core.ir.kernel import (
    For,
    Program,
    Statement,
    Store,
    Unrolled,
    map_statements,
    statements_within,
)
from ilang.core.ir.scalar import Apply, Load
from ilang.core.machine import CPU
from ilang.core.record import replace

ROWS = "(I & >ij~i) >> ij/i~ij"


def program_of(
    text: str, dtypes: list[str | None] | None = None, shapes: list[tuple[int, ...]] | None = None
) -> Program:
    graph = pipeline.graph_of(pipeline.text_component(text), "program")
    return pipeline.lower(pipeline.infer(graph, dtypes, shapes=shapes))


def quotients_of(program: Program) -> list[Apply]:
    inside = (s for kernel in program.kernels for s in statements_within(kernel.body))
    return [s.version for s in inside if isinstance(s, For) and isinstance(s.version, Apply)]


@pytest.mark.parametrize(
    ("text", "dtypes", "shapes"),
    [
        ("ij/ij~ij", None, None),  # each element has a divisor of its own
        ("i/ij~ij", None, None),  # one number is divided by all of a row
        ("ij/i~ij | i:4 | i j i'", None, [(64, 8), (64,)]),  # ends before a product costs less
        (ROWS, ["f64"], None),  # no product is corrected in f64
        ("(x+u:3-1)/x~xu", None, None),  # reads under a condition
    ],
)
def test_no_other_loop_is_marked(
    text: str, dtypes: list[str | None] | None, shapes: list[tuple[int, ...]] | None
) -> None:
    assert quotients_of(program_of(text, dtypes, shapes)) == []


def test_the_shortest_loop_is_of_the_machine() -> None:
    graph = pipeline.graph_of(pipeline.text_component(ROWS), "program")
    shaped = pipeline.infer(graph, shapes=[(100, 100)])
    for least, count in ((100, 1), (101, 0)):
        program = pipeline.lower(shaped, replace(CPU, divided_iterations=least))
        assert len(quotients_of(program)) == count


def changed(program: Program, **fields: object) -> Program:
    """The program whose marked loop says something else."""
    (kernel,) = program.kernels
    body = map_statements(
        kernel.body,
        lambda s: (
            replace(s, **fields) if isinstance(s, For) and isinstance(s.version, Apply) else s
        ),
    )
    return replace(program, kernels=(replace(kernel, body=body),))


def test_a_loop_that_divides_otherwise_is_refused() -> None:
    program = program_of(ROWS)
    (division,) = quotients_of(program)
    number, divisor = division.arguments
    assert isinstance(number, Load)
    turned = replace(division, arguments=(divisor, number))
    with pytest.raises(InternalError, match="divides by one number divides once"):
        check.verify(changed(program, version=turned))
    with pytest.raises(InternalError, match="divides by one number runs as it stands"):
        check.verify(changed(program, manner=Unrolled(4)))


def serial(s: Statement) -> Statement:
    return replace(s, manner=None) if isinstance(s, For) else s


def test_a_divisor_that_changes_is_refused() -> None:
    program = program_of("ij/ij~ij")
    (kernel,) = program.kernels
    kernel = replace(kernel, body=map_statements(kernel.body, serial))

    def marked(s: Statement) -> Statement:
        store = s.body[-1] if isinstance(s, For) else None
        return replace(s, version=store.value) if isinstance(store, Store) else s

    body = map_statements(kernel.body, marked)
    with pytest.raises(InternalError, match="all iterations share a divisor"):
        check.verify(replace(program, kernels=(replace(kernel, body=body),)))
