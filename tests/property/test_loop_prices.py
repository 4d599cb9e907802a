"""Loops that a price chooses for reductions without a tile: whatever the price says, values are right."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ilang import i
from ilang.core.schedule.choose.tile_cost import Price

pytestmark = pytest.mark.usefixtures("compiled_quickly")

EXTENTS = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 65, 70, 90)
FOLDS: dict[str, Callable[..., Any]] = {"+": np.sum, ">": np.max, "<": np.min}


def _reduction(rng: random.Random) -> tuple[str, str, tuple[int, ...], tuple[int, ...]]:
    """A reduction of some axes, kept ones in any order: its text, operator, shape, and the reduced dimensions."""
    letters = "abcd"[: rng.randint(2, 4)]
    reduced = rng.sample(letters, rng.randint(1, len(letters) - 1))
    kept = [letter for letter in letters if letter not in reduced]
    shape = tuple(rng.choice(EXTENTS[: 16 if len(letters) < 4 else 9]) for _ in letters)
    op = rng.choice([*FOLDS])
    return f"{op}{letters}~{''.join(kept)}", op, shape, tuple(map(letters.index, reduced))


@pytest.mark.parametrize("seed", range(40))
def test_every_reduction_is_right(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random prices choose random loops."""
    rng = random.Random(seed)
    text, op, shape, reduced = _reduction(rng)
    monkeypatch.setattr(Price, "cycles", lambda _: rng.random())
    array = np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)
    assert np.array_equal(i(text)(array), FOLDS[op](array, axis=reduced))


@pytest.mark.parametrize("seed", range(40))
def test_every_window_is_right(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows in steps, along rows with channels before or after them."""
    rng = random.Random(seed)
    window, step, op = rng.randint(2, 4), rng.randint(1, 3), rng.choice([*FOLDS])
    height, width = (step * rng.choice(EXTENTS[:12]) + window for _ in range(2))
    before, after = rng.choice((("c", ""), ("", "c")))
    walked = f"{before}({step}h+r:{window})({step}w+s:{window}){after}"
    monkeypatch.setattr(Price, "cycles", lambda _: rng.random())
    channels = rng.choice(EXTENTS)
    shape = (channels, height, width) if before else (height, width, channels)
    array = np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)
    axes = (1, 2) if before else (0, 1)
    views = np.lib.stride_tricks.sliding_window_view(array, (window, window), axes)
    strided = views[:, ::step, ::step] if before else views[::step, ::step]
    wanted = FOLDS[op](strided, axis=(-2, -1))
    found = i(f"{op}{walked}~{before}hw{after}")(array)
    assert np.array_equal(found, wanted[tuple(map(slice, found.shape))])


@pytest.mark.parametrize("seed", range(30))
def test_every_transpose_is_right(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies and sums of what runs along other axes go in blocks of random lengths."""
    rng = random.Random(seed)
    monkeypatch.setattr(Price, "cycles", lambda _: rng.random())
    letters = "ijk"[: rng.randint(2, 3)]
    order = [*letters]
    while order[-1] == letters[-1]:
        rng.shuffle(order)
    shape = tuple(rng.choice((*EXTENTS[3:], 130, 300)) for _ in letters)
    array = np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)
    wanted = array.transpose([letters.index(letter) for letter in order])
    out = "".join(order)
    assert np.array_equal(i(f"{letters}~{out}")(array), wanted)
    other = np.ascontiguousarray(wanted[::-1])
    assert np.array_equal(i(f"{letters}+{out}~{out}")(array, other), wanted + other)


@pytest.mark.parametrize("seed", range(20))
def test_every_place_inside_of_a_reader_is_right(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a reduction is computed inside of keeps its outer loops."""
    rng = random.Random(seed)
    monkeypatch.setattr(Price, "cycles", lambda _: rng.random())
    shape = tuple(rng.choice(EXTENTS) for _ in range(3))
    array = np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)
    op, kept = rng.choice([*FOLDS]), rng.choice(("i", "j", "k", "ij", "ik", "jk"))
    reduced = tuple(axis for axis, letter in enumerate("ijk") if letter not in kept)
    wanted = array - FOLDS[op](array, axis=reduced, keepdims=True)
    assert np.array_equal(i(f"(I & {op}ijk~{kept}) >> ijk-{kept}~ijk")(array), wanted)


@pytest.mark.parametrize("kept", [26, 58, 60, 226, 270, 300])
@pytest.mark.parametrize("rows", [None, 3, 10])
def test_partial_sums_of_rows_that_vectors_do_not_divide(kept: int, rows: int | None) -> None:
    """Two vectors that overlap are not added to what is in memory: elements of both would be added twice."""
    schedule = "" if rows is None else f" | a:{rows} | a b a' c"
    array = np.random.default_rng(kept).integers(-9, 10, (30, 410, kept)).astype(np.float32)
    assert np.array_equal(i(f"+abc~ac{schedule}")(array), array.sum(1))
