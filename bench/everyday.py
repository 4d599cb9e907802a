"""Everyday array work: products of odd shapes, rows and columns, pooling, small arrays: ``--suite everyday``.

Extents are those of small models and of data: sequences of 128 to 512, widths of 64 to 3072, images, tables of many
short rows, primes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bench.suites import Task, arrays, kept

Shape = tuple[int, ...]

PRODUCTS: Sequence[Shape] = (
    *(
        (128, 768, 768),
        (128, 768, 3072),
        (128, 3072, 768),
        (197, 384, 384),
        (1, 768, 768),
        (7, 512, 512),
    ),
    *(
        (499, 487, 503),
        (33, 1000, 10),
        (2000, 3, 2000),
        (5000, 16, 16),
        (10, 20_000, 10),
        (257, 65, 129),
    ),
)
"""Rows, summed elements and columns of a product of two matrices."""

BATCHES: Sequence[Shape] = (
    (12, 128, 64, 128),
    (12, 128, 128, 64),
    (64, 17, 33, 9),
    (4000, 4, 4, 4),
    (300, 3, 3, 100),
)
"""The same for many products."""

ROWS: Sequence[Shape] = (
    (128, 768),
    (1536, 128),
    (50_000, 10),
    (3, 400_000),
    (1000, 1000),
    (77, 5003),
)
"""Rows and their lengths."""

POOLED: Sequence[Shape] = ((1, 64, 112, 112), (8, 32, 28, 28), (1, 3, 300, 400))
"""Images, channels, height, width."""

SMALL: Sequence[Shape] = ((3, 4), (16, 16), (10, 100))


def tasks(seed: int, count: int) -> Iterator[Task]:
    """All tasks, whatever the count."""
    del count
    yield from (_product(seed, shape) for shape in PRODUCTS)
    yield from (_batch(seed, shape) for shape in BATCHES)
    for form in (_softmax, _log_sum_exp, _layer_norm, _mean, _largest, _variance):
        yield from (form(seed, shape) for shape in ROWS)
    for form in (_column_sum, _column_variance, _column_softmax):
        yield from (form(seed, shape) for shape in ROWS)
    yield from (_pooling(seed, shape) for shape in POOLED)
    for shape in SMALL:
        yield from _small(seed, shape)


def _product(seed: int, shape: Shape) -> Task:
    n, k, m = shape
    text = "ik*kj~ijk >> +ijk~ij"
    given = arrays(seed, "float32", (n, k), (k, m))
    return Task("product", text, given, lambda xp, x, y: xp.matmul(x, y))


def _batch(seed: int, shape: Shape) -> Task:
    b, n, k, m = shape
    text = "bik*bkj~bijk >> +bijk~bij"
    given = arrays(seed, "float32", (b, n, k), (b, k, m))
    return Task("product", text, given, lambda xp, x, y: xp.matmul(x, y))


def _of_rows(kind: str, text: str, meaning: Callable[..., Any]) -> Callable[[int, Shape], Task]:
    def task(seed: int, shape: Shape) -> Task:
        return Task(kind, text, arrays(seed, "float32", shape), meaning)

    return task


def _exponentials(xp: Any, x: Any, axis: int) -> Any:
    return xp.exp(x - xp.amax(x, axis, **kept(xp)))


def _softmax_along(axis: int) -> Callable[..., Any]:
    def meaning(xp: Any, x: Any) -> Any:
        if xp.__name__ == "torch":
            return xp.softmax(x, axis)
        e = _exponentials(xp, x, axis)
        return e / e.sum(axis, **kept(xp))

    return meaning


def _log_sum(xp: Any, x: Any) -> Any:
    if xp.__name__ == "torch":
        return xp.logsumexp(x, 1)
    return xp.log(_exponentials(xp, x, 1).sum(1)) + xp.amax(x, 1)


def _normalized(xp: Any, x: Any) -> Any:
    if xp.__name__ == "torch":
        return xp.nn.functional.layer_norm(x, x.shape[1:])
    centered = x - x.mean(1, **kept(xp))
    return centered / xp.sqrt((centered * centered).mean(1, **kept(xp)) + 1e-5)


def _variance_along(axis: int) -> Callable[..., Any]:
    def meaning(xp: Any, x: Any) -> Any:
        if xp.__name__ == "torch":
            return xp.var(x, axis, correction=0)
        return xp.var(x, axis)

    return meaning


_softmax = _of_rows("rows", 'einx.softmax("i [j]")', _softmax_along(1))
_log_sum_exp = _of_rows("rows", 'einx.logsumexp("i [j]")', _log_sum)
_mean = _of_rows("rows", 'einx.mean("i [j]")', lambda xp, x: xp.mean(x, 1))
_largest = _of_rows("rows", 'einx.max("i [j]")', lambda xp, x: xp.amax(x, 1))
_variance = _of_rows("rows", 'einx.var("i [j]")', _variance_along(1))
_column_sum = _of_rows("columns", 'einx.sum("[i] j")', lambda xp, x: xp.sum(x, 0))
_column_variance = _of_rows("columns", 'einx.var("[i] j")', _variance_along(0))
_column_softmax = _of_rows("columns", 'einx.softmax("[i] j")', _softmax_along(0))


def _layer_norm(seed: int, shape: Shape) -> Task:
    length = shape[1]
    mean = f"+ij~i >> (I | {length}) >> i/.~i"
    text = (
        f"(I & ({mean})) >> ij-i~ij >> (I & ((I & I) >> ij*ij~ij >> {mean} >> (I | 0.00001)"
        " >> i+.~i >> (I | 0.5) >> i^.~i)) >> ij/i~ij"
    )
    return Task("rows", text, arrays(seed, "float32", shape), _normalized, title="layer norm")


def _pooling(seed: int, shape: Shape) -> Task:
    n, c, h, w = shape
    parts = (n, c, h // 2, 2, w // 2, 2)

    def meaning(xp: Any, x: Any) -> Any:
        if xp.__name__ == "torch":
            return xp.max_pool2d(x, 2)
        return xp.amax(x.reshape(parts), (3, 5))

    return Task("pooling", ">nc(2h+r:2)(2w+s:2)~nchw", arrays(seed, "float32", shape), meaning)


def _small(seed: int, shape: Shape) -> Iterator[Task]:
    given = arrays(seed, "float32", shape, shape)
    yield Task("small", "ij+ij~ij", given, lambda xp, x, y: xp.add(x, y))
    yield Task("small", "ij*ij~ij >> +ij~i", given, lambda xp, x, y: xp.sum(x * y, 1))
    side = math.isqrt(math.prod(shape))
    square = arrays(seed, "float32", (side, side), (side, side))
    yield Task("small", "ik*kj~ijk >> +ijk~ij", square, lambda xp, x, y: xp.matmul(x, y))
    yield Task("small", "+ij~ji", given[:1], _transposed)


def _transposed(xp: Any, x: Any) -> Any:
    if xp.__name__ == "torch":
        return x.t().contiguous()
    return x.T.copy() if xp is np else x.T
