"""Workloads drawn at random, beside NumPy, PyTorch and JAX: ``python -m bench --suite drawn --seed 7``.

Nobody chooses these shapes: a seed gives a contraction of any axes, reductions over any axes, norms of rows and of
columns, convolutions, pooling, permutations, products in a row and small arrays. A new seed is drawn for each run that
names none, and printed, so that a run can be repeated and none is tuned for.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.measure import OURS, QUIET, Effort, rounds
from bench.references import mistake
from ilang.core.record import record

Array = npt.NDArray[Any]
Call = Callable[[], Any]

ELEMENTS = 3_000_000
"""Elements of the largest array of a workload, at most."""
OPERATIONS = 2e9
"""Multiplications of a contraction, at most."""


@record
class Drawn:
    """A workload: our program, its arrays, and the same in words of NumPy, PyTorch and JAX alike.

    ``meaning`` takes a module, ``numpy``, ``torch`` or ``jax.numpy``, and the arrays as that module has them.
    """

    kind: str
    text: str
    arrays: tuple[Array, ...]
    meaning: Callable[..., Any]

    def name(self) -> str:
        """The program and the shapes of its arrays."""
        shapes = " ".join("x".join(map(str, array.shape)) for array in self.arrays)
        return f"{self.text}  {shapes}"


def drawn(seed: int, count: int) -> Iterator[Drawn]:
    """As many workloads of a seed, of all kinds in turn."""
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        yield KINDS[number % len(KINDS)](rng)


def _arrays(rng: random.Random, *shapes: Sequence[int]) -> tuple[Array, ...]:
    numbers = np.random.default_rng(rng.randrange(2**32))
    return tuple(numbers.standard_normal(shape).astype(np.float32) for shape in shapes)


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


def contraction(rng: random.Random) -> Drawn:
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
    return Drawn(
        "contraction",
        f"{terms[0]}*{terms[1]}~{every} >> +{every}~{result}",
        _arrays(rng, *shapes[:2]),
        lambda xp, x, y: xp.einsum(spec, x, y),
    )


def _reduction(rng: random.Random) -> Drawn:
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
                lambda xp, x: xp.mean((x - xp.mean(x, tuple(over), **_kept(xp))) ** 2, tuple(over)),
            ),
        )
    )
    axes = " ".join(f"[{c}]" if n in over else c for n, c in enumerate(letters))
    return Drawn(
        "reduction",
        f'einx.{name}("{axes}")',
        _arrays(rng, list(extents.values())),
        meaning,
    )


def _kept(xp: Any) -> Mapping[str, bool]:
    """The option of a reduction that leaves its axes."""
    return {"keepdim" if xp.__name__ == "torch" else "keepdims": True}


def _norm(rng: random.Random) -> Drawn:
    """Softmax, or a product with the sum of squares, of rows or of columns."""
    extents = _extents(rng, "ij", ELEMENTS)
    axis = rng.choice((0, 1))
    axes = ("[i] j", "i [j]")[axis]
    if rng.random() < 0.5:
        text = f'einx.softmax("{axes}")'

        def meaning(xp: Any, x: Any) -> Any:
            e = xp.exp(x - xp.amax(x, axis, **_kept(xp)))
            return e / e.sum(axis, **_kept(xp))
    else:
        kept = "ij"[1 - axis]
        text = f"(I & ((I & I) >> ij*ij~ij >> +ij~{kept})) >> ij*{kept}~ij"

        def meaning(xp: Any, x: Any) -> Any:
            return x * xp.sum(x * x, axis, **_kept(xp))

    return Drawn("norm", text, _arrays(rng, list(extents.values())), meaning)


def _convolution(rng: random.Random) -> Drawn:
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

    return Drawn("convolution", text, _arrays(rng, image, weights), meaning)


def _pooling(rng: random.Random) -> Drawn:
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
    return Drawn("pooling", text, _arrays(rng, shape), meaning)


def _permutation(rng: random.Random) -> Drawn:
    letters = "abcd"[: rng.choice((2, 3, 4))]
    extents = _extents(rng, letters, ELEMENTS)
    order = list(range(len(letters)))
    while order == sorted(order):
        rng.shuffle(order)
    result = "".join(letters[n] for n in order)
    return Drawn(
        "permutation",
        f"+{letters}~{result}",
        _arrays(rng, list(extents.values())),
        lambda xp, x: _permuted(xp, x, order),
    )


def _permuted(xp: Any, x: Any, order: Sequence[int]) -> Any:
    if xp.__name__ == "torch":
        return x.permute(*order).clone(memory_format=xp.contiguous_format)
    return x.transpose(order).copy() if xp is np else x.transpose(order)


def _chain(rng: random.Random) -> Drawn:
    """Two products with pointwise work between: a layer of a network and the next."""
    n, k, m, p = (_extent(rng, 700) for _ in range(4))
    text = "(ik*kj~ijk >> +ijk~ij >> >ij~ij | I) >> ij*jl~ilj >> +ilj~il"

    def meaning(xp: Any, x: Any, v: Any, w: Any) -> Any:
        hidden = xp.matmul(x, v)
        return xp.matmul(hidden * (hidden > 0), w)

    return Drawn("chain", text, _arrays(rng, (n, k), (k, m), (m, p)), meaning)


def _small(rng: random.Random) -> Drawn:
    """Many small products, or one; pointwise work on few elements."""
    n, k, m = (rng.randint(2, 12) for _ in range(3))
    if rng.random() < 0.5:
        batch = _extent(rng, 20_000)
        return Drawn(
            "small",
            "bik*bkj~bijk >> +bijk~bij",
            _arrays(rng, (batch, n, k), (batch, k, m)),
            lambda xp, x, y: xp.matmul(x, y),
        )
    return Drawn(
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


def run(seed: int, count: int, threads: int, effort: Effort) -> list[dict[str, Any]]:
    """Time workloads of a seed on us and on the peers that are installed.

    Returns:
        For each workload its ``name`` and ``kind``, the least time of each contestant in seconds, ``times``, and why
        one was left out, ``wrong``.
    """
    found = []
    for workload in drawn(seed, count):
        right = workload.meaning(np, *(array.astype(np.float64) for array in workload.arrays))
        calls: dict[str, Call] = {}
        wrong: dict[str, str] = {}
        for name, prepare in PREPARED.items():
            try:
                calls[name] = prepare(workload, threads)
                mistaken = mistake(calls[name](), (np.asarray(right),))
            except ImportError:
                continue
            except Exception as error:  # whatever a foreign package raises
                mistaken = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            if mistaken:
                wrong[name] = mistaken
                calls.pop(name, None)
        samples = rounds(calls, effort, pause=QUIET if 1 < threads else 0)
        times = {name: min(taken) for name, taken in samples.items()}
        found.append(
            {"name": workload.name(), "kind": workload.kind, "times": times, "wrong": wrong}
        )
        print(_line(found[-1]), flush=True)
    return found


def _ours(workload: Drawn, threads: int) -> Call:
    from ilang import einx, i

    text = workload.text
    if text.startswith("einx."):
        name, _, argument = text.removeprefix("einx.").partition("(")
        component = getattr(einx, name)(argument.strip('")'))
    else:
        component = i(text)
    out = component(*workload.arrays, threads=threads)
    return lambda: component(*workload.arrays, out=out, threads=threads)


def _numpy(workload: Drawn, threads: int) -> Call:
    del threads  # of its library: the environment has set it
    return lambda: workload.meaning(np, *workload.arrays)


def _torch(workload: Drawn, threads: int) -> Call:
    import torch

    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(array) for array in workload.arrays]

    def call() -> Any:
        with torch.inference_mode():
            return workload.meaning(torch, *tensors)

    return call


def _jax(workload: Drawn, threads: int) -> Call:
    import jax
    import jax.numpy as jnp

    del threads  # of its library: the environment has set it
    compiled = jax.jit(lambda *arrays: workload.meaning(jnp, *arrays))
    arrays = [jnp.asarray(array) for array in workload.arrays]
    return lambda: compiled(*arrays).block_until_ready()


PREPARED: Mapping[str, Callable[[Drawn, int], Call]] = {
    OURS: _ours,
    "NumPy": _numpy,
    "PyTorch": _torch,
    "JAX": _jax,
}


def ratio(row: Mapping[str, Any]) -> float | None:
    """Our time to that of the best peer; None where one of them is missing."""
    peers = [time for name, time in row["times"].items() if name != OURS]
    return row["times"][OURS] / min(peers) if peers and OURS in row["times"] else None


def _line(row: Mapping[str, Any]) -> str:
    times = sorted((time, name) for name, time in row["times"].items())
    shown = "  ".join(f"{name} {time * 1e3:.3f}" for time, name in times)
    told = "".join(f"  {name}: {why}" for name, why in row["wrong"].items())
    value = ratio(row)
    return f"{'-' if value is None else f'{value:.2f}':>6}  {row['kind']:12s} {row['name']}  ms: {shown}{told}"


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Geometric means by kind and of all, and the worst five."""
    ratios = [(value, row) for row in rows if (value := ratio(row)) is not None]
    lines = []
    for kind in [*dict.fromkeys(row["kind"] for row in rows), "all"]:
        values = sorted(value for value, row in ratios if kind in ("all", row["kind"]))
        if values:
            mean = math.exp(sum(map(math.log, values)) / len(values))
            above = sum(value > 2 for value in values)
            lines.append(
                f"{kind:12s} {len(values):4d}  mean {mean:.2f}  above 2: {above}  worst {values[-1]:.2f}"
            )
    worst = sorted(ratios, key=lambda pair: -pair[0])[:5]
    lines += [f"worst: {value:.2f}  {row['kind']}  {row['name']}" for value, row in worst]
    return "\n".join(lines)
