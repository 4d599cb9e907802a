"""Random programs of matrices that go two ways, and their gradients, compiled, against the evaluator."""

from __future__ import annotations

import random
import re
from itertools import product

import numpy as np
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.ir.schedule import Loop
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU, Machine
from ilang.core.record import replace
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from ilang.core.transform.reverse import gradient
from tests.shares import share

PRODUCTS = (
    "ik*jk~ijk >> +ijk~ij",
    "ik*kj~ijk >> +ijk~ij",
    "ki*jk~ijk >> +ijk~ij",
    "(ik*.~ik | I) >> ik*jk~ijk >> +ijk~ij",
    "ik*jk~jik >> +jik~ji >> ji~ij",
)
MIXES = (
    "ij*jd~ijd >> +ijd~id",
    "ij*dj~ijd >> +ijd~id",
    "ij*jd~ijd >> +ijd~di >> di~id",
    "ij*jd~ijd >> +ijd~id >> (I | 0.5) >> id*.~id",
)
ALONE = (
    "(I | 0.5) >> ij*.~ij",
    "(I | 0) >> ij>.~ij",
    "ij+j~ij",
    "ij*i~ij",
    "ij[j<=i]~ij",
    "-ij~ij",
)
ROWS = (
    "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij",
    "(I & >ij[j<=i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<=i]~i) >> ij[j<=i]/i~ij",
    "(I & (+ij~i >> (I | 0.01) >> i*.~i)) >> ij-i~ij",
    "(I & (+ij~j >> (I | 0.01) >> j*.~j)) >> ij+j~ij",
    "(I & (>ij~i >> (I | 0.1) >> i*.~i)) >> ij-i~ij",
)
SOFTMAX = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"
CAUSAL = "(I & >ij[j<=i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<=i]~i) >> ij[j<=i]/i~ij"
BAND = CAUSAL.replace("[j<=i]", "[j<=i,j>=i-8]")
MIX = MIXES[0]
ATTENTION = {
    "plain": f"ik*jk~ijk >> +ijk~ij >> {SOFTMAX} >> {MIX}",
    "scaled": f"ik*jk~ijk >> +ijk~ij >> (I | 0.125) >> ij*.~ij >> {SOFTMAX} >> {MIX}",
    "scaled queries": f"(I | 0.125) >> ik*.~ik >> ik*jk~ijk >> +ijk~ij >> {SOFTMAX} >> {MIX}",
    "scaled result": f"ik*jk~ijk >> +ijk~ij >> {SOFTMAX} >> {MIX} >> (I | 0.5) >> id*.~id",
    "causal": f"ik*jk~ijk >> +ijk~ij >> {CAUSAL} >> {MIX}",
    "causal, scaled": f"ik*jk~ijk >> +ijk~ij >> (I | 0.125) >> ij*.~ij >> {CAUSAL} >> {MIX}",
    "band": f"ik*jk~ijk >> +ijk~ij >> {BAND} >> {MIX}",
    "keys of columns": f"ik*kj~ijk >> +ijk~ij >> {SOFTMAX} >> {MIX}",
    "queries of columns": f"ki*jk~ijk >> +ijk~ij >> {SOFTMAX} >> {MIX}",
    "values of columns": f"ik*jk~ijk >> +ijk~ij >> {SOFTMAX} >> {MIXES[1]}",
    "result of columns": f"ik*jk~ijk >> +ijk~ij >> {SOFTMAX} >> ij*jd~ijd >> +ijd~di",
    "all of columns": f"ki*kj~ijk >> +ijk~ij >> {SOFTMAX} >> ij*dj~ijd >> +ijd~di",
    "columns of scores": f"ik*jk~jik >> +jik~ji >> ji~ij >> {SOFTMAX} >> {MIX}",
    "mask of keys": f"ik*jk~ijk >> +ijk~ij >> ij+j~ij >> {SOFTMAX} >> {MIX}",
}
"""Ways to write attention, none of which stores a matrix, for whatever extents."""
START = 4_000
SHAPES = ((13, 70), (66, 9), (1, 20), (20, 0))

pytestmark = pytest.mark.usefixtures("compiled_quickly")  # right values are asked for


def program(seed: int) -> str:
    """A product of rows with rows, work on it, and what takes it to rows again."""
    draw = random.Random(seed)
    parts = [draw.choice(PRODUCTS), draw.choice(ROWS)]
    for _ in range(draw.randrange(3)):
        parts.insert(draw.randrange(1, 3), draw.choice(ROWS if draw.random() < 0.5 else ALONE))
    parts.append(draw.choice(MIXES))
    parts += draw.choices(["", "(I & ^id~id) >> id*id~id"], [3, 1])
    return " >> ".join(part for part in parts if part)


def heads(text: str, middle: bool = False) -> str:
    """The same for several heads, the first or the middle dimension of what is given."""
    form = re.compile(r"(?<![a-z\[=,])[ijkd]{1,3}(?![a-z<>])")
    arrays = {"ik": "ihk", "jk": "jhk", "jd": "jhd", "id": "ihd"} if middle else {}
    return form.sub(lambda m: arrays.get(m[0], "h" + m[0]), text)


