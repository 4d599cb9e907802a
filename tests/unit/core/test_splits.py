"""Loops that read or count under conditions: cut where these begin and cease to hold, every iteration done once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ilang import ShapeError, i
from ilang.core import pipeline
from ilang.core.calculus.affine import Affine, Within
from ilang.core.calculus.extent import size
from ilang.core.check import kernel as check
from ilang.core.diagnostic import InternalError
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.kernel import For, If, Program, Store
from ilang.core.ir.scalar import Constant, Load, Select
from ilang.core.ir.shaped import Size
from ilang.core.passes.cpu.splits import cut
from ilang.core.record import replace
from tests.shares import one_in


def program_of(text: str) -> Program:
    graph = pipeline.graph_of(pipeline.text_component(text), "program")
    return pipeline.lower(pipeline.infer(graph))


def value(limit: tuple[Affine, int], around: int) -> int:
    """An end of an interval of variable 0, where the loop around is at an iteration."""
    index, step = limit
    total = index.offset + sum(c * around for c, _ in index.terms)
    return -(-total // step)


@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("extent", [0, 1, 4, 7])
def test_the_interval_is_where_the_condition_holds(step: int, extent: int) -> None:
    """Variable 0 is of the loop, variable 1 of one around."""
    for offset, other in itertools.product(range(-5, 6), (-2, 1)):
        index = Affine(((step, 0), (other, 1)), offset)
        read = Load(BufferId(0), (index,), "f32")
        guarded = Select((Within(index, 0),), read, Constant(0, "f32"), "f32")
        loop = For(VariableId(0), size(1), (Store(BufferId(1), (Affine(((1, 0),)),), guarded),))
        sizes = (Size("n", extent, ()), Size("m", 12, ()))
        parts = cut(Program("p", sizes, (), (), (), ()), loop)
        assert parts is not None
        (middle,) = parts.body
        assert isinstance(middle, For)
        for around in range(3):
            first = max([0, *(value(limit, around) for limit in middle.begin.limits())])
            last = min([12, *(value(limit, around) for limit in middle.end.limits())])
            inside = [n for n in range(12) if 0 <= step * n + other * around + offset < extent]
            assert list(range(first, last)) == inside


PADDED = {  # a program, and what an element is: the window of elements that are inside, or 0 outside
    "+(x+u:3-1)~x": (1, 3, -1),
    "+(x+u:30-9)~x || u x": (1, 30, -9),
    "+(2x+u:5-3)~x || x u": (2, 5, -3),
    "(x+u:3-1)~xu >> +xu~x": (1, 3, -1),
    "+(-u:12+x:30+4)~x || u x": (1, 12, -7),
    "(3x+u:30-9)~xu || x u >> +xu~x": (3, 30, -9),
    "(3x+u:30-9)~xu || u x >> +xu~x": (3, 30, -9),
    "(-u:5+x:30+4)~xu >> +xu~x": (1, 5, 0),
}


@pytest.mark.parametrize("text", one_in(3, PADDED))
def test_sums_of_windows(text: str) -> None:
    """Also of arrays that are empty, or shorter than a window, or than its padding."""
    stride, width, offset = PADDED[text]
    program, fitting = i(text), 0
    for extent in (0, 1, 2, 3, 9, 10, 31, 40, 100):
        given = np.arange(1, extent + 1, dtype=np.float32)
        try:
            sums = program(given)
        except ShapeError:
            continue  # the window fits nowhere
        fitting += 1
        for x, total in enumerate(sums):
            first = stride * x + offset
            assert total == given[max(0, first) : max(0, first + width)].sum(), (extent, x)
    assert fitting > 1


def test_what_tests_where_it_reads_is_no_vector() -> None:
    """GCC 12 makes masked vectors of some such loops that read what is masked."""
    assert "SCALAR;" in i("(x+u:3-1)~xu").source()
    assert "SCALAR" not in i("(x+u:30-1)~xu || x u").source()


@pytest.mark.parametrize(
    ("change", "invariant"),
    [
        ({"body": ()}, "the middle part of a loop stores what the loop does"),
        ({"end": size(0).among("min", [(Affine(((1, 99),)), 1)])}, "is known outside it"),
    ],
)
def test_a_loop_in_other_parts_is_refused(change: dict[str, object], invariant: str) -> None:
    program = program_of("ij[j<=i]~ij")
    (kernel,) = program.kernels
    (outer,) = kernel.body
    assert isinstance(outer, For)
    (inner,) = outer.body
    assert isinstance(inner, For)
    assert isinstance(inner.version, If)
    (middle,) = inner.version.body
    wrong = replace(inner, version=replace(inner.version, body=(replace(middle, **change),)))
    body = (replace(outer, body=(wrong,)),)
    with pytest.raises(InternalError, match=invariant):
        check.verify(replace(program, kernels=(replace(kernel, body=body),)))
