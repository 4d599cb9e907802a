"""Reductions of short rows, and of windows that move by some, on a GPU: copied by blocks, right at random extents."""

from __future__ import annotations

import random
import shutil
from typing import Any

import numpy as np
import pytest

from ilang.core.ir.shaped import Shaped
from ilang.core.machine import GPU
from ilang.core.notation.files.module import parse_module
from ilang.core.pipeline import explain, infer, loops_text, lower, module_graph
from ilang.core.record import replace
from ilang.core.source import Source
from tests.property.batch import Batch
from tests.property.meaning import TYPES
from tests.property.schedules import same_code, written_back


def graph_in(text: str) -> Any:
    """The graph of the definition f."""
    return module_graph(parse_module(Source("f.i", text)), "f")


def shaped_of(text: str, name: str = "f") -> Shaped:
    return replace(infer(graph_in(text)), name=name)


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("f(x[m,4]) = +ij~i", "| i:256 | i 0 j i' | i:p,i':t"),
        ("f(x[m,3]) = +ij~i", "| i:256 | i 0 i' j | i:p,i':t"),
        ("f(x[20,3]) = +ij~i", "| i:32 | i 0 i' j | i:p,i':t"),
        ("f(x[m,3,5]) = >ijk~i", "| i:256 | i 0 i' j k | i:p,i':t"),
        ("f(x[m,6,7]) = >ijk~i", "| i:128 | i 0 i' j k | i:p,i':t"),  # what a block has room for
        ("f(x[m,3,2]) = +ijk~ij", "| i:64 | i 0 i' j k | i:p,i':t,j:t"),
        ("f(x[n,m,2]) = +nij~ni", "| i:256 | n i 0 j i' | n:p,i:p,i':t"),
        ("f(x[h,w]) = >(2y+u:2)(2x+v:2)~yx", "| y:4,x:64 | y x 0 y' x' u v | y:p,x:p,y':t,x':t"),
        ("f(x[h,w]) = >(4y+u:2)(2x+v:3)~yx", "| x:256 | y x 0 x' u v | y:p,x:p,x':t"),
        ("f(x[n]) = +(2i+k:3)~i", "| i:256 | i 0 i' k | i:p,i':t"),
        ("f(x[m,3]) = +ij~.", "| i:1024 | i 0 i' j | i:p,i':t"),
        ("f(x[m,2]) = >ij~.", "| i:1024 | i 0 j i' | i:p,i':t"),
        ("f(x[m,3,2]) = +ijk~.", "| i:512 | i 0 i' j k | i:p,i':t"),  # what a block has room for
        ("f(x[100,3]) = +ij~.", "| i:64 | i 0 i' j | i:p,i':t"),
        ("f(x[n,m,3]) = +nij~n", "| i:1024 | i n 0 i' j | i:p,n:p,i':t"),
        (
            "f(x[m,3], y[m,3]) = ij-ij~ij >> (I & I) >> ij*ij~ij >> +ij~.",
            "| i:512 | i i' j 0 | i:p,i':t",
        ),
    ],
)
def test_blocks_copy_what_threads_would_read_in_strides(text: str, schedule: str) -> None:
    *_, row = explain(graph_in(text), machine=GPU).execution.schedule
    assert row.schedule == schedule
    shaped = shaped_of(text)
    assert same_code(shaped, written_back(shaped, GPU), GPU)


@pytest.mark.parametrize(
    "text",
    [
        "f(x[m,k]) = +ij~i",  # a row of its own for each block
        "f(x[4,m]) = +ij~j",  # neighbors read neighbors
        "f(x[n]) = +(i+k:3)~i",
        "f(x[n]) = >(9i+k:2)~i",  # most of a copy would not be read
        "f(x[3,4]) = +ij~i",  # less than a warp
        "f(x[m,4]) = +ij[j<=i]~i",
        "f(x[m,k]) = +ij~.",
        "f(x[40,3]) = +ij[j<=i]~.",
        "f(x[20,3]) = +ij~.",  # less than a warp in each of two parts
    ],
)
def test_nothing_else_is_copied(text: str) -> None:
    assert "_copy" not in loops_text(lower(shaped_of(text), GPU))


