"""Our programs for a harness that times plug-ins: ``CONTESTANTS`` has, by workload, a function that prepares a call.

The function takes the inputs by name (float32, C-contiguous), the number of threads and the workload's dimensions, and
gives a call without arguments that runs our program into arrays made beforehand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:  # loaded by its path, from wherever the harness stands
    sys.path.insert(0, str(ROOT))

from bench.ours import call_of  # noqa: E402 - once the path is there
from bench.workloads import PROGRAMS as WORKLOADS  # noqa: E402
from ilang import load  # noqa: E402

LEARNING = 1e-3
"""The learning rate of the harness."""

Shape = Callable[[Mapping[str, Any]], tuple[int, ...]]


def _like_x(inputs: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of the first input."""
    return tuple(next(iter(inputs.values())).shape)


PROGRAMS: Mapping[str, tuple[str, Shape]] = {
    "matmul": ("matmul", lambda x: (x["a"].shape[0], x["b"].shape[1])),
    "bmm": ("bmm", lambda x: (*x["a"].shape[:2], x["b"].shape[2])),
    "fmarelu": ("fma_relu", _like_x),
    "gelu": ("gelu", _like_x),
    "softmax": ("softmax", _like_x),
    "layernorm": ("layer_norm", _like_x),
    "rowsum": ("row_sum", lambda x: x["x"].shape[:1]),
    "colsum": ("column_sum", lambda x: x["x"].shape[1:]),
    "fullsum": ("full_sum", lambda _: ()),
    "transpose": ("transpose", lambda x: x["x"].shape[::-1]),
    "attn": ("attention", _like_x),
    "conv3x3": ("conv3x3", lambda x: (1, x["w"].shape[0], *x["x"].shape[2:])),
    "mlpfwd": ("mlp", lambda x: (x["x"].shape[0], x["w3"].shape[1])),
}
"""By family of workloads: our program, and the shape of its output. Inputs are in the order of the program's."""


def _prepare(program: str, output: Shape) -> Callable[..., Callable[[], Any]]:
    def prepare(inputs: Mapping[str, Any], threads: int, _dimensions: object) -> Callable[[], Any]:
        return call_of(program, inputs, (output(inputs),), threads)

    return prepare


def _training(
    inputs: Mapping[str, Any], threads: int, dimensions: Mapping[str, Any]
) -> Callable[[], Any]:
    """Calls that train: each steps from the parameters that the one before has made, between two sets of arrays."""
    x, *parameters, label = inputs.values()
    classes = np.arange(dimensions["D"][-1], dtype=np.int32)
    rate = np.array(LEARNING / dimensions["B"], np.float32)
    step = load(WORKLOADS / "mlp_train.i")["mlp_train"]
    old, new = [tuple(np.array(array) for array in parameters) for _ in range(2)]

    def call() -> Any:
        nonlocal old, new
        old, new = step(x, *old, label, classes, rate, out=new, threads=threads), old
        return old[2]

    return call


CONTESTANTS = {
    "ours": {family: _prepare(program, output) for family, (program, output) in PROGRAMS.items()}
    | {"mlptrain": _training}
}
"""What the harness reads."""
