"""What is timed, as data: a program of ``bench/programs``, shapes, and the work that its definition asks for.

``FULL`` is the table of docs/benchmarks.md, ``ON_GPU`` that of bench/gpu.py; ``QUICK`` has every program once, at
sizes that take no time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang.core.record import record

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

PROGRAMS = Path(__file__).with_name("programs")
BYTES = 4
SEED = 7
LEARNING = 0.1
"""The learning rate of a training step: large enough for a forgotten step to show."""


@record
class Workload:
    """One row of the table.

    ``program`` names a file of ``bench/programs`` and the definition in it; ``outputs`` are the shapes of its outputs.
    ``flops`` are the multiplications and additions of the definition; powers, divisions and comparisons count nothing.
    """

    name: str
    program: str
    inputs: Mapping[str, Shape]
    outputs: tuple[Shape, ...]
    flops: int

    def bytes_in(self) -> int:
        """The bytes of all inputs, each read once."""
        return BYTES * sum(math.prod(shape) for shape in self.inputs.values())

    def bytes_out(self) -> int:
        """The bytes of all outputs, each written once."""
        return BYTES * sum(math.prod(shape) for shape in self.outputs)


def arrays_of(workload: Workload) -> dict[str, Array]:
    """Inputs by name, the same in every run."""
    random = np.random.default_rng(SEED)
    return {name: _array(random, name, shape, workload) for name, shape in workload.inputs.items()}


def _array(random: np.random.Generator, name: str, shape: Shape, workload: Workload) -> Array:
    """Normal numbers, weights scaled so that layers keep their size; numbers of classes; a rate of learning."""
    if name == "label":
        return random.integers(0, workload.inputs["class"][0], shape, dtype=np.int32)
    if name == "class":
        return np.arange(shape[0], dtype=np.int32)
    if name == "rate":
        return np.array(LEARNING / workload.inputs["label"][0], np.float32)
    return random.standard_normal(shape, np.float32) * np.float32(scale_of(name, shape))


def kind_of(name: str) -> type[np.generic]:
    """The element type of an input: numbers of classes are integers."""
    return np.int32 if name in ("label", "class") else np.float32


def scale_of(name: str, shape: Shape) -> float:
    """The factor of an input's normal numbers."""
    if not name.startswith("w"):
        return 1.0
    return math.sqrt(2 / (math.prod(shape[1:]) if len(shape) == 4 else shape[0]))


def _matmul(name: str, m: int, k: int, n: int) -> Workload:
    return Workload(name, "matmul", {"a": (m, k), "b": (k, n)}, ((m, n),), 2 * m * k * n)


def _bmm(name: str, z: int, m: int, k: int, n: int) -> Workload:
    return Workload(name, "bmm", {"a": (z, m, k), "b": (z, k, n)}, ((z, m, n),), 2 * z * m * k * n)


def _matvec(name: str, m: int, k: int) -> Workload:
    return Workload(name, "matvec", {"a": (m, k), "x": (k,)}, ((m,),), 2 * m * k)


def _rows(name: str, program: str, shape: Shape, output: Shape, flops: int) -> Workload:
    return Workload(name, program, {"x": shape}, (output,), flops)


def _reduction(name: str, program: str, m: int, n: int) -> Workload:
    output = {"row_sum": (m,), "column_sum": (n,), "full_sum": ()}[program]
    return _rows(name, program, (m, n), output, m * n)


def _fma_relu(name: str, n: int) -> Workload:
    return Workload(name, "fma_relu", {"a": (n,), "b": (n,), "c": (n,)}, ((n,),), 2 * n)


def _layer_norm(name: str, m: int) -> Workload:
    inputs = {"x": (m, 1024), "scale": (1024,), "shift": (1024,)}
    return Workload(name, "layer_norm", inputs, ((m, 1024),), 7 * m * 1024)


def _attention(name: str, heads: int, length: int) -> Workload:
    shape = (heads, length, 64)
    inputs = {"q": shape, "k": shape, "v": shape}
    return Workload(name, "attention", inputs, (shape,), 4 * heads * length * length * 64)


def _conv3x3(name: str, c: int, o: int, h: int, w: int) -> Workload:
    inputs = {"x": (1, c, h, w), "weights": (o, c, 3, 3)}
    return Workload(name, "conv3x3", inputs, ((1, o, h, w),), 2 * o * c * 9 * h * w)


def _mlp(name: str, batch: int, widths: Shape) -> Workload:
    inputs = {"x": (batch, widths[0])} | _layers(widths)
    flops = sum(2 * batch * before * after for before, after in itertools.pairwise(widths))
    return Workload(name, "mlp", inputs, ((batch, widths[-1]),), flops)


def _mlp_train(name: str, batch: int, widths: Shape) -> Workload:
    layers, classes = _layers(widths), widths[-1]
    inputs = (
        {"x": (batch, widths[0])} | layers | {"label": (batch,), "class": (classes,), "rate": ()}
    )
    products = [2 * batch * before * after for before, after in itertools.pairwise(widths)]
    return Workload(
        name, "mlp_train", inputs, tuple(layers.values()), 3 * sum(products) - products[0]
    )


