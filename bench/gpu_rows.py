"""What is timed on a GPU, as data: workloads, whether their programs know all extents, and what each is to reach.

``FULL`` is for a device, ``QUICK`` has every kind of row at sizes that take no time. Programs that only a GPU is timed
with are in ``bench/gpu_programs``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from bench import references
from bench.workloads import ON_GPU, PROGRAMS, Array, Shape, Workload
from bench.workloads import QUICK as QUICK_WORKLOADS
from ilang.core.record import record, replace

GPU_PROGRAMS = Path(__file__).with_name("gpu_programs")
COPY = "copy"


@record
class Goal:
    """What is to be reached: at least so many times the speed ``of`` another contestant, or the bandwidth of a copy."""

    text: str
    least: float
    of: str


BANDWIDTH = Goal("85 % of the bandwidth of a copy", 0.85, COPY)
PRODUCT = Goal("60 % of cuBLAS", 0.60, "PyTorch")
WRITTEN = Goal("80 % of cuBLAS", 0.80, "PyTorch")
IN_TF32 = Goal("50 % of cuBLAS in TF32", 0.50, "PyTorch")
IN_BF16 = Goal("50 % of cuBLAS in bf16", 0.50, "PyTorch")
ATTENTION = Goal("faster than PyTorch's math path", 1.0, "PyTorch math")


@record
class GpuRow:
    """A row of the table: a workload; with ``known`` extents, which its text then has; the gradient of its program.

    A gradient takes the inputs and what flows back to the output, and gives what flows back to each input. Results are
    right within the ``tolerance``, of the largest one.
    """

    workload: Workload
    known: bool = False
    gradient: bool = False
    goal: Goal | None = None
    tolerance: float = references.TOLERANCE


def text_of(row: GpuRow) -> str:
    """The text of the program of a row: the file, with the extents in the head where they are known."""
    name = row.workload.program
    path = GPU_PROGRAMS / f"{name}.i"
    text = (path if path.exists() else PROGRAMS / path.name).read_text("utf-8")
    if not row.known:
        return text
    shapes = {n: ",".join(map(str, shape)) for n, shape in row.workload.inputs.items()}
    (head,) = re.findall(rf"^{name}\(.*?\) =", text, re.MULTILINE)
    fixed = re.sub(r"(\w+)\[[^]]*\]", lambda at: f"{at[1]}[{shapes[at[1]]}]", head)
    return text.replace(head, fixed)


def expected(row: GpuRow, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
    """The outputs of a row, from the inputs that it is timed with, computed in float64."""
    program = row.workload.program
    if not row.gradient and program in references.REFERENCES:
        return references.expected(program, arrays)
    wide = [array.astype(np.float64) for array in arrays.values()]
    if row.gradient:
        back = partial(_attention_back, program == "causal")
        heads = (back(*each) for each in zip(*wide, strict=True))
        return tuple(map(np.stack, zip(*heads, strict=True)))
    return (MORE[program](*wide),)


def _weights(q: Array, k: Array, is_causal: bool) -> Array:
    """The weights of a head."""
    scores = q @ k.T / 8
    if is_causal:
        scores = np.where(np.tri(len(q), dtype=bool), scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _causal(q: Array, k: Array, v: Array) -> Array:
    heads = zip(q, k, v, strict=True)
    return np.stack([_weights(query, key, True) @ value for query, key, value in heads])


def _attention_back(
    is_causal: bool, q: Array, k: Array, v: Array, back: Array
) -> tuple[Array, Array, Array]:
    """What flows back to queries, keys and values of a head."""
    weights = _weights(q, k, is_causal)
    by_weights = back @ v.T
    by_scores = weights * (by_weights - (by_weights * weights).sum(-1, keepdims=True)) / 8
    return by_scores @ k, by_scores.T @ q, weights.T @ back


def _to_tf32(x: Array) -> Array:
    """Numbers of 11 significant bits, of two nearest ones that further from zero."""
    parts, exponents = np.frexp(x)
    return np.asarray(np.ldexp(np.trunc(parts * 2048 + np.copysign(0.5, parts)) / 2048, exponents))


def _to_bf16(x: Array) -> Array:
    """Numbers of 8 significant bits, of two nearest ones the even one."""
    parts, exponents = np.frexp(x)
    return np.asarray(np.ldexp(np.rint(parts * 256) / 256, exponents))


MORE: Mapping[str, Callable[..., Array]] = {
    COPY: lambda x: x,
    "causal": _causal,
    "matmul_written": lambda a, b: np.asarray(a @ b),
    "matmul_tf32": lambda a, b: np.asarray(_to_tf32(a) @ _to_tf32(b)),
    "matmul_bf16": lambda a, b: np.asarray(_to_bf16(a) @ _to_bf16(b)),
}
"""What the programs of ``bench/gpu_programs`` compute."""


def _both(row: GpuRow) -> tuple[GpuRow, GpuRow]:
    """A row of unknown extents, and one of known ones."""
    name = f"{row.workload.name}, known"
    return row, replace(row, workload=replace(row.workload, name=name), known=True)


def _product(
    name: str, m: int, k: int, n: int, program: str = "matmul", goal: Goal | None = None
) -> GpuRow:
    inputs = {"a": (m, k), "b": (k, n)}
    return GpuRow(Workload(name, program, inputs, ((m, n),), 2 * m * k * n), goal=goal)


def _in_tf32(name: str, m: int, k: int, n: int) -> GpuRow:
    """A product on tensor cores, which others round to TF32 in other ways: off by 2^-10 of a term."""
    return replace(_product(name, m, k, n, "matmul_tf32", IN_TF32), tolerance=2**-10)


def _in_bf16(name: str, m: int, k: int, n: int) -> GpuRow:
    """A product on tensor cores of factors of 16 bits, to which others round the result, too: off by 2^-9 of it."""
    return replace(_product(name, m, k, n, "matmul_bf16", IN_BF16), tolerance=2**-8)


def _sums(name: str, program: str, m: int, n: int) -> GpuRow:
    output: Shape = (m,) if program == "row_sum" else (n,)
    return GpuRow(Workload(name, program, {"x": (m, n)}, (output,), m * n), goal=BANDWIDTH)


def _copy(count: int) -> GpuRow:
    return GpuRow(Workload(COPY, COPY, {"x": (count,)}, ((count,),), 0))


def _attention(
    name: str, sizes: tuple[int, int], program: str = "attention", *, gradient: bool = False
) -> GpuRow:
    heads, length = sizes
    shape = (heads, length, 64)
    inputs = dict.fromkeys(("q", "k", "v", "back") if gradient else ("q", "k", "v"), shape)
    outputs = (shape,) * (3 if gradient else 1)
    products = (10 if gradient else 4) // (1 + (program == "causal"))
    flops = products * heads * length * length * 64
    return GpuRow(
        Workload(name, program, inputs, outputs, flops), gradient=gradient, goal=ATTENTION
    )


def _rows(
    terms: int, few: int, side: int, ragged: tuple[int, int, int], sizes: tuple[int, int]
) -> tuple[GpuRow, ...]:
    """Kinds of rows that are no workloads of a processor, of some sizes."""
    heads, length = sizes
    return (
        *_both(_product(f"matmul {few} x {terms} x {few}", few, terms, few)),
        *_both(_product(f"matmul {side} x {terms} x {side}", side, terms, side)),
        *_both(_sums(f"column sum {terms} x {few}", "column_sum", terms, few)),
        *_both(_sums(f"row sum {few} x {terms}", "row_sum", few, terms)),
        *_both(_product(f"matmul {' x '.join(map(str, ragged))}", *ragged, goal=PRODUCT)),
        *_both(_attention(f"attention {heads} x {length}", sizes)),
        *_both(_attention(f"attention {heads} x {length}, gradients", sizes, gradient=True)),
        *_both(_attention(f"causal {heads} x {length}", sizes, "causal")),
        *_both(_attention(f"causal {heads} x {length}, gradients", sizes, "causal", gradient=True)),
    )


GOALS: Mapping[str, Goal] = {
    "matmul 4096": PRODUCT,
    "bmm 64 x 512": PRODUCT,
    "attention 32 x 1024 x 64": ATTENTION,
    "attention 8 x 4096 x 64": ATTENTION,
    "conv 3x3 64 to 64, 224 x 224": PRODUCT,
}
BOUND_BY_MEMORY = frozenset(
    {
        "matvec",
        "row_sum",
        "column_sum",
        "full_sum",
        "fma_relu",
        "gelu",
        "softmax",
        "layer_norm",
        "transpose",
    }
)
"""Programs that are to reach the bandwidth of a copy."""


def _with_goal(workload: Workload) -> GpuRow:
    goal = BANDWIDTH if workload.program in BOUND_BY_MEMORY else GOALS.get(workload.name)
    return GpuRow(workload, goal=goal)


FIRST = (
    COPY,
    "matmul 4096",
    "attention 8 x 4096",
    "conv",
    "softmax",
    "layer norm",
    "row sum",
    "column sum",
    "full sum",
    "transpose",
    "gelu",
)
"""How names of rows begin that are worth most, in this order: times may end before all rows are reached."""


def _by_worth(row: GpuRow) -> int:
    begins = (n for n, name in enumerate(FIRST) if row.workload.name.startswith(name))
    return next(begins, len(FIRST))


def _known(name: str, rows: Sequence[Workload]) -> GpuRow:
    """The row of a name at known extents."""
    return _both(next(_with_goal(each) for each in rows if each.name == name))[1]


def _softmax(m: int, n: int) -> GpuRow:
    shape = (m, n)
    workload = Workload(f"softmax {m} x {n}", "softmax", {"x": shape}, (shape,), 2 * m * n)
    return GpuRow(workload, goal=BANDWIDTH)


_FULL = (
    _copy(1 << 27),
    *map(_with_goal, ON_GPU),
    _known("matmul 4096", ON_GPU),
    _known("conv 3x3 64 to 64, 224 x 224", ON_GPU),
    *_both(_softmax(4096, 1024)),
    *_both(_softmax(100_000, 10)),
    *_both(_attention("attention 8 x 1024", (8, 1024))),
    _both(_product("matmul 4096, written", 4096, 4096, 4096, "matmul_written", WRITTEN))[1],
    *_both(_in_tf32("matmul 4096, TF32", 4096, 4096, 4096)),
    *_both(_in_bf16("matmul 4096, bf16", 4096, 4096, 4096)),
    *_rows(1 << 17, 16, 512, (4001, 4000, 3999), (8, 4096)),
)
FULL = tuple(sorted(_FULL, key=_by_worth))
QUICK = (
    _copy(101),
    *map(_with_goal, QUICK_WORKLOADS),
    *(_known(name, QUICK_WORKLOADS) for name in ("conv 3x3", "softmax")),
    _both(_product("matmul, written", 5, 7, 19, "matmul_written", WRITTEN))[1],
    *_both(_in_tf32("matmul, TF32", 5, 7, 19)),
    *_both(_in_bf16("matmul, bf16", 5, 7, 19)),
    *_rows(300, 3, 33, (5, 7, 19), (2, 9)),
)
"""Every kind of row, tiny."""
