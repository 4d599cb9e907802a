"""Workloads drawn at random, beside NumPy, PyTorch and JAX: ``python -m bench --suite drawn --seed 7``.

Nobody chooses these shapes: a seed gives a contraction of any axes, reductions over any axes, norms of rows and of
columns, convolutions, pooling, permutations, products in a row and small arrays. A new seed is drawn for each run that
names none, and printed, so that a run can be repeated and none is tuned for.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.suites import Task, arrays, kept

Array = npt.NDArray[Any]

ELEMENTS = 3_000_000
"""Elements of the largest array of a workload, at most."""
OPERATIONS = 2e9
"""Multiplications of a contraction, at most."""


def tasks(seed: int, count: int) -> Iterator[Task]:
    """As many tasks of a seed, of all kinds in turn."""
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        yield KINDS[number % len(KINDS)](rng)


def _arrays(rng: random.Random, *shapes: Sequence[int]) -> tuple[Array, ...]:
    return arrays(rng.randrange(2**32), "float32", *shapes)


def _extent(rng: random.Random, most: float) -> int:
    """An extent up to ``most``, as often below its root as above it."""
    return max(1, round(math.exp(rng.uniform(0, math.log(max(1.5, most))))))


def _extents(rng: random.Random, letters: str, most: float) -> dict[str, int]:
    """An extent for each letter, whose product is ``most`` at most, and a tenth of that at least."""
    while True:
        extents = {letter: _extent(rng, most ** (2 / len(letters))) for letter in letters}
        if most / 10 <= math.prod(extents.values()) <= most:
            return extents


def _shuffled(rng: random.Random, letters: str) -> str:
    return "".join(rng.sample(letters, len(letters)))


def contraction(rng: random.Random) -> Task:
    """A product of two arrays, summed over some axes: axes of both, of each side and of all are drawn."""
    while True:
        counts = [rng.choice((0, 0, 1)), *(rng.choice((1, 1, 2)) for _ in range(3))]
        letters = iter("abcdefg")
        batch, left, right, summed = ("".join(next(letters) for _ in range(n)) for n in counts)
        extents = _extents(rng, batch + left + right + summed, OPERATIONS)
        terms = [_shuffled(rng, axes) for axes in (batch + left + summed, batch + right + summed)]
        result = _shuffled(rng, batch + left + right)
        shapes = [[extents[axis] for axis in axes] for axes in (*terms, result)]
        if max(map(math.prod, shapes)) <= ELEMENTS and extents[summed[0]] > 1:
            break
    every = result + summed
    spec = f"{','.join(terms)}->{result}"
    return Task(
        "contraction",
        f"{terms[0]}*{terms[1]}~{every} >> +{every}~{result}",
        _arrays(rng, *shapes[:2]),
        lambda xp, x, y: xp.einsum(spec, x, y),
        spec,
    )


def _reduction(rng: random.Random) -> Task:
    """A sum, a maximum, a mean or a variance over some axes."""
    letters = "abcd"[: rng.choice((2, 2, 3, 4))]
    extents = _extents(rng, letters, ELEMENTS)
    over = sorted(rng.sample(range(len(letters)), rng.randint(1, len(letters) - 1)))
    meaning: Callable[..., Any]
    name, meaning = rng.choice(
        (
            ("sum", lambda xp, x: xp.sum(x, tuple(over))),
            ("max", lambda xp, x: xp.amax(x, tuple(over))),
            ("mean", lambda xp, x: xp.mean(x, tuple(over))),
            (
                "var",
                lambda xp, x: xp.mean((x - xp.mean(x, tuple(over), **kept(xp))) ** 2, tuple(over)),
            ),
        )
    )
    axes = " ".join(f"[{c}]" if n in over else c for n, c in enumerate(letters))
    return Task(
        "reduction", f'einx.{name}("{axes}")', _arrays(rng, list(extents.values())), meaning
    )


def _norm(rng: random.Random) -> Task:
    """Softmax, or a product with the sum of squares, of rows or of columns."""
    extents = _extents(rng, "ij", ELEMENTS)
    axis = rng.choice((0, 1))
    axes = ("[i] j", "i [j]")[axis]
    if rng.random() < 0.5:
        text = f'einx.softmax("{axes}")'

        def meaning(xp: Any, x: Any) -> Any:
            e = xp.exp(x - xp.amax(x, axis, **kept(xp)))
            return e / e.sum(axis, **kept(xp))
    else:
        left = "ij"[1 - axis]
        text = f"(I & ((I & I) >> ij*ij~ij >> +ij~{left})) >> ij*{left}~ij"

        def meaning(xp: Any, x: Any) -> Any:
            return x * xp.sum(x * x, axis, **kept(xp))

    return Task("norm", text, _arrays(rng, list(extents.values())), meaning)


def _convolution(rng: random.Random) -> Task:
    """Channels first; full, of 1 x 1, or depthwise."""
    form = rng.choice(("full", "full", "point", "depth"))
    side = 1 if form == "point" else rng.choice((3, 5))
    batch, size = rng.choice((1, 1, 4)), rng.choice((7, 14, 28, 56)) + rng.randint(0, 3)
    channels = _extent(rng, 256)
    outputs = channels if form == "depth" else _extent(rng, 256)
    image = (batch, channels, size + side - 1, size + side - 1)
    weights = (channels, side, side) if form == "depth" else (outputs, channels, side, side)
    if form == "depth":
        text = "nc(h+r)(w+s)*crs~nchwrs >> +nchwrs~nchw"
    else:
        text = "nc(h+r)(w+s)*kcrs~nkhwcrs >> +nkhwcrs~nkhw"

    def meaning(xp: Any, x: Any, w: Any) -> Any:
        if xp.__name__ == "torch":
            kernel = w[:, None] if form == "depth" else w
            return xp.conv2d(x, kernel, groups=channels if form == "depth" else 1)
        if xp.__name__ == "jax.numpy":
            from jax import lax

            kernel = w[:, None] if form == "depth" else w
            groups = channels if form == "depth" else 1
            return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", feature_group_count=groups)
        windows = np.lib.stride_tricks.sliding_window_view(x, (side, side), (2, 3))
        spec = "nchwrs,crs->nchw" if form == "depth" else "nchwrs,kcrs->nkhw"
        return np.einsum(spec, windows, w, optimize=True)

    return Task("convolution", text, _arrays(rng, image, weights), meaning)


def _pooling(rng: random.Random) -> Task:
    """The largest or the sum of windows of 2 x 2, channels first or last."""
    last = rng.random() < 0.5
    n, c, h, w = rng.choice((1, 4, 8)), _extent(rng, 128), *(2 * rng.randint(5, 60) for _ in "hw")
    sign = rng.choice("+>")
    text = f"{sign}n(2h+r:2)(2w+s:2)c~nhwc" if last else f"{sign}nc(2h+r:2)(2w+s:2)~nchw"
    axes = (2, 4) if last else (3, 5)
    parts = (n, h // 2, 2, w // 2, 2, c) if last else (n, c, h // 2, 2, w // 2, 2)

    def meaning(xp: Any, x: Any) -> Any:
        cut = x.reshape(parts)
        return cut.sum(axes) if sign == "+" else xp.amax(cut, axes)

    shape = (n, h, w, c) if last else (n, c, h, w)
    return Task("pooling", text, _arrays(rng, shape), meaning)


def _permutation(rng: random.Random) -> Task:
    letters = "abcd"[: rng.choice((2, 3, 4))]
    extents = _extents(rng, letters, ELEMENTS)
    order = list(range(len(letters)))
    while order == sorted(order):
        rng.shuffle(order)
    result = "".join(letters[n] for n in order)
    return Task(
        "permutation",
        f"+{letters}~{result}",
        _arrays(rng, list(extents.values())),
        lambda xp, x: _permuted(xp, x, order),
    )


def _permuted(xp: Any, x: Any, order: Sequence[int]) -> Any:
    if xp.__name__ == "torch":
        return x.permute(*order).clone(memory_format=xp.contiguous_format)
    return x.transpose(order).copy() if xp is np else x.transpose(order)


def _chain(rng: random.Random) -> Task:
    """Two products with pointwise work between: a layer of a network and the next."""
    n, k, m, p = (_extent(rng, 700) for _ in range(4))
    text = "(ik*kj~ijk >> +ijk~ij >> >ij~ij | I) >> ij*jl~ilj >> +ilj~il"

    def meaning(xp: Any, x: Any, v: Any, w: Any) -> Any:
        hidden = xp.matmul(x, v)
        return xp.matmul(hidden * (hidden > 0), w)

    return Task("chain", text, _arrays(rng, (n, k), (k, m), (m, p)), meaning)


def _small(rng: random.Random) -> Task:
    """Many small products, or one; pointwise work on few elements."""
    n, k, m = (rng.randint(2, 12) for _ in range(3))
    if rng.random() < 0.5:
        batch = _extent(rng, 20_000)
        return Task(
            "small",
            "bik*bkj~bijk >> +bijk~bij",
            _arrays(rng, (batch, n, k), (batch, k, m)),
            lambda xp, x, y: xp.matmul(x, y),
        )
    return Task(
        "small",
        "ij*ij~ij",
        _arrays(rng, (n, 8 * m), (n, 8 * m)),
        lambda xp, x, y: xp.multiply(x, y),
    )


KINDS = (
    contraction,
    _reduction,
    _norm,
    contraction,
    _convolution,
    _reduction,
    _permutation,
    contraction,
    _pooling,
    _chain,
    _small,
)
