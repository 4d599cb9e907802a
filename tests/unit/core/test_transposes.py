"""Copies that transpose: right with several columns, short ones, and what the verifier refuses."""

import numpy as np
import pytest

from ilang import i
from ilang.core.check import kernel as check
from ilang.core.diagnostic import InternalError
from ilang.core.ir.cpu import Transpose
from ilang.core.ir.kernel import For, Program, Statement, statements_within
from ilang.core.ir.scalar import Constant
from ilang.core.pipeline import graph_of, infer, lower, text_component
from ilang.core.record import replace


def lowered(text: str, **known: object) -> Program:
    return lower(infer(graph_of(text_component(text), "program"), **known))  # type: ignore[arg-type]


def transposes(program: Program) -> list[Transpose]:
    inside = (s for kernel in program.kernels for s in statements_within(kernel.body))
    return [s for s in inside if isinstance(s, Transpose)]


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
