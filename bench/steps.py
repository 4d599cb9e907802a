"""Steps of training: routines of ``bench/routines`` in sessions, beside the same steps of PyTorch and JAX.

A routine stands as a user writes it, with layers and optimisers of the library. Peers begin with the same parameters,
and keep theirs from step to step, as a session does. Whoever has other losses in the first three steps is left out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang import load
from ilang.core.record import record

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
Call = Callable[[], Any]

ROUTINES = Path(__file__).with_name("routines")
SEED = 7
STEPS = 3
"""How many losses are compared."""
TOLERANCE = 1e-3
"""How far a loss may be off, relative to ours."""

MODULES = {"PyTorch": "torch_steps", "torch.compile": "torch_steps", "JAX": "jax_steps"}
"""By peer: where its steps are."""


@record
class Step:
    """A row of the table: a routine of ``bench/routines``, the shapes of its inputs, its configuration."""

    name: str
    program: str
    routine: str
    shapes: Mapping[str, str]
    config: Mapping[str, Any]


def _block(name: str, routine: str, sizes: tuple[int, int], size: int, heads: int) -> Step:
    shape = f"{sizes[0]}, {sizes[1]}|{size}"
    config = {"size": size, "heads": heads, "hidden": 4 * size}
    return Step(name, "block", routine, {"x": shape, "t": shape}, config)


def _images(name: str, batch: int, side: int, channels: tuple[int, int]) -> Step:
    shapes = {"x": f"{batch}|{side}, {side}, 1", "t": f"{batch}|10"}
    config = {"first": channels[0], "second": channels[1]}
    return Step(name, "convolutions", "step", shapes, config)


def _slope(name: str) -> Step:
    return Step(name, "slope", "step", {"x": "8|4", "t": "8|2"}, {})


FULL = (
    _block("step of a transformer block, 8 x 128 x 256", "full", (8, 128), 256, 4),
    _block("step of the same, causal", "causal", (8, 128), 256, 4),
    _images("step of two convolutions, 64 images of 28 x 28", 64, 28, (16, 32)),
    _images("step of two convolutions, 64 images of 8 x 8", 64, 8, (16, 32)),
    _slope("step of a matrix of 4 x 2, 8 rows"),
)
QUICK = (
    _block("step of a transformer block", "full", (2, 5), 8, 2),
    _block("step of the same, causal", "causal", (2, 5), 8, 2),
    _images("step of two convolutions", 3, 8, (2, 3)),
    _slope("step of a matrix"),
)
"""Every routine, tiny."""


def session_of(step: Step, threads: int, target: str = "c") -> Any:
    """A session of a step, at its first values."""
    model = load(ROUTINES / f"{step.program}.i")
    options = {"seed": SEED, "threads": threads, "target": target}
    return model.session(step.routine, shapes=step.shapes, config=step.config, **options)


def arrays_of(session: Any) -> dict[str, Array]:
    """Inputs by name, the same in every run: normal numbers, and where t are classes, 1 at one of ten."""
    random = np.random.default_rng(SEED)
    arrays: dict[str, Array] = {}
    for name, tensor in session.inputs.items():
        shape = tensor.shape.memory()
        arrays[name] = random.standard_normal(shape, np.float32)
        if name == "t" and shape[1:] == (10,):
            arrays[name] = np.eye(10, dtype=np.float32)[random.integers(0, 10, shape[0])]
    return arrays


def start_of(session: Any) -> dict[str, Array]:
    """The first values of parameters, by the last two words of their paths, as peers know them."""
    values = session.parameters
    return {".".join(path.split(".")[-2:]): values[path] for path in values}


def contestants(
    step: Step, names: Sequence[str], ours: str, threads: int
) -> dict[str, Callable[[], Call]]:
    """By contestant: what gives a call that takes one step and returns something whose number is the loss."""
    session = session_of(step, threads)
    arrays, start = arrays_of(session), start_of(session)

    def peer(name: str) -> Call:
        module = importlib.import_module(f"bench.peers.{MODULES[name]}")
        call: Call = module.call_of(name, step, start, arrays, threads)
        return call

    table: dict[str, Callable[[], Call]] = {ours: lambda: lambda: session(**arrays)}
    return table | {name: partial(peer, name) for name in names if name in MODULES}


def begun(
    table: Mapping[str, Callable[[], Call]], ours: str
) -> tuple[dict[str, Call], dict[str, float], dict[str, str]]:
    """Take the first steps of everyone.

    Returns:
        By contestant: the call, if its losses are ours; how long its first step took, in seconds; else what is wrong.
    """
    calls: dict[str, Call] = {}
    first: dict[str, float] = {}
    wrong: dict[str, str] = {}
    right: list[float] = []
    for name, prepare in table.items():
        try:
            call = prepare()
            start = perf_counter()
            losses = [_number(call())]
            first[name] = perf_counter() - start
            losses += [_number(call()) for _ in range(STEPS - 1)]
        except Exception as error:  # whatever a foreign package raises
            wrong[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            continue
        right = losses if name == ours else right
        if np.allclose(losses, right, rtol=TOLERANCE, atol=0):
            calls[name] = call
        else:
            wrong[name] = f"its losses are {losses}, not {right}"
    return calls, first, wrong


def _number(loss: Any) -> float:
    return float(np.asarray(loss).item())
