"""Arrays from the command line and back: ``x.npy``, ``x.npz:key``, ``x.csv``, a literal, ``rand:2x3``, ``-``."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence

import numpy as np

from ilang.codegen.system.npy import Array, check_memory, load_npy, load_npz, map_npy
from ilang.codegen.system.outputs import InputFile
from ilang.core.diagnostic import CommandError, DataError, enumerated
from ilang.core.dtype import DTYPES, FLOATS, NUMPY_NAMES
from ilang.core.notation.guidance import TYPES
from ilang.icli.exchange import array_of_input, literal_array, read_text
from ilang.icli.files import ARRAY_FILES, member_of
from ilang.icli.filled import call_of, filled_shape, filled_values, is_filled
from ilang.icli.literal import looks_literal, parse_literal, respelled, split_dtype
from ilang.icli.shapes import parse_shape

SPELLINGS = (
    "an array is x.npy, x.npz:name, x.csv, x.json, a literal like [[1,2],[3,4]], rand:32x64, or "
    "zeros(2,3), ones, full, eye, arange, linspace"
)

TYPED = re.compile(
    r"((?:[biuf]|bf|int|uint|float)\d+|int|float|double)\s*:(?=\s*(?:\[|\d|rand:|[a-z]+\())"
)
"""An element type before an array, in other systems."""
NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
"""An operand that names its input."""


def array_of(text: str, dtype: str | None = None, number: int = 0) -> Array:
    """The array that an operand names; ``dtype`` is what the program's text asks for, ``number`` its position."""
    written, rest = split_dtype(text)
    wanted = written or dtype
    if rest.startswith("rand:"):
        return random_array(parse_shape(rest[len("rand:") :]), wanted or "f32", number)
    if is_filled(rest):
        return _filled_array(rest, wanted or "f32", number)
    if is_named(rest):
        hint = f"arrays stand in the order of the inputs: {rest.partition('=')[2]}"
        raise DataError("E0720", f"{text} is not an array", help=hint)
    file, key = member_of(rest)
    if file.endswith(".npz"):
        return load_npz(file, key)
    if rest.endswith(".npy"):
        return load_npy(rest)
    if rest.endswith((".csv", ".json")):
        return read_text(rest, written, dtype)
    if looks_literal(rest):
        return literal_array(parse_literal(rest, f"<array {number}>"), wanted)
    raise not_an_array(text)


def not_an_array(text: str) -> DataError:
    """The error for an operand that names no array, with the spelling that was most likely meant."""
    _, rest = split_dtype(text)
    spelling = respelled(rest) or ""
    hint = f"write `{spelling}`" if spelling.startswith("[") else SPELLINGS
    call = call_of(rest)
    hint = hint if call is None else f"write `{call}`"
    typed = TYPED.match(rest)
    if typed is not None:
        known = TYPES.get(typed[1])
        written = "" if known is None else f"; write `{known}:{rest[typed.end() :].strip()}`"
        hint = f"there is no type {typed[1]}: types are {enumerated([*DTYPES])}{written}"
    elif rest.endswith((".safetensors", ".pt", ".pth", ".ckpt")):
        hint = "parameters are read by --load FILE.safetensors, of an `op` or `cd`"
    return DataError("E0720", f"{text or '(empty)'} is not an array", help=hint)


def _filled_array(text: str, dtype: str, number: int) -> Array:
    """The array of a call such as ``arange(10)``. Raises: DataError E0720, E0723, E0724, E0727."""
    shape = filled_shape(text)
    check_memory(math.prod(shape) * 8, text)
    values = filled_values(text)
    if isinstance(values, str):
        drawn = normal_array if values == "normal" else random_array
        return drawn(shape, dtype, number)
    array: Array = values.astype(NUMPY_NAMES[dtype])
    is_float = array.dtype.kind == values.dtype.kind == "f"
    if not is_float and not np.array_equal(array, values):
        lost = values[array != values].flat[0]
        message = f"{lost:.17g} is not a value of type {dtype}"
        raise DataError("E0723", message, help=f"write the type before the array: f64:{text}")
    return array


def arrays_of(dtypes: Sequence[str | None], texts: Sequence[str]) -> list[Array]:
    """The arrays that operands name, given what the program writes of their types; there may be too many or too few.

    Files are mapped; ``-`` is standard input.
    """
    wanted = (*dtypes, *(None for _ in texts))
    arrays = []
    for number, text in enumerate(texts):
        written, rest = split_dtype(text)
        if rest == "-":
            array = array_of_input(written, wanted[number])
        elif rest.endswith(".npy"):
            array = map_npy(rest)
        else:
            array = array_of(text, wanted[number], number)
        arrays.append(array)
    return arrays


def is_named(text: str) -> bool:
    """Whether an operand names its input, ``x=x.npy``, and no file."""
    return NAMED.fullmatch(text) is not None and not os.path.exists(text)  # noqa: PTH110 - raises for no name, however long


def in_order(names: Sequence[str], operands: Sequence[str]) -> list[str]:
    """Operands in the order of the inputs: first those without a name, then ``x=x.npy``, by the names of inputs.

    Raises: CommandError E0807, E0829. DataError E0701, E0747.
    """
    from ilang.codegen.call.named_arrays import placed

    given = [text for text in operands if not is_named(text)]
    named: dict[str, str] = {}
    for text in operands:
        if not is_named(text):
            continue
        name, _, array = text.partition("=")
        if name in named:
            message = f"the input {name} is given twice: {named[name]} and {array or '(empty)'}"
            raise CommandError("E0807", message, help="give it once")
        named[name] = array
    texts = [str(text) for text in placed(names, given, named)] if named else given
    if sum(split_dtype(text)[1] == "-" for text in texts) > 1:
        message = "standard input is one array, and `-` stands twice"
        raise CommandError("E0829", message, help="name a file in the place of one")
    return texts


def random_array(shape: Sequence[int], dtype: str, number: int) -> Array:
    """Uniform numbers in [0, 1), the same on every machine: a hash (SplitMix64) of the element's position.

    ``number`` tells the operands of one command apart.
    """
    _check_floats("rand:", dtype)
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
    return (state.astype(NUMPY_NAMES[dtype]) * 2.0**-bits).astype(NUMPY_NAMES[dtype]).reshape(shape)


def normal_array(shape: Sequence[int], dtype: str, number: int) -> Array:
    """Numbers of the standard normal distribution, by Box and Muller of two uniform ones each."""
    _check_floats("randn", dtype)
    length, angle = random_array((2, *shape), "f64", number)
    values: Array = np.sqrt(-2 * np.log1p(-length)) * np.cos(2 * np.pi * angle)
    return values.astype(NUMPY_NAMES[dtype])


def _check_floats(name: str, dtype: str) -> None:
    if dtype not in FLOATS:
        message = f"{name} gives floats, and the input is of type {dtype}"
        raise DataError("E0724", message, help=f"write the numbers, {dtype}:[0, 1], or name a file")


MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Multipliers of SplitMix64 (Steele, Lea, Flood 2014)."""


def files_of(texts: Sequence[str]) -> Iterator[InputFile]:
    """The files that operands name."""
    for text in texts:
        rest = split_dtype(text.partition("=")[2] if is_named(text) else text)[1]
        file, _ = member_of(rest)
        if file.endswith(ARRAY_FILES):
            yield "the array", file
