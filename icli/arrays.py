"""Arrays from the command line and back: ``x.npy``, ``x.npz:key``, a literal, ``rand:32x64``.

Data is hostile until shown otherwise: only regular files are read, nothing is unpickled, and what a header declares is
compared with what is there before any memory is taken.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from ilang.codegen.runtime.files import open_regular
from ilang.core.diagnostic import DataError, nearest
from ilang.core.dtype import FLOATS, INTEGER_ENDS
from ilang.icli.files import write_whole
from ilang.icli.literal import Literal, looks_literal, parse_literal, respelled, split_dtype
from ilang.icli.shapes import parse_shape

Array = np.ndarray[Any, np.dtype[Any]]

NUMPY = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "bool": "bool"}
"""NumPy's name of each element type."""

MOST_MEMBERS = 10_000
"""Arrays that a .npz may hold."""

FILLED = re.compile(
    r"(?:\w+\.)*(zeros|ones|full|empty|rand|randn|random|arange|eye|range)\s*[(:]?(.*?)\)?"
)
"""How other systems make an array."""

SPELLINGS = "an array is x.npy, x.npz:name, a literal like [[1,2],[3,4]], or rand:32x64"


def array_of(text: str, dtype: str | None = None, number: int = 0) -> Array:
    """The array that an operand names; ``dtype`` is what the program's text asks for, ``number`` its position."""
    written, rest = split_dtype(text)
    wanted = written or dtype
    if rest.startswith("rand:"):
        return random_array(parse_shape(rest[len("rand:") :]), wanted or "f32", number)
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


def literal_array(literal: Literal, dtype: str | None) -> Array:
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
        raise DataError("E0724", f"rand: gives floats, and the input is of type {dtype}")
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


def check_memory(size: int, what: str) -> None:
    """Refuse what would take more than half of the machine's memory.

    Raises: DataError E0727.
    """
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    if limit < size:
        raise DataError(
            "E0727", f"{what} needs {size:,} bytes, more than half of this machine's memory"
        )


def load_npy(path: str) -> Array:
    """The array in a .npy file.

    Raises: DataError E0725 to E0728.
    """
    with open_regular(path) as stream:
        return _read_array(stream, os.fstat(stream.fileno()).st_size, path)


def load_npz(path: str, key: str | None) -> Array:
    """One array of a .npz file; without a key, the only one.

    Raises: DataError E0725 to E0729.
    """
    import zipfile

    with open_regular(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                member = _member(archive, path, key)
                check_memory(member.file_size, f"{path}:{member.filename[:-4]}")
                with archive.open(member) as inner:
                    return _read_array(inner, member.file_size, path)
        except (DataError, MemoryError):
            raise
        except Exception as trouble:
            raise _not_an_array(path, trouble) from None


def _member(archive: Any, path: str, key: str | None) -> Any:
    """The member of an archive that a key names."""
    members = {
        info.filename[:-4]: info for info in archive.infolist() if info.filename[-4:] == ".npy"
    }
    if len(members) > MOST_MEMBERS:
        raise DataError("E0729", f"{path} holds more than {MOST_MEMBERS} arrays")
    names = sorted(members)
    if key is None and len(names) == 1:
        key = names[0]
    if key in members:
        return members[key]
    listed = ", ".join(names[:20]) or "nothing"
    if key is None:
        raise DataError(
            "E0729", f"{path} holds {len(names)} arrays; name one: {path}:name", help=listed
        )
    guess = nearest(key, names)
    raise DataError(
        "E0729",
        f"{path} has no array {key}",
        help=f"did you mean {path}:{guess}?" if guess else f"it holds {listed}",
    )


def _read_array(stream: IO[bytes], size: int, path: str) -> Array:
    """Read an array of the .npy format of which ``size`` bytes are there."""
    try:
        shape, fortran, dtype, begin = _header(stream)
        expected = math.prod(shape) * dtype.itemsize
        _check_header(dtype, expected, size - begin)
        check_memory(expected, path)
        flat = np.frombuffer(bytearray(stream.read(expected)), dtype=dtype)
        array = flat.reshape(shape, order="F" if fortran else "C")
        return array.astype(dtype.newbyteorder("="), copy=False)
    except (DataError, MemoryError):
        raise
    except Exception as trouble:
        raise _not_an_array(path, trouble) from None


def _check_header(dtype: np.dtype[Any], declared: int, there: int) -> None:
    """Refuse elements that are no numbers, and a size that is not the size of what is there."""
    if dtype.hasobject or dtype.kind not in "fiub":
        raise ValueError(f"its elements are {dtype}, not numbers")
    if declared != there:
        raise ValueError(f"it declares {declared:,} bytes of data and holds {there:,}")


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether column-major, element type, and where the data begins."""
    from numpy.lib import format as npy

    head = stream.read(len(npy.MAGIC_PREFIX))
    if head != npy.MAGIC_PREFIX:
        kind = "a .npz archive" if head.startswith(b"PK") else "no .npy file"
        raise ValueError(
            f"it is {kind}: it begins with {head!r}, and a .npy file with {npy.MAGIC_PREFIX!r}"
        )
    stream.seek(-len(head), os.SEEK_CUR)
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"its format has version {version[0]}.{version[1]}")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    return tuple(int(n) for n in shape), fortran, dtype, stream.tell()


def _not_an_array(path: str, trouble: Exception) -> DataError:
    words = " ".join(str(trouble).split())[:200] or type(trouble).__name__
    hint = f"numpy.save({path!r}, x) writes one" if path.endswith(".npy") else None
    return DataError("E0728", f"{path} is not an array file that can be read: {words}", help=hint)


def save(path: str, arrays: Sequence[tuple[str, Array]]) -> None:
    """Write one array as .npy, or any number as .npz, whole or not at all."""
    if path.endswith(".npy"):
        write_whole(path, lambda stream: np.save(stream, arrays[0][1], allow_pickle=False))
    else:
        write_whole(path, lambda stream: np.savez(stream, allow_pickle=False, **dict(arrays)))
