"""Loops on a GPU that begin and end where a condition holds for any element of a tile: all that counts is computed."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import pytest

from ilang.codegen.emulator.program import load
from ilang.codegen.emulator.runtime import emulator
from ilang.codegen.targets import cuda
from ilang.core import pipeline
from ilang.core.ir.host import Launch
from ilang.core.ir.kernel import For, Program, statements_within
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import GPU
from ilang.core.pipeline import graph_of, infer, lower, text_component
from tests.property import emulated
from tests.property.batch import Batch
from tests.property.test_online import difference

PRODUCT = "ik{a}*kj{b}~ijk >> {r}ijk{c}~ij"
TILES = " | i:8,j:4,k:4 | i j k 0 1 k' i' j' | 0:s2,1:s2"
SUMS = " | i:8,j:4,k:4 | i j k k' i' j' 0 | i:{p},j:{p},k:{q},i':t,j':t"
SOFTMAX = "(I & >ij{g}~i) >> ij-i~ij >> ^ij~ij >> (I & +ij{g}~i)"
ATTENTION = f"ik*jk~ijk >> +ijk~ij >> {SOFTMAX} >> ij{{g}}/i~ij >> ij*jd~ijd >> +ijd~id"


def shaped_of(text: str, name: str = "f") -> Shaped:
    return infer(graph_of(text_component(text), name))


def ends(text: str) -> list[str]:
    """Where the tightened loops of a text begin and end."""
    lines = pipeline.shaped_stage_text(shaped_of(text), "tightened", GPU).splitlines()
    heads = [line.strip() for line in lines if line.lstrip().startswith("for ")]
    return [line.partition(" in ")[2] for line in heads if "ceil" in line]


def product(guard: str, at: str = "c", reduction: str = "+") -> str:
    """A product with a guard at a factor or at the reduction, in tiles that a schedule says."""
    places = dict.fromkeys("abc", "") | {at: f"[{guard}]"}
    terms, sums = PRODUCT.format(**places, r=reduction).split(" >> ")
    return f"{terms}{TILES} >> {sums}{SUMS.format(p='p', q='q')}"


@pytest.mark.parametrize(
    ("guard", "where"),
    [
        ("k<=i", "0..min(n_k_4, ceil((8i+8) / 4))"),
        ("k<i", "0..min(n_k_4, ceil((8i+7) / 4))"),
        ("k>=i", "max(0, ceil((8i-3) / 4))..n_k_4"),
        ("k<=i,k>i-6", "max(0, ceil((8i-8) / 4))..min(n_k_4, ceil((8i+8) / 4))"),
        ("2k<=i+3", "0..min(n_k_4, ceil((8i+11) / 8))"),
        ("i+k<9", "0..min(n_k_4, ceil((-8i+9) / 4))"),
        ("k<=i+j", "0..min(n_k_4, ceil((8i+4j+11) / 4))"),
    ],
)
def test_a_loop_over_tiles_ends_with_its_condition(guard: str, where: str) -> None:
    assert ends(product(guard)) == [where]
    assert ends(product(guard, "a" if "j" not in guard else "c"))[0].startswith(where)


def test_a_factor_that_is_0_is_left_out_where_the_other_one_is_finite() -> None:
    assert ends(product("k<=i", "a")) == ["0..min(n_k_4, ceil((8i+8) / 4)), if in1 are finite"]
    assert ends(product("k>=j", "b")) == ["max(0, ceil((4j-3) / 4))..n_k_4, if in0 are finite"]
    whole = infer(graph_of(text_component(product("k<=i", "a")), "f"), ["i32", "i32"])
    text = pipeline.shaped_stage_text(whole, "tightened", GPU)
    assert "ceil((8i+8) / 4))\n" in text, "whole numbers are finite"


INLINE = product("k<=i", "a").replace("0 1 k' i' j' | 0:s2,1:s2", "0 k' i' j' 1")
"""One factor computed where it is read."""


@pytest.mark.parametrize(
    "text",
    [
        product("k<=i", "a", ">"),  # 0 is no least number
        product("i<3"),  # no tile of a row has a condition of its own
        "ik[k<=i]*kj~ijk >> ^ijk~ijk >> +ijk~ij",  # e^0 is 1
        f"(I | kj*kj~kj) >> {INLINE}",  # a square may be infinite where no element is
    ],
)
def test_what_changes_something_is_not_left_out(text: str) -> None:
    assert ends(text) == []


def test_what_is_computed_before_is_looked_at_before_it_is_read() -> None:
    shaped = shaped_of("(I | kl*lj~klj >> +klj~kj) >> ik[k<=i]*kj~ijk >> +ijk~ij")
    host = pipeline.host_of(lower(shaped, GPU))
    (look,) = host.looks()
    before = host.operations[: host.operations.index(look)]
    written = [n for each in before if isinstance(each, Launch) for n in each.writes]
    assert {n for n, _ in look.arrays} <= set(written)
    assert [launch.infinite for launch in host.launches()] == [None, None, 0, None]


def test_a_guard_on_the_way_to_every_sum_ends_the_loop() -> None:
    assert ends(ATTENTION.format(g="[j<=i]")) == [
        "0..min(n_j_32, ceil((64i+64) / 32)), if in2 are finite"
    ]
    summed = f"{SOFTMAX} >> ij/i~ij >> ij*jd~ijd >> +ijd{{g}}~id"
    assert ends(f"ik*jk~ijk >> +ijk~ij >> {summed}".format(g="[j<=i,j>=i-9]")) == [
        "max(0, ceil((64i-40) / 32))..min(n_j_32, ceil((64i+64) / 32))"
    ]
    most = ATTENTION.replace("+ij{g}~i)", "+ij~i)").format(g="[j<=i]")
    assert ends(most) == ["0..min(n_j_32, ceil((64i+64) / 32))"], (
        "the maximum, in a kernel of its own"
    )


def tightened(program: Program) -> list[For]:
    every = (s for kernel in program.kernels for s in statements_within(kernel.body))
    return [s for s in every if isinstance(s, For) and s.within and not s.part()]


# -- the same numbers --------------------------------------------------------------------------------------------------

GUARDS = (
    *("k<=i", "k<i", "k>=i", "k>i+2", "k==i", "k<=i,k>i-6", "k>=i,k<i+3", "2k<=i+3", "k<=2i,k>i-3"),
    *("i+k<9", "i+k>9,k<14", "k<5", "k>3,k<=i", "k<=j", "k<=i+j,k>=j-2", "3k>=i,k<=j+1"),
)
PLACES = ("c", "c", "a", "b")
REDUCTIONS = ("+", "+", "+", ">", "*")
WAYS = (TILES, TILES.replace(" | 0:s2,1:s2", ""), TILES.replace("0:s2,1:s2", "1:s2"))


def drawn(rng: random.Random) -> str:
    """A product with a guard, in a way in which it may be scheduled."""
    guard, place = rng.choice(GUARDS), rng.choice(PLACES)
    if place != "c":
        missing = "j" if place == "a" else "i"
        guard = rng.choice([each for each in GUARDS if missing not in each])
    reduction = rng.choice(REDUCTIONS)
    places = dict.fromkeys("abc", "") | {place: f"[{guard}]"}
    terms, sums = PRODUCT.format(**places, r=reduction).split(" >> ")
    if rng.random() < 0.2:
        return f"{terms} >> {sums}"
    parts = {"p": "p", "q": rng.choice(("q", "q", "p"))}
    written = f"{terms}{rng.choice(WAYS)} >> {sums}{SUMS.format(**parts)}"
    if rng.random() < 0.3:
        written = written.replace("k:4", "k:2:4").replace(" k k'", " k k' k''")
        written = written.replace("0 1 k'", "k' 0 1 k''")
    return written


@functools.cache
def products(mode: str) -> Batch:
    """Random products with guards, of ragged extents, of 0 and 1, with infinities and NaN where nothing may read."""
    rng, noise = random.Random(5), np.random.default_rng(5)
    batch = Batch(mode)
    for _ in emulated.of_mode(range(24), mode):
        shaped = shaped_of(drawn(rng))
        batch.add(shaped)
        ragged = (rng.randint(1, 21), rng.randint(1, 9), 17)
        for i, j, k in ((1, 1, 1), (9, 5, 0), ragged, (20, 8, 30)):
            for odd in (False, True):
                shapes = ((i, k), (k, j))
                arrays = [noise.integers(-2, 3, shape).astype(np.float32) for shape in shapes]
                for array in arrays if odd and k else ():
                    at = tuple(noise.integers(array.shape))
                    array[at] = rng.choice((np.inf, -np.inf, np.nan))
                batch.call(shaped, arrays)
    return batch


def test_most_random_products_are_trimmed() -> None:
    lowered = products("cuda-checked").programs
    some = [tightened(program) for program in lowered]
    assert len(lowered) // 2 <= sum(map(bool, some))
    assert any(each[0].finite for each in some if each)


@pytest.mark.parametrize("mode", emulated.MODES)
def test_random_products(mode: str) -> None:
    """In several orders of threads, and with every load and store checked."""
    for says, answer, (want,) in products(mode).answers(in_all_modes=True):
        wrong = answer.trouble or difference(answer.outputs[0], want)
        assert not wrong, f"{says}: {wrong}"


# -- how many tiles ----------------------------------------------------------------------------------------------------


@functools.cache
def attention(guard: str) -> tuple[str, Any]:
    """The text of attention with a guard, and what was compiled of it."""
    program = lower(shaped_of(ATTENTION.format(g=guard)), GPU)
    text = emulated.of_one_width([program], cuda.emit(program))
    return text, load(text, "f.cu", checked=True)


def read(guard: str, n: int, value: float = 1) -> int:
    """How many sectors of keys attention of so many rows reads: those of a tile once for each tile of a block."""
    text, loaded = attention(guard)
    q, k, v = (np.full((n, d), value, np.float32) for d in (16, 16, 8))
    out = np.zeros((n, 8), np.float32)
    with emulator().settings(profile=1):
        emulator().take_profile()
        assert loaded.call("f_host", np.array([n, 16, n, 8, 0], np.int64), q, k, v, out) == 0
        traffic = emulator().take_profile()
    assert not emulator().take_findings()
    lines = text.splitlines()
    return sum(
        each.cost
        for each in traffic
        if each.space == "global" and each.access == "read" and "in1" in lines[each.line - 1]
    )


def test_causal_attention_computes_half_of_the_tiles() -> None:
    """Of 2 x 4 tiles those up to the diagonal; of a window those that it touches, however many rows there are."""
    whole = read("", 128)
    assert read("[j<=i]", 128) * 8 == whole * (2 + 4)
    assert read("[j>i]", 128) * 8 == whole * (4 + 2)
    window = "[j<=i,j>i-32]"
    assert read(window, 128) * 8 == whole * (2 + 3)
    assert read(window, 256) * 8 == whole * (2 + 3 * 3)


def test_all_tiles_are_computed_where_a_number_is_infinite() -> None:
    assert read("[j<=i]", 128, np.inf) == read("", 128)
