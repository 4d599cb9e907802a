"""Random contractions with schedules for blocks, every staged input in memory that a block shares, most of it twice.

Each is refused by a rule, or emulated with every access checked, in several orders of threads, at ragged, empty and
small extents.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np

from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import GPU
from ilang.core.pipeline import graph_of, infer, lower, text_component
from ilang.core.record import record
from tests.property.batch import Batch

SIDES = ((16,), (8,), (4,), (5,), (3,), (8, 2), (4, 4), (2, 4, 4))
TERMS = ((8,), (16,), (4,), (3,), (2, 4), (4, 8), (3, 5))
EXTENTS = ((33, 20, 19), (16, 32, 16), (1, 1, 1), (5, 0, 3), (17, 3, 40), (0, 4, 2), (8, 64, 8))
"""Of i, k and j."""
TOLERANCE = 1e-5


@record
class Contraction:
    """A program text, and the shapes of what it is called on."""

    text: str
    shapes: tuple[tuple[tuple[int, ...], ...], ...]


def draw(seed: int) -> Contraction:
    """A contraction of two inputs, the first of which may be computed where it is staged."""
    rng = random.Random(seed)
    batch = rng.choice(("", "", "b"))
    left, right = (batch + "".join(rng.sample(pair, 2)) for pair in ("ik", "kj"))
    splits = {"i": rng.choice(SIDES), "j": rng.choice(SIDES), "k": rng.choice(TERMS)}
    outer = [*batch, *rng.sample("ij", 2)]
    terms = [_loop("k", part) for part in range(len(splits["k"]))]
    inner = [_loop("k", len(splits["k"]))]
    sides = [
        _loop(axis, part) for part in range(1, 4) for axis in "ij" if part <= len(splits[axis])
    ]
    inside = sides + inner if rng.random() < 0.5 else inner + sides
    around = [*outer, *terms]
    sites = [rng.choice((len(around), len(around), len(around) - 1)) for _ in range(2)]
    staged = [loop for n, loop in enumerate(around) for loop in (loop, *_at(sites, n + 1))]
    spaces = [
        f"{n}:{space}" for n in range(2) if (space := rng.choice(("s2", "s2", "s2", "s", "")))
    ]
    product = f"{left}*{right}~{batch}ijk"
    order = " ".join((*staged, *inside))
    lines = [
        f"{product} | {_splits(splits)} | {order}" + (f" | {','.join(spaces)}" if spaces else ""),
        f"+{batch}ijk~{batch}ij | {_splits(splits)} | {' '.join((*around, *inside))} 0{_roles(rng, splits, outer)}",
    ]
    if rng.random() < 0.3:
        own = {axis: splits[axis] for axis in "ik"}
        first = [loop for loop in around[: sites[0]] if loop[0] in left]
        rest = [loop for loop in (*around[sites[0] :], *inside) if loop[0] in left]
        lines.insert(0, f"-{left}~{left} | {_splits(own)} | {' '.join((*first, *rest))}")
    elif rng.random() < 0.3:  # computed before
        spaces = ["0:c2", *(space for space in spaces if space[0] == "1")]
        lines[0] = f"-{left}~{left} >> {product} | {_splits(splits)} | {order} | {','.join(spaces)}"
    shapes = tuple(
        tuple(
            tuple({"i": i, "k": k, "j": j, "b": 2}[axis] for axis in each) for each in (left, right)
        )
        for i, k, j in rng.sample(EXTENTS, 3)
    )
    return Contraction(" >> ".join(lines), shapes)


def _loop(axis: str, part: int) -> str:
    return axis + "'" * part


def _at(sites: Sequence[int], depth: int) -> list[str]:
    """The digits that stand inside so many loops."""
    return [str(n) for n, site in enumerate(sites) if site == depth]


def _splits(splits: Mapping[str, tuple[int, ...]]) -> str:
    return ",".join(f"{axis}:{':'.join(map(str, parts))}" for axis, parts in splits.items())


def _roles(rng: random.Random, splits: Mapping[str, tuple[int, ...]], outer: Sequence[str]) -> str:
    """Blocks and threads by position, or by name."""
    if rng.random() < 0.5:
        return ""
    names = [f"{loop}:{role}" for loop, role in zip(reversed(outer), "xyz", strict=False)]
    names += ["i':ty", "j':tx"]
    names += ["k:p"] if rng.random() < 0.4 else []
    names += [f"{_loop(axis, part)}:u" for axis in "ij" for part in range(2, len(splits[axis]) + 1)]
    return f" | {','.join(names)}"


def lowered(contraction: Contraction, name: str) -> tuple[Shaped, Program] | None:
    """A contraction inferred and lowered; None where its schedule is refused."""
    shaped = infer(graph_of(text_component(contraction.text), name))
    try:
        return shaped, lower(shaped, GPU)
    except ScheduleError:
        return None


def failures(seeds: Sequence[int]) -> tuple[int, list[str]]:
    """How many contractions were run, and what was wrong with which."""
    batch, texts = Batch("cuda-checked"), list[str]()
    for seed in seeds:
        contraction, numbers = draw(seed), np.random.default_rng(seed)
        made = lowered(contraction, "c")
        if made is None:
            continue
        batch.add(made[0])
        for shapes in contraction.shapes:
            batch.call(made[0], [numbers.normal(size=s).astype(np.float32) for s in shapes])
            texts.append(f"seed {seed}, {shapes}: {contraction.text}")
    found = []
    for text, (_, answer, outputs) in zip(texts, batch.answers(), strict=True):
        if answer.trouble:
            found.append(f"{text}\n{answer.trouble}")
        for got, want in zip(answer.outputs, outputs, strict=True):
            if not np.allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE):
                found.append(f"{text}\nis wrong by {np.abs(got - want).max()}")
    return len(batch.programs), found
