"""Suites of workloads beside NumPy, PyTorch, JAX and opt_einsum: ``python -m bench --suite tccg``.

A suite is a list of tasks: a program of ours, its arrays, and the same computation in words of the peers. Results are
compared with NumPy's in float64 before anything is timed. A suite ends with geometric means of our time to that of the
best peer, and the worst five tasks.
"""

from __future__ import annotations

import importlib
import math
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.measure import OURS, QUIET, Effort, rounds
from bench.references import TOLERANCE, mistake
from bench.report import marked, threads_of
from ilang.codegen.compile import toolchain
from ilang.core.record import record

Array = npt.NDArray[Any]
Call = Callable[[], Any]

LIMIT = 1.5
"""Tasks above this ratio are counted."""

SUITES = ("drawn", "tccg", "polybench", "convolutions", "everyday")
"""Each a module of this package whose ``tasks(seed, count)`` gives its tasks."""


TOLERANCE_OF_DOUBLE = 1e-9
"""How far a float64 result may be off, relative to the largest value of the right one."""


@record
class Task:
    """One workload: our program, its arrays, and the same in words of NumPy, PyTorch and JAX alike.

    ``meaning`` takes a module, ``numpy``, ``torch`` or ``jax.numpy``, and the arrays as that module has them. A
    contraction has its ``spec`` in the words of einsum, for peers that know no others. ``title`` names a program that
    is too long to stand in a table. ``loops`` is C for the same, of a function ``run`` that takes the arrays and then
    ``outputs``, the shapes of its results.
    """

    kind: str
    text: str
    arrays: tuple[Array, ...]
    meaning: Callable[..., Any]
    spec: str = ""
    title: str = ""
    loops: str = ""
    outputs: tuple[Sequence[int], ...] = ()

    def name(self) -> str:
        """The title, or the program, and the shapes of its arrays."""
        shapes = " ".join("x".join(map(str, array.shape)) for array in self.arrays)
        return f"{self.title or self.text}  {shapes}"


def arrays(seed: int, dtype: str, *shapes: Sequence[int]) -> tuple[Array, ...]:
    """Arrays of normal numbers, the same for a seed."""
    numbers = np.random.default_rng(seed)
    return tuple(numbers.standard_normal(shape).astype(dtype) for shape in shapes)


def kept(xp: Any) -> Mapping[str, bool]:
    """The option of a reduction that leaves its axes with extent 1, in a module's words."""
    return {"keepdim" if xp.__name__ == "torch" else "keepdims": True}


def tasks_of(suite: str, seed: int, count: int) -> Iterable[Task]:
    """The tasks of a suite; a suite of fixed tasks takes no notice of seed and count."""
    found: Iterable[Task] = importlib.import_module(f"bench.{suite}").tasks(seed, count)
    return found


