"""Copies that transpose: which loops become the statement, and what the statement tells a target."""

import pytest

from ilang.core.calculus.affine import Affine
from ilang.core.check import kernel as check
from ilang.core.diagnostic import InternalError
from ilang.core.ir.cpu import SizeProduct, Transpose
from ilang.core.ir.kernel import For, Program, statements_within
from ilang.core.pipeline import graph_of, infer, loops_text, lower, text_component
from ilang.core.record import replace


def lowered(text: str, **known: object) -> Program:
    return lower(infer(graph_of(text_component(text), "program"), **known))  # type: ignore[arg-type]


def transposes(program: Program) -> list[Transpose]:
    inside = (s for kernel in program.kernels for s in statements_within(kernel.body))
    return [s for s in inside if isinstance(s, Transpose)]


def test_a_copy_along_both_buffers_is_a_statement() -> None:
    program = lowered("ij~ji")
    (copy,) = transposes(program)
    names = [size.name for size in program.sizes]
    assert [program.buffers[at.buffer].name for at in (copy.target, copy.source)] == ["out", "in0"]
    assert names[copy.columns.size] != names[copy.rows.size]
    assert copy.target.stride == (SizeProduct(1, (copy.rows.size,)),)
    assert copy.stream_from > 0
    assert not copy.short
    assert " in squares" in loops_text(program)


def test_a_copy_of_few_rows_is_short_or_plain_loops() -> None:
    (copy,) = transposes(lowered("ij~ji", shapes=((12, 100),)))
    assert copy.short
    assert not transposes(lowered("ij~ji", shapes=((3, 100),)))


def test_what_is_computed_of_a_transposed_input_reads_a_copy_in_squares() -> None:
    program = lowered("-ij~ji")
    (copy,) = transposes(program)
    names = [program.buffers[at.buffer].name for at in (copy.target, copy.source)]
    assert names == ["in0_copy", "in0"]


@pytest.mark.parametrize("text", ["ij~ij", "ii~i", "ijk~jik"])
def test_other_copies_stay_loops(text: str) -> None:
    assert not transposes(lowered(text))


def test_threads_share_the_loops_around_squares_only() -> None:
    program = lowered("bij~bji")
    (copy,) = transposes(program)
    inside = [s for s in statements_within((copy.loops,)) if isinstance(s, For)]
    loops = [s for s in statements_within(program.kernels[0].body) if isinstance(s, For)]
    assert not any(loop.parallel for loop in inside)
    assert any(loop.parallel for loop in loops)


def test_a_copy_that_tells_a_target_something_else_is_refused() -> None:
    program = lowered("ij~ji")
    (kernel,) = program.kernels
    (copy,) = transposes(program)
    moved = replace(copy.target, first=(Affine((), 1), *copy.target.first[1:]))
    for wrong in (
        replace(copy, target=moved),
        replace(copy, source=replace(copy.source, stride=())),
        replace(copy, rows=copy.columns),
        replace(copy, dtype="f64"),
        replace(copy, loops=replace(copy.loops, body=())),
    ):
        body = tuple(
            replace(s, body=(wrong,)) if isinstance(s, For) else wrong for s in kernel.body
        )
        with pytest.raises(InternalError, match="a transposing copy"):
            check.verify(replace(program, kernels=(replace(kernel, body=body),)))
