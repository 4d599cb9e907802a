"""Random products of matrices that a schedule gives to a matrix unit.

Each is refused by a rule, or runs on the CPU and on the emulator, in several orders of threads, every access checked.

What is rounded to TF32 or bf16 is exact in what is wanted, and each product of two such numbers in f32. Sums of n
terms, in any order, are then off by n units of 2^-24 of the sum of sizes at most; a result is rounded once more.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.pipeline import fit, graph_of, infer, lower, text_component
from ilang.core.record import record
from ilang.core.reference import evaluate
from tests.property.batch import Batch

ROWS = ((16,), (16,), (32,), (2, 16), (2, 32), (2, 2, 16), (3, 16))
COLUMNS = ((8,), (8,), (16,), (24,), (2, 8), (2, 16), (2, 2, 8))
TERMS = {
    "m": ((8,), (16,), (2, 8), (4, 8), (3, 16), (2, 32)),
    "m16": ((16,), (32,), (2, 16), (4, 16), (3, 32), (2, 48)),
}
"""By the role of the unit."""
EXTENTS = ((33, 20, 19), (16, 32, 16), (1, 1, 1), (5, 0, 3), (17, 3, 40), (0, 4, 2), (64, 64, 48))
"""Of rows, terms and columns."""


@record
class UnitProduct:
    """A program text, and the shapes of what it is called on, those that are ``known`` before or several."""

    text: str
    shapes: tuple[tuple[tuple[int, ...], ...], ...]
    known: tuple[tuple[int, ...], ...] | None = None


def draw(seed: int) -> UnitProduct:
    """A product of two inputs, in any order and each transposed or not, perhaps in a batch."""
    rng = random.Random(seed)
    unit = ("m", "m16")[seed % 2]
    batch = rng.choice(("", "", "b"))
    rows, columns = rng.sample("ij", 2)
    left = batch + "".join(rng.sample((rows, "k"), 2))
    right = batch + "".join(rng.sample((columns, "k"), 2))
    first, second = rng.sample((left, right), 2)
    splits = {rows: rng.choice(ROWS), columns: rng.choice(COLUMNS), "k": rng.choice(TERMS[unit])}
    last = {axis: len(splits[axis]) for axis in splits}
    between = [
        (axis, part)
        for part in range(1, 4)
        for axis in rng.sample((rows, columns), 2)
        if part < last[axis]
    ]
    outer = [*batch, *rng.sample("ij", 2)]
    terms = [loop("k", part) for part in range(last["k"])]
    inside = [loop("k", last["k"]), *(loop(*each) for each in between)]
    inside += [loop(rows, last[rows]), loop(columns, last[columns])]
    around = [*outer, *terms]
    sites = [rng.choice((len(around), len(around), len(around) - 1, None)) for _ in range(2)]
    staged = [
        word
        for depth, each in enumerate(around, 1)
        for word in (each, *(str(n) for n in range(2) if sites[n] == depth))
    ]
    spaces = [
        f"{n}:{space}"
        for n in range(2)
        if sites[n] is not None and (space := rng.choice(("s2", "s2", "s", "")))
    ]
    written = ",".join(f"{axis}:{':'.join(map(str, parts))}" for axis, parts in splits.items())
    roles = [f"{loop(axis, part)}:{'t' if part == 1 else 'u'}" for axis, part in between]
    roles += [f"{loop(axis, last[axis])}:{unit}" for axis in (rows, columns, "k")]
    blocks = [f"{axis}:p" for axis in outer]
    roles += rng.choice(
        (blocks, [f"{a}:{b}" for a, b in zip(reversed(outer), "xyz", strict=False)])
    )
    roles += ["k:p"] if rng.random() < 0.2 else []
    product = f"{first}*{second}~{batch}ijk | {written} | {' '.join((*staged, *inside))}"
    product += f" | {','.join(spaces)}" if spaces else ""
    total = (
        f"+{batch}ijk~{batch}ij | {written} | {' '.join((*around, *inside))} 0 | {','.join(roles)}"
    )
    shapes = []
    for n, k, m in rng.sample(EXTENTS, 3):
        extent = {rows: n, "k": k, columns: m, "b": 2}
        shapes.append(tuple(tuple(extent[axis] for axis in each) for each in (first, second)))
    if rng.random() < 0.4:
        return UnitProduct(f"{product} >> {total}", tuple(shapes[:1]), shapes[0])
    return UnitProduct(f"{product} >> {total}", tuple(shapes))


def loop(axis: str, part: int) -> str:
    """A loop as it is written."""
    return axis + "'" * part


def lowered(product: UnitProduct, name: str, machine: Machine) -> tuple[Shaped, Program] | None:
    """A product inferred and lowered; None where its schedule is refused."""
    shaped = infer(graph_of(text_component(product.text), name), shapes=product.known)
    try:
        return shaped, lower(shaped, machine)
    except ScheduleError:
        return None


def failures(seeds: Sequence[int], modes: Sequence[str]) -> tuple[int, list[str]]:
    """How many products were run on a GPU, and what was wrong with which in a mode of it or of C."""
    batches = [Batch(mode) for mode in modes]
    texts: list[str] = []
    most: list[Any] = []
    for seed in seeds:
        product, numbers = draw(seed), np.random.default_rng(seed)
        if any(lowered(product, "u", machine) is None for machine in (CPU, GPU)):
            continue
        shaped = infer(graph_of(text_component(product.text), "u"), shapes=product.known)
        for batch in batches:
            batch.add(shaped)
        for shapes in product.shapes:
            arrays = [numbers.normal(size=shape).astype(np.float32) for shape in shapes]
            sizes = [np.abs(array) for array in arrays]
            (size,) = evaluate(shaped, sizes, fit(shaped, shapes), exact=True)
            most.append((max(map(max, shapes)) + 1) * 2.0**-24 * size)
            texts.append(f"seed {seed}, {shapes}: {product.text}")
            for batch in batches:
                batch.call(shaped, arrays)
    found = []
    for batch in batches:
        for text, (_, answer, (want,)), bound in zip(texts, batch.answers(), most, strict=True):
            if answer.trouble:
                found.append(f"{batch.mode}: {text}\n{answer.trouble}")
            elif (off := np.abs(answer.outputs[0] - want) > bound).any():
                found.append(f"{batch.mode}: {text}\nis wrong at {np.argwhere(off)[:5]}")
    return len(batches[0].programs), found