def run(
    tasks: Iterable[Task], threads: int, effort: Effort, without: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Time tasks on us and on the peers that are installed, but for some.

    Returns:
        For each task its ``name`` and ``kind``, the least time of each contestant in seconds, ``times``, and why
        one was left out, ``wrong``.
    """
    found = []
    for task in tasks:
        right = task.meaning(np, *(array.astype(np.float64) for array in task.arrays))
        expected = tuple(map(np.asarray, right if isinstance(right, tuple) else (right,)))
        is_double = task.arrays[0].dtype == np.float64
        tolerance = TOLERANCE_OF_DOUBLE if is_double else TOLERANCE
        calls: dict[str, Call] = {}
        wrong: dict[str, str] = {}
        for name, prepare in PREPARED.items():
            if name in without:
                continue
            call = None
            try:
                call = prepare(task, threads)
                mistaken = None if call is None else mistake(call(), expected, tolerance)
            except ImportError:
                continue
            except Exception as error:  # whatever a foreign package raises
                mistaken = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            if mistaken:
                wrong[name] = mistaken
            elif call is not None:
                calls[name] = call
        samples = rounds(calls, effort, pause=QUIET if 1 < threads else 0)
        times = {name: min(taken) for name, taken in samples.items()}
        found.append({"name": task.name(), "kind": task.kind, "times": times, "wrong": wrong})
        print(_line(found[-1]), flush=True)
    return found


def _ours(task: Task, threads: int) -> Call:
    """A call that returns a new array, as those of peers do: one of its own would be in memory, theirs in a cache."""
    from ilang import einx, i

    text = task.text
    if text.startswith("einx."):
        name, _, argument = text.removeprefix("einx.").partition("(")
        component = getattr(einx, name)(argument.strip('")'))
    else:
        component = i(text)
    return lambda: component(*task.arrays, threads=threads)


def _opt_einsum(task: Task, threads: int) -> Call | None:
    """Contractions, planned by opt_einsum and run by PyTorch."""
    if not task.spec:
        return None
    import opt_einsum
    import torch

    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(array) for array in task.arrays]
    planned = opt_einsum.contract_expression(task.spec, *(array.shape for array in task.arrays))
    return lambda: planned(*tensors, backend="torch")


def _loops(task: Task, threads: int) -> Call | None:
    """Plain loops in C, compiled as everything of ours is; they have one thread."""
    if not task.loops or 1 < threads:
        return None
    import ctypes

    with tempfile.TemporaryDirectory() as folder:
        toolchain.build(task.loops, Path(folder), toolchain.library_recipe())
        run = ctypes.CDLL(str(Path(folder, "program.so"))).run
    results = [np.empty(shape, task.arrays[0].dtype) for shape in task.outputs]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*task.arrays, *results)]

    def call() -> Any:
        run(*pointers)
        return tuple(results)

    return call


def _numpy(task: Task, threads: int) -> Call:
    del threads  # of its library: the environment has set it
    return lambda: task.meaning(np, *task.arrays)


def _torch(task: Task, threads: int) -> Call:
    import torch

    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(array) for array in task.arrays]

    def call() -> Any:
        with torch.inference_mode():
            return task.meaning(torch, *tensors)

    return call


def _jax(task: Task, threads: int) -> Call:
    import jax
    import jax.numpy as jnp

    del threads  # of its library: the environment has set it
    jax.config.update("jax_enable_x64", task.arrays[0].dtype == np.float64)
    compiled = jax.jit(lambda *given: task.meaning(jnp, *given))
    given = [jnp.asarray(array) for array in task.arrays]
    return lambda: jax.block_until_ready(compiled(*given))


PREPARED: Mapping[str, Callable[[Task, int], Call | None]] = {
    OURS: _ours,
    "NumPy": _numpy,
    "PyTorch": _torch,
    "JAX": _jax,
    "opt_einsum": _opt_einsum,
    "C loops": _loops,
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
    lines = [
        f"{kind:12s} {len(values):4d}  mean {_mean(values):.2f}  above 1.5: {_above(values)}  worst {values[-1]:.2f}"
        for kind, values in _by_kind(rows).items()
    ]
    lines += [f"worst: {value:.2f}  {row['kind']}  {row['name']}" for value, row in _worst(rows)]
    return "\n".join(lines)


def markdown(results: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> str:
    """Tables of a page, from rows by suite by number of threads."""
    parts = []
    for threads, suites in results.items():
        table, worst = [], []
        for suite, rows in suites.items():
            for kind, values in _by_kind(rows).items():
                cells = (
                    str(len(values)),
                    f"{_mean(values):.2f}",
                    str(_above(values)),
                    f"{values[-1]:.2f}",
                )
                table.append([suite, kind, *cells])
            worst += [[suite, f"`{row['name']}`", f"{value:.2f}"] for value, row in _worst(rows)]
        heading = ["suite", "kind", "tasks", "geometric mean", "above 1.5", "worst"]
        parts += [f"### Suites, {threads_of(threads)}", marked((heading, table))]
        parts += [marked((["the worst five of", "task", "ours / best"], worst))]
    return "\n\n".join(parts)


def _by_kind(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The ratios of each kind, and of all, sorted; kinds that no peer has are left out."""
    kinds = [*dict.fromkeys(row["kind"] for row in rows), "all"]
    found = {
        kind: sorted(
            value for row in rows if kind in ("all", row["kind"]) and (value := ratio(row))
        )
        for kind in kinds
    }
    return {kind: values for kind, values in found.items() if values}


def _worst(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, Mapping[str, Any]]]:
    """The five rows with the largest ratios."""
    rated = [(value, row) for row in rows if (value := ratio(row)) is not None]
    return sorted(rated, key=lambda pair: -pair[0])[:5]


def _mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def _above(values: Sequence[float]) -> int:
    return sum(value > LIMIT for value in values)
