"""Copies that transpose: which loops become the statement, and what the statement tells a target."""

import numpy as np
import pytest

from ilang import i
from ilang.core.check import kernel as check
from ilang.core.diagnostic import InternalError
from ilang.core.ir.cpu import Transpose
from ilang.core.ir.kernel import For, Program, Statement, statements_within
from ilang.core.ir.scalar import Constant, Load
from ilang.core.pipeline import graph_of, infer, loops_text, lower, text_component
from ilang.core.record import replace


def lowered(text: str, **known: object) -> Program:
    return lower(infer(graph_of(text_component(text), "program"), **known))  # type: ignore[arg-type]


def transposes(program: Program) -> list[Transpose]:
    inside = (s for kernel in program.kernels for s in statements_within(kernel.body))
    return [s for s in inside if isinstance(s, Transpose)]


def names(program: Program, copy: Transpose) -> list[str]:
    """The arrays that a copy writes and reads."""
    _, _, store = copy.nest()
    assert isinstance(store.value, Load)
    return [program.buffers[n].name for n in (store.buffer, store.value.buffer)]


def test_a_copy_along_both_buffers_is_a_statement() -> None:
    program = lowered("ij~ji")
    (copy,) = transposes(program)
    assert names(program, copy) == ["out", "in0"]
    (columns,), rows, store = copy.nest()
    assert [program.sizes[loop.size].name for loop in (columns, rows)] == ["c32", "i"]
    assert [loop.variable for loop in (columns, rows)] == [i.steps()[-1][1] for i in store.index]
    assert copy.stream_from > 0
    assert not copy.short
    assert " in squares" in loops_text(program)


def test_loops_side_by_side_are_columns() -> None:
    """The weights of a convolution are packed in squares of 9 c by k, though each window has 3 columns."""
    text = "nc(h+r)(w+s)*kcrs~nkhwcrs >> +nkhwcrs~nkhw"
    program = lowered(text, shapes=((1, 28, 10, 10), (140, 28, 3, 3)))
    copies = {tuple(names(program, copy)): copy.nest()[0] for copy in transposes(program)}
    columns = copies["in1_copy", "in1"]
    assert [program.sizes[loop.size].fixed for loop in columns] == [28, 3, 3]


@pytest.mark.parametrize(
    ("text", "shape"),
    [("abcd~bcda", (40, 7, 3, 5)), ("abcd~cbda", (40, 7, 3, 5)), ("abcd~dabc", (4, 3, 5, 40))],
)
def test_copies_of_several_columns_are_right(text: str, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    assert np.array_equal(i(f"+{text}")(x), i(f"+{text}")(x, target="numpy"))


def test_a_copy_of_few_rows_is_short_or_plain_loops() -> None:
    (copy,) = transposes(lowered("ij~ji", shapes=((12, 100),)))
    assert copy.short
    assert not transposes(lowered("ij~ji", shapes=((3, 100),)))


def test_what_is_computed_of_a_transposed_input_reads_a_copy_in_squares() -> None:
    program = lowered("-ij~ji")
    (copy,) = transposes(program)
    assert names(program, copy) == ["in0_copy", "in0"]


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


def test_a_copy_that_is_not_along_both_buffers_is_refused() -> None:
    program = lowered("ij~ji")
    (kernel,) = program.kernels
    (copy,) = transposes(program)
    (columns,), rows, store = copy.nest()
    twice = replace(store, index=(store.index[0], store.index[1] * 2))
    number = replace(store, value=Constant(0.0, "f32"))
    bodies: list[tuple[Statement, ...]] = [(), (replace(rows, body=(store, store)),)]
    bodies += [(replace(rows, body=(wrong,)),) for wrong in (twice, number)]
    for wrong in bodies:
        changed = replace(copy, loops=replace(columns, body=wrong))
        body = tuple(
            replace(s, body=(changed,)) if isinstance(s, For) else changed for s in kernel.body
        )
        with pytest.raises(InternalError, match="a transposing copy"):
            check.verify(replace(program, kernels=(replace(kernel, body=body),)))