def fixed(shaped: Shaped, extents: dict[str, int]) -> Shaped:
    """A program with known extents."""
    sizes = (replace(each, fixed=extents.get(each.name, each.fixed)) for each in shaped.sizes)
    return replace(shaped, sizes=tuple(sizes))


def stored(shaped: Shaped, machine: Machine = CPU) -> list[str]:
    """The matrices of rows i and columns j that are stored and not given, whole or for each batch."""
    scheduled = shaped_to_schedule(shaped, machine)
    of = scheduled.shaped
    names: list[str] = []
    for group in scheduled.groups:
        roots = {root.value for root in group.roots} - set(map(of.owner, of.outputs))
        for each in group.plan.instances:
            dims = of.tensors[each.value].dims
            parts = (x if isinstance(x, Loop) else Loop(x) for x in each.kept)
            kept = {loop.axis for loop in parts if not loop.part}
            whole = range(len(dims)) if each.value in roots else kept
            if {"i", "j"} <= {of.sizes[dims[dim]].name for dim in whole}:
                names.append(of.tensors[each.value].name)
    return names


def shaped_of(text: str) -> Shaped:
    return pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "p"))


LONG = {"h": 4, "i": 2048, "j": 2048, "k": 64, "d": 64}


@pytest.mark.parametrize(("way", "middle"), share([*product(ATTENTION, (None, False, True))], 1))
def test_attention_stores_no_matrix(way: str, middle: bool | None) -> None:
    """Neither forwards nor backwards, for extents that are known or not, with several heads or without."""
    text = ATTENTION[way]
    shaped = shaped_of(text if middle is None else heads(text, middle))
    for program in (shaped, gradient(shaped, range(len(shaped.inputs)))):
        assert stored(program) == []
        assert stored(fixed(program, LONG)) == []


def test_masks_that_are_given_are_all_that_is_stored() -> None:
    """What flows back to a mask is a result, and read as one; where it is summed over heads, it is stored once."""
    text = f"ik*jk~ijk >> +ijk~ij >> ij+ij~ij >> {SOFTMAX} >> {MIX}"
    shaped = shaped_of(text)
    assert stored(fixed(gradient(shaped, range(4)), LONG)) == []
    of_all = heads(text).replace("hij+hij~hij", "hij+ij~hij")
    shaped = shaped_of(of_all)
    assert stored(shaped) == []
    for program in (gradient(shaped, range(4)), fixed(gradient(shaped, range(4)), LONG)):
        assert len(stored(program)) == 1


@pytest.mark.parametrize("way", ATTENTION)
def test_gradients_of_attention_are_those_of_the_evaluator(way: str) -> None:
    text = heads(ATTENTION[way])
    f, shaped = i(text), shaped_of(text)
    noise = np.random.default_rng(len(text))
    extents = {"h": 2, "i": 21, "j": 70, "k": 7, "d": 5}
    dims = [[shaped.sizes[size].name for size in tensor.dims] for tensor in shaped.tensors]
    given = [*shaped.inputs, *shaped.outputs]
    arrays = [noise.normal(size=[extents[name] for name in dims[value]]) for value in given]
    derived = f.grad()
    wanted = derived(*arrays, target="numpy")
    for one, other in zip(derived(*arrays), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_masks_are_computed_apart_where_extents_are_known() -> None:
    """What flows back to a mask is a result of a kernel, and read by a product of its own."""
    m, n = 170, 190
    head = f"f(q[{m},k], key[{n},k], mask[{m},{n}], v[{n},d])"
    text = f"{head} = ik*jk~ijk >> +ijk~ij >> ij+ij~ij >> {SOFTMAX} >> {MIX}"
    derived = i(text).grad()
    noise = np.random.default_rng(0)
    shapes = ((m, 7), (n, 7), (m, n), (n, 5), (m, 5))
    arrays = [noise.normal(size=shape) for shape in shapes]
    wanted = derived(*arrays, target="numpy")
    for one, other in zip(derived(*arrays), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_many_are_computed_apart() -> None:
    """Of those programs whose matrices are."""
    count = 0
    for seed in range(START, START + 40):
        shaped = shaped_of(program(seed))
        derived = gradient(shaped, range(len(shaped.inputs)), values=bool(seed % 2))
        count += shaped_to_schedule(derived).shaped is not derived
    assert 15 < count


@pytest.mark.parametrize("seed", range(START, START + 8))
def test_gradients_are_those_of_the_evaluator(seed: int) -> None:
    f = i(program(seed))
    shaped = shaped_of(program(seed))
    dims = [[shaped.sizes[size].name for size in shaped.tensors[n].dims] for n in shaped.inputs]
    derived = f.value_and_grad() if seed % 2 else f.grad()
    for rows, columns in SHAPES:
        noise = np.random.default_rng(seed)
        extents = {"i": rows, "j": columns, "k": 7, "d": 5}
        arrays = [noise.normal(size=[extents[n] for n in each]) / 2 for each in dims]
        arrays.append(noise.normal(size=(rows, 5)))
        wanted = derived(*arrays, target="numpy")
        for one, other in zip(derived(*arrays), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
