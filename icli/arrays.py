"""Arrays from the command line and back: ``x.npy``, ``x.npz:key``, a literal, ``rand:32x64``."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence

import numpy as np

from ilang.codegen.runtime.checkpoint import RESULTS
from ilang.codegen.runtime.npy import Array, check_memory, load_npy, load_npz
from ilang.codegen.runtime.outputs import ARRAY, FileKind, InputFile, write_output
from ilang.core.diagnostic import DataError
from ilang.core.dtype import FLOATS, INTEGER_ENDS
from ilang.icli.literal import ArrayLiteral, looks_literal, parse_literal, respelled, split_dtype
from ilang.icli.shapes import parse_shape

NUMPY = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "bool": "bool"}
"""NumPy's name of each element type."""

FILLED = re.compile(
    r"(?:\w+\.)*(zeros|ones|full|empty|rand|randn|random|arange|eye|range)\s*[(:]?(.*?)\)?"
)
"""The calls of other systems that make an array."""

SPELLINGS = "an array is x.npy, x.npz:name, a literal like [[1,2],[3,4]], or rand:32x64"


def array_of(text: str, dtype: str | None = None, number: int = 0) -> Array:
    """The array that an operand names; ``dtype`` is what the program's text asks for, ``number`` its position."""
    written, rest = split_dtype(text)
    wanted = written or dtype
    if rest.startswith("rand:"):
        return random_array(parse_shape(rest[len("rand:") :]), wanted or "f32", number)
    named = re.fullmatch(r"[A-Za-z_]\w*=(.+)", rest)
    if named is not None and not os.path.exists(rest):  # noqa: PTH110 - raises for no name, however long
        hint = f"arrays stand in the order of the inputs: {named[1]}"
        raise DataError("E0720", f"{text} is not an array", help=hint)
    path, colon, key = rest.rpartition(".npz:")
    if colon:
        return load_npz(f"{path}.npz", key)
    if rest.endswith(".npz"):
        return load_npz(rest, None)
    if rest.endswith(".npy"):
        return load_npy(rest)
    if looks_literal(rest):
        return literal_array(parse_literal(rest, f"<array {number}>"), wanted)
    spelling = respelled(rest) or ""
    hint = f"write `{spelling}`" if spelling.startswith("[") else SPELLINGS
    filled = FILLED.fullmatch(rest)
    if filled is not None:
        shape = "x".join(re.findall(r"\d+", filled[2])) or "2x3"
        hint = f"numbers are written out, [[0, 0], [0, 0]], or random: rand:{shape}"
    raise DataError("E0720", f"{text or '(empty)'} is not an array", help=hint)


def arrays_of(dtypes: Sequence[str | None], texts: Sequence[str]) -> list[Array]:
    """The arrays that operands name, given what the program writes of their types; there may be too many or too few."""
    wanted = (*dtypes, *(None for _ in texts))
    return [array_of(text, wanted[number], number) for number, text in enumerate(texts)]


def literal_array(literal: ArrayLiteral, dtype: str | None) -> Array:
    """A literal as an array: of the wanted type, else f32, or bool if it holds truth values."""
    wanted = dtype or ("bool" if literal.kind == "bool" else "f32")
    for value in literal.numbers:
        _fits(value, literal.kind, wanted)
    flat = np.array(literal.numbers, dtype=_carrier(literal.kind, wanted))
    return flat.astype(NUMPY[wanted]).reshape(literal.shape)


def _carrier(kind: str, wanted: str) -> str:
    """The type that holds every number of a literal on its way: exact for integers."""
    return "int64" if wanted in INTEGER_ENDS and kind == "int" else "float64"


def _fits(value: float, kind: str, wanted: str) -> None:
    """Refuse a number that its type would change.

    Raises: DataError E0723.
    """
    if wanted == "bool":
        lost = kind != "bool"
    elif wanted in INTEGER_ENDS:
        low, high = INTEGER_ENDS[wanted]
        lost = kind == "float" or not low <= value <= high
    elif kind == "int":
        lost = abs(value) > 2**1000 or int(np.array(float(value), NUMPY[wanted])) != value
    else:
        limit = float(np.finfo(NUMPY[wanted]).max)
        lost = math.isfinite(value) and limit < abs(value)
    if lost:
        shown = str(value).lower() if isinstance(value, bool) else f"{value:.17g}"
        raise DataError(
            "E0723",
            f"{shown} is not a value of type {wanted}",
            help="write the type before the array: f64:[0.5], i64:[1,2], bool:[true]",
        )


def random_array(shape: Sequence[int], dtype: str, number: int) -> Array:
    """Uniform numbers in [0, 1), the same on every machine: a hash (SplitMix64) of the element's position.

    ``number`` tells the operands of one command apart.
    """
    if dtype not in FLOATS:
        message = f"rand: gives floats, and the input is of type {dtype}"
        raise DataError("E0724", message, help=f"write the numbers, {dtype}:[0, 1], or name a file")
    count = math.prod(shape)
    check_memory(count * 16, f"rand:{'x'.join(map(str, shape))}")
    golden, first, second = (np.uint64(c) for c in (0x9E3779B97F4A7C15, *MIX))
    state = np.arange(1, count + 1, dtype=np.uint64)
    state += np.uint64(number << 40)
    state *= golden
    state = (state ^ (state >> np.uint64(30))) * first
    state = (state ^ (state >> np.uint64(27))) * second
    state ^= state >> np.uint64(31)
    bits = 24 if dtype == "f32" else 53
    state >>= np.uint64(64 - bits)
    return (state.astype(NUMPY[dtype]) * 2.0**-bits).astype(NUMPY[dtype]).reshape(shape)


MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Multipliers of SplitMix64 (Steele, Lea, Flood 2014)."""


def files_of(texts: Sequence[str]) -> Iterator[InputFile]:
    """The files that operands name."""
    for text in texts:
        rest = split_dtype(text)[1]
        path, colon, _ = rest.rpartition(".npz:")
        if colon or rest.endswith((".npz", ".npy")):
            yield InputFile("the array", f"{path}.npz" if colon else rest)


def kind_of_results(path: str) -> FileKind:
    """The kind of a file of results, by the end of its name."""
    return ARRAY if path.endswith(".npy") else RESULTS


def save(path: str, arrays: Sequence[tuple[str, Array]]) -> None:
    """Write one array as .npy, or any number as .npz, whole or not at all."""
    kind = kind_of_results(path)
    if kind is ARRAY:
        write_output(path, kind, lambda out: np.save(out, arrays[0][1], allow_pickle=False))
    else:
        write_output(path, kind, lambda out: np.savez(out, allow_pickle=False, **dict(arrays)))
