"""Matrices that are larger than all that a program takes and gives: computed for each kernel, and never stored."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.ir.schedule import Scheduled
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import GPU
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from ilang.core.transform.reverse import gradient
from tests.shares import one_in

SCORES = "ik*jk~ijk >> +ijk~ij"
SOFTMAX = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"
CAUSAL = "(I & >ij[j<=i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<=i]~i) >> ij[j<=i]/i~ij"
MIX = "ij*jd~ijd >> +ijd~id"
ATTENTION = f"{SCORES} >> {SOFTMAX} >> {MIX}"
HEADS = (
    "ihk*jhk~hijk >> +hijk~hij >> (I & >hij~hi) >> hij-hi~hij >> ^hij~hij >> (I & +hij~hi)"
    " >> hij/hi~hij >> hij*jhd~hijd >> +hijd~ihd"
)


def shaped_of(text: str, shapes: list[tuple[int, ...]] | None = None) -> Shaped:
    graph = pipeline.graph_of(pipeline.text_component(text), "program")
    return pipeline.infer(graph, shapes=shapes)


def back(text: str, shapes: list[tuple[int, ...]] | None = None, values: bool = False) -> Shaped:
    shaped = shaped_of(text, shapes)
    return gradient(shaped, range(len(shaped.inputs)), values)


def stored(scheduled: Scheduled, letters: str = "ij") -> list[str]:
    """The values that are stored and have as many elements as there are pairs of rows and columns."""
    shaped = scheduled.shaped
    return [
        shaped.tensors[value].name
        for value in scheduled.whole()
        if value not in shaped.outputs
        and {*letters} <= {shaped.sizes[size].name for size in shaped.tensors[value].dims}
    ]


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        ATTENTION,
        f"{SCORES} >> {CAUSAL} >> {MIX}",
        HEADS,
        f"{SCORES} >> (I | 0.125) >> ij*.~ij >> {SOFTMAX} >> {MIX}",
        f"{SCORES} >> ij+j~ij >> {SOFTMAX} >> {MIX}",
        f"{SCORES} >> (I & +ij~i) >> ij/i~ij >> {MIX}",
        f"{ATTENTION} >> ^id~id",
    ],
)
def test_the_way_back_of_attention_stores_no_scores(text: str, values: bool) -> None:
    scheduled = shaped_to_schedule(back(text, values=values))
    assert stored(scheduled) == []


def test_a_kernel_for_each_direction() -> None:
    """Rows of queries give what flows back to them, and what the rows of keys need of each: three numbers."""
    scheduled = shaped_to_schedule(back(ATTENTION))
    shaped = scheduled.shaped
    names = [[shaped.tensors[root.value].name for root in g.roots] for g in scheduled.groups]
    assert names == [["din0", "dsum22", "sum22", "maximum2"], ["din1", "din2"]]


def test_what_is_compared_with_its_maximum_is_computed_once() -> None:
    """Whoever has the largest score gets what flows back: other roundings would give it to nobody."""
    scheduled = shaped_to_schedule(back(f"{SCORES} >> >ij~i"))
    assert stored(scheduled) != []


@pytest.mark.parametrize(
    "text",
    [
        "ik*kj~ijk >> +ijk~ij >> (I | 0) >> ij>.~ij >> ij*jd~ijd >> +ijd~id",
        f"{SCORES} >> (I & +ij~.) >> ij/.~ij >> {MIX}",
        f"{SCORES} >> ij+ij~ij >> {SOFTMAX} >> {MIX}",
    ],
)
def test_everything_else_is_as_it_was(text: str) -> None:
    """A layer whose weights' gradient has other rows, a sum of everything, a mask that is as large."""
    shaped = back(text)
    assert shaped_to_schedule(shaped).shaped is shaped


def both(shapes: list[tuple[int, ...]] | None = None, schedule: str = "") -> Shaped:
    """The weights of attention, to mix values for queries and queries' values for keys."""
    text = f"""both(q[m,k], key[n,k], v[n,d], u[m,e]) = {{
      p = ({SCORES} >> {SOFTMAX})(q, key)
      ({MIX}{schedule})(p, v), (ij*ie~ije >> +ije~je)(p, u)
    }}"""
    return pipeline.infer(pipeline.program_graph(pipeline.text_program(text)), shapes=shapes)


def test_what_a_person_wrote_is_computed_again_where_nothing_says_how() -> None:
    shaped = both()
    assert stored(shaped_to_schedule(shaped), "mn") == []
    written = both(schedule=" || i d j")
    assert shaped_to_schedule(written).shaped is written


@pytest.mark.parametrize(("length", "is_apart"), [(16, False), (512, False), (2048, True)])
def test_matrices_that_caches_keep_are_stored(length: int, is_apart: bool) -> None:
    shaped = back(ATTENTION, [(length, 64)] * 3)
    assert (stored(shaped_to_schedule(shaped)) == []) is is_apart


def test_matrices_that_take_long_are_stored() -> None:
    """Here the scores take nearly all time."""
    few, many = (both([(2048, k), (2048, k), (2048, 64), (2048, 64)]) for k in (64, 512))
    assert shaped_to_schedule(few).shaped is not few
    assert shaped_to_schedule(many).shaped is many


@pytest.mark.parametrize(
    ("length", "width", "is_apart"),
    [
        (1024, 64, False),  # in caches
        (8192, 64, False),  # five products and 256 MB a matrix take less time than twelve products
        (8192, 16, True),  # products of few terms
        (65536, 64, True),  # more than the memory of a device has room for
    ],
)
def test_a_gpu_stores_them_where_that_takes_less_time(
    length: int, width: int, is_apart: bool
) -> None:
    shaped = back(ATTENTION, [(length, width)] * 3)
    assert (shaped_to_schedule(shaped, GPU).shaped is not shaped) is is_apart


@pytest.mark.parametrize("text", [ATTENTION, f"{SCORES} >> {CAUSAL} >> {MIX}"])
@pytest.mark.parametrize("dtype", one_in(2, [np.float32, np.float64]))
def test_gradients_are_those_of_the_evaluator(text: str, dtype: type[np.generic]) -> None:
    derived = i(text).value_and_grad()
    random = np.random.default_rng(3)
    for rows, columns in ((13, 70), (64, 9), (1, 20), (20, 0), (0, 20)):
        shapes = [(rows, 16), (columns, 16), (columns, 11), (rows, 11)]
        arrays = [random.normal(size=shape).astype(dtype) for shape in shapes]
        wanted = derived(*(array.astype(np.float64) for array in arrays), target="numpy")
        for one, other in zip(derived(*arrays), wanted, strict=True):
            np.testing.assert_allclose(one, other, atol=2e-5 if dtype is np.float32 else 1e-12)