def _layers(widths: Shape) -> dict[str, Shape]:
    """Weights and biases by name."""
    found: dict[str, Shape] = {}
    for n, (before, after) in enumerate(itertools.pairwise(widths), start=1):
        found |= {f"w{n}": (before, after), f"b{n}": (after,)}
    return found


MILLIONS_16 = 1 << 24

FULL = (
    _matmul("matmul 128", 128, 128, 128),
    _bmm("bmm 64 x 128", 64, 128, 128, 128),
    _matmul("matmul 64 x 4096 x 1024", 64, 4096, 1024),
    _matmul("matmul 512", 512, 512, 512),
    _matmul("matmul 1024", 1024, 1024, 1024),
    _matmul("matmul 2048", 2048, 2048, 2048),
    _matvec("matvec 4096", 4096, 4096),
    _matmul("row times matrix 4096", 1, 4096, 4096),
    _reduction("row sum 4096", "row_sum", 4096, 4096),
    _reduction("full sum 4096", "full_sum", 4096, 4096),
    _reduction("column sum 4096", "column_sum", 4096, 4096),
    _fma_relu("relu(a*b+c) 16M", MILLIONS_16),
    _rows("gelu 16M", "gelu", (MILLIONS_16,), (MILLIONS_16,), 4 * MILLIONS_16),
    _rows("gelu 64K", "gelu", (1 << 16,), (1 << 16,), 4 << 16),
    _rows("softmax 4096 x 1024", "softmax", (4096, 1024), (4096, 1024), 2 * 4096 * 1024),
    _layer_norm("layer norm 4096 x 1024", 4096),
    _rows("transpose 4096", "transpose", (4096, 4096), (4096, 4096), 0),
    _attention("attention 1 x 1024 x 64", 1, 1024),
    _attention("attention 8 x 1024 x 64", 8, 1024),
    _conv3x3("conv 3x3 64 to 64, 56 x 56", 64, 64, 56, 56),
    _mlp("MLP 784-512-512-10, batch 128", 128, (784, 512, 512, 10)),
    _mlp_train("training step of that MLP", 128, (784, 512, 512, 10)),
)
"""The workloads that are timed."""

ON_GPU = (
    *(_matmul(f"matmul {n}", n, n, n) for n in (1024, 2048, 4096)),
    _bmm("bmm 64 x 512", 64, 512, 512, 512),
    _matvec("matvec 16384", 16384, 16384),
    _reduction("row sum 65536 x 1024", "row_sum", 65536, 1024),
    _reduction("column sum 65536 x 1024", "column_sum", 65536, 1024),
    _reduction("full sum 65536 x 1024", "full_sum", 65536, 1024),
    _fma_relu("relu(a*b+c) 64M", 1 << 26),
    _rows("gelu 64M", "gelu", (1 << 26,), (1 << 26,), 4 << 26),
    _rows("softmax 65536 x 1024", "softmax", (65536, 1024), (65536, 1024), 2 << 26),
    _rows("softmax 2048 x 32768", "softmax", (2048, 32768), (2048, 32768), 2 << 26),
    _layer_norm("layer norm 65536 x 1024", 65536),
    _rows("transpose 8192", "transpose", (8192, 8192), (8192, 8192), 0),
    _attention("attention 32 x 1024 x 64", 32, 1024),
    _attention("attention 8 x 4096 x 64", 8, 4096),
    _conv3x3("conv 3x3 64 to 64, 224 x 224", 64, 64, 224, 224),
    _mlp("MLP 784-512-512-10, batch 4096", 4096, (784, 512, 512, 10)),
    _mlp_train("training step of that MLP", 4096, (784, 512, 512, 10)),
)
"""Those that are timed on a GPU."""

QUICK = (
    _matmul("matmul", 5, 7, 19),
    _bmm("bmm", 2, 3, 5, 9),
    _matvec("matvec", 17, 33),
    _matmul("row times matrix", 1, 33, 17),
    _reduction("row sum", "row_sum", 7, 33),
    _reduction("full sum", "full_sum", 7, 33),
    _reduction("column sum", "column_sum", 7, 33),
    _fma_relu("relu(a*b+c)", 101),
    _rows("gelu", "gelu", (101,), (101,), 404),
    _rows("softmax", "softmax", (3, 37), (3, 37), 222),
    _layer_norm("layer norm", 3),
    _rows("transpose", "transpose", (19, 35), (35, 19), 0),
    _attention("attention", 2, 9),
    _conv3x3("conv 3x3", 3, 5, 7, 9),
    _mlp("MLP", 3, (17, 9, 11, 5)),
    _mlp_train("training step", 3, (17, 9, 11, 5)),
)
"""Every program, tiny: shows that all of this works, not how fast it is."""