OPERATORS = ("+", "*", ">", "<")
TEXTS = (
    "f(x[m,{r}]) = {op}ij~i",
    "f(x[h,w]) = {op}({s}y+u:{a})({t}x+v:{b})~yx",
    "f(x[m,{r},{q}]) = {op}ijk~i",
    "f(x[m,{r},{q}]) = {op}ikj~ij",
    "f(x[w]) = {op}({t}x+v:{b})~x",
    "f(x[n,m,{r}]) = {op}nij~ni",
    "f(x[m,{r},{q}]) = {op}ijk~ji",
    "f(x[h,w,{a}]) = {op}({s}y+u:{a})({t}x+v:{b})c~yx",
    "f(x[m,{r}], w[{r},{q}]) = ik*kj~ijk >> {op}ijk~ij",
    "f(x[m,{r}], y[m,{r}]) = ik*ik~ik >> {op}ik~i",
    "f(x[2,h,w], k[3,2,{a},{b}]) = c({s}y+u)({t}x+v)*ocuv~oyxcuv >> +oyxcuv~oyx",
    "f(x[m,{r}], y[m]) = ik-i~ik >> (I & I) >> ik*ik~ik >> {op}ik~i",
    "f(x[m,{r}]) = (I & {op}ij~i) >> ij-i~ij >> +ij~i",
    "f(x[m,{r}]) = >@ij~i",
    "f(x[h,w]) = {op}({s}y+u:{a}-1)({t}x+v:{b}-1)~yx",
    "f(x[m,{r}]) = {op}ij[j<=i]~i",
    "f(x[m,k], w[k,{r}]) = ik*kj~ijk >> +ijk~ij",
    "f(w[{r},k], x[k,m]) = ik*kj~ijk >> +ijk~ij",
    "f(x[l,{r}]) = {op}ij~.",
    "f(x[{q},l,{r}]) = {op}nij~n",
    "f(x[l,{r},{a}]) = {op}ijk~.",
    "f(x[l,{r}], y[l,{r}]) = ij-ij~ij >> (I & I) >> ij*ij~ij >> +ij~.",
    "f(x[l,{r}], y[l]) = ij*i~ij >> (I & >ij~.) >> ij-.~ij >> +ij~.",
)
"""Of rows of r and q elements, and of windows of a by b that move by s and t; other extents are known at run time."""
LONG = (0, 1, 1023, 1024, 1025, 2500)
MANY = (1, 5, 31, 32, 64, 127, 255, 256, 257, 300)
FEW = (1, 2, 5, 9)


def trial(seed: int) -> tuple[Shaped, list[list[Any]]]:
    """A program of one of these texts, and the inputs of some calls of it."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    named = {c: rng.randint(2, 7) for c in "rq"} | {c: rng.randint(1, 3) for c in "st"}
    named |= {c: rng.randint(2, 3) for c in "ab"}
    graph = graph_in(TEXTS[seed % len(TEXTS)].format(op=rng.choice(OPERATORS), **named))
    dtype = rng.choice(("f32", "f32", "f64", "i32"))
    names = [dtype for _ in infer(graph).inputs]
    shaped = replace(infer(graph, names), name=f"p{seed}")
    calls: list[list[Any]] = []
    for _ in range(2):
        at = {"m": rng.choice((0, *MANY)), "n": rng.choice((0, *FEW)), "k": rng.choice((0, 1, 130))}
        at["l"] = rng.choice(LONG)
        at["h"] = named["s"] * (rng.choice(FEW) - 1) + named["a"] + rng.randint(0, 1)
        at["w"] = named["t"] * (rng.choice(MANY) - 1) + named["b"] + rng.randint(0, 1)
        arrays = list[Any]()
        for value in shaped.inputs:
            sizes = [shaped.sizes[n] for n in shaped.tensors[value].dims]
            shape = [at[each.name] if each.fixed is None else each.fixed for each in sizes]
            arrays.append((8 * numbers.uniform(0.1, 0.4, shape)).astype(TYPES[dtype]))
        calls.append(arrays)
    return shaped, calls


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")
def test_random_extents() -> None:
    """Every access is looked at, in several orders of threads, which give the same bits."""
    batch = Batch("cuda-checked")
    for seed in range(len(TEXTS)):
        shaped, given = trial(seed)
        batch.add(shaped)
        for arrays in given:
            batch.call(shaped, arrays)
    copied = [any("_copy" in buffer.name for buffer in each.buffers) for each in batch.programs]
    assert sum(copied) >= len(batch.programs) // 2
    batch.agree(1e-5)
