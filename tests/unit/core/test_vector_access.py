"""Which iterations a worker of a GPU has several at a time, and what is left after them."""

from __future__ import annotations

import pytest

from ilang.codegen.targets import cuda
from ilang.core import pipeline
from ilang.core.check.gpu import verify
from ilang.core.diagnostic import InternalError
from ilang.core.ir.gpu import ThreadLoop, VectorAccess
from ilang.core.ir.kernel import Program, Statement, map_statements, statements_within
from ilang.core.ir.rewriting import with_bodies
from ilang.core.machine import GPU
from ilang.core.record import replace


def lowered(text: str, shape: tuple[int, ...] | None) -> Program:
    shapes = None if shape is None else [shape]
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    return pipeline.lower(pipeline.infer(graph, shapes=shapes), GPU)


def vectors_of(program: Program) -> VectorAccess:
    """The neighbors of the one spread that has some."""
    inside = (s for kernel in program.kernels for s in statements_within(kernel.body))
    (vectors,) = [s.vectors for s in inside if isinstance(s, ThreadLoop) and s.vectors]
    return vectors


@pytest.mark.parametrize(
    ("text", "shape", "leaves"),
    [
        ("^i~i", None, True),
        ("^i~i", (4096,), False),
        ("^i~i", (4097,), True),
        ("^ij~ij", None, True),
        ("ij+j~ij", None, False),  # rows that are no vectors go one by one from the first element
    ],
)
def test_a_loop_leaves_what_is_no_group(
    text: str, shape: tuple[int, ...] | None, leaves: bool
) -> None:
    program = lowered(text, shape)
    assert vectors_of(program).count == 4
    assert ("start_" in cuda.emit(program)) == leaves


@pytest.mark.parametrize(("changes", "message"), [({"moved": ()}, "all that moves is vectors")])
def test_what_is_wrong_about_neighbors_is_told(changes: dict[str, object], message: str) -> None:
    program = lowered("^i~i", None)

    def other(s: Statement) -> Statement:
        if not isinstance(s, ThreadLoop) or s.vectors is None:
            return s
        return replace(s, vectors=replace(s.vectors, **changes))

    verify(program)
    with pytest.raises(InternalError, match=message):
        verify(with_bodies(program, lambda kernel: map_statements(kernel.body, other)))


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("(I & I) >> i*(0)[i<2]~i", None),  # an element that is read beside the one that moves
        ("(I & I) >> i*(0)[i<2]~i", [(8,)]),
        ("mn>.~mn | n:16,m:2 |", [(8, 0), ()]),  # rows without elements
    ],
)
def test_what_moves_is_what_is_checked(text: str, shapes: list[tuple[int, ...]] | None) -> None:
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    verify(pipeline.lower(pipeline.infer(graph, shapes=shapes), GPU))
