"""Checkpoints: named arrays and notes in one file, safetensors or .npz, whole or absent.

safetensors (https://github.com/huggingface/safetensors, its README): 8 bytes, little-endian, the length of an object;
the object as JSON, ``{"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"a": "b"}}``;
then the elements of all arrays, row-major, without gaps. A .npz holds the notes as JSON in ``__metadata__``.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from ilang.codegen.system.files import open_regular
from ilang.codegen.system.npy import Array, check_memory, load_all, load_npz, members
from ilang.codegen.system.outputs import FileKind, head, write_output
from ilang.core.diagnostic import DataError
from ilang.core.record import record

TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "BOOL": "|b1"}
"""NumPy's names of the element types of safetensors."""

LARGEST_HEADER = 100 << 20
"""Bytes of a header that are read at most, as by others who read such files."""

NOTES = "__metadata__"
DEFINITION = "definition"
"""The note that every checkpoint of a session has."""
ZIP = b"PK"
"""The first bytes of a .npz file."""


STATE = "state."
"""Stands before the paths of state in checkpoints."""


@record
class Checkpoint:
    """The arrays of a file by name, and its notes."""

    arrays: Mapping[str, Array]
    notes: Mapping[str, str]

    def parameters(self) -> dict[str, Array]:
        """The arrays of parameters, by path."""
        return {path: each for path, each in self.arrays.items() if not path.startswith(STATE)}

    def state(self) -> dict[str, Array]:
        """The arrays of state, by path."""
        named = self.arrays.items()
        return {path[len(STATE) :]: each for path, each in named if path.startswith(STATE)}


def write(path: str, arrays: Mapping[str, Array], notes: Mapping[str, str]) -> None:
    """Write a checkpoint: .npz where the path ends so, else safetensors.

    Raises:
        DataError: E0731, E0732 (the file cannot be written), E0768 (another file is there).
    """
    if path.endswith(".npz"):
        encoded = np.frombuffer(json.dumps(dict(notes)).encode(), np.uint8)
        named: dict[str, Any] = {NOTES: encoded, **arrays}
        write_output(path, CHECKPOINT, lambda stream: np.savez(stream, **named))
    else:
        write_output(path, CHECKPOINT, lambda stream: _write(stream, arrays, notes))


def _write(stream: IO[bytes], arrays: Mapping[str, Array], notes: Mapping[str, str]) -> None:
    header: dict[str, object] = {NOTES: dict(notes)}
    names = {np.dtype(kind): name for name, kind in TYPES.items()}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # elements begin at a multiple of 8 bytes
    stream.write(struct.pack("<Q", len(text)) + text)
    for array in arrays.values():
        stream.write(np.ascontiguousarray(array).data)


def read(path: str) -> Checkpoint:
    """The arrays and the notes of a file.

    Raises:
        DataError: E0725, E0726 (no file), E0727 (too large), E0728 and E0729 (a broken .npz), E0761 (no checkpoint).
    """
    if path.endswith(".npz"):
        return _read_npz(path)
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        try:
            header, notes = _read_header(stream, size)
            check_memory(size, path)
            data = bytearray(stream.read())
            arrays = {name: _array(name, entry, data) for name, entry in header.items()}
            _check_places(header, len(data))
            return Checkpoint(arrays, notes)
        except (DataError, MemoryError):
            raise
        except Exception as trouble:
            reason = " ".join(str(trouble).split())[:200] or type(trouble).__name__
            hint = "`s.save(path)` and `i train --save` write checkpoints"
            message = f"{path} is no checkpoint that can be read: {reason}"
            raise DataError("E0761", message, help=hint) from None


OTHERS = {b"\x93NUMPY": "a .npy file", b"PK": "a zip archive", b"\x89HDF": "an HDF5 file"}
"""Other kinds of files, by how they begin."""


def _read_header(stream: IO[bytes], size: int) -> tuple[dict[str, Any], dict[str, str]]:
    """The entries of the arrays in safetensors of ``size`` bytes, and the notes; the exception says what is wrong."""
    if size < 8:
        raise ValueError(f"it has {size} bytes, and the length of its header alone takes 8")
    head = stream.read(8)
    kind = next((name for start, name in OTHERS.items() if head.startswith(start)), None)
    if kind is not None:
        raise ValueError(f"it is {kind}, and a checkpoint has arrays by name: safetensors, or .npz")
    (length,) = struct.unpack("<Q", head)
    if min(LARGEST_HEADER, size - 8) < length:
        raise ValueError(f"its header would have {length:,} bytes, and the file has {size:,}")
    header = json.loads(stream.read(length))
    if not isinstance(header, dict):
        raise TypeError("its header is no object")
    notes = header.pop(NOTES, {})
    if not isinstance(notes, dict) or not all(isinstance(each, str) for each in notes.values()):
        raise ValueError("its notes are no texts")
    return header, notes


def _array(name: str, entry: Any, data: bytearray) -> Array:
    kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in TYPES:
        raise ValueError(f"{name} has elements of type {kind}; types are {', '.join(TYPES)}")
    if not all(type(n) is int and 0 <= n for n in (*shape, begin, end)):
        raise ValueError(f"{name} has a shape or places that are no numbers")
    dtype = np.dtype(TYPES[kind])
    count = 1
    for extent in shape:
        count *= extent
    if end - begin != count * dtype.itemsize or len(data) < end:
        raise ValueError(f"{name} would have {count:,} elements, and bytes {begin:,} to {end:,}")
    flat = np.frombuffer(data, dtype, count, begin) if count else np.zeros(0, dtype)
    return flat.reshape(shape)


def _check_places(header: Mapping[str, Any], size: int) -> None:
    """Refuse elements of two arrays in one place, and bytes of none."""
    at = 0
    for begin, end in sorted(entry["data_offsets"] for entry in header.values()):
        if begin != at:
            raise ValueError(f"byte {min(begin, at):,} of its elements is not that of one array")
        at = end
    if at != size:
        raise ValueError(f"it has {size:,} bytes of elements, and its header has {at:,}")


def _read_npz(path: str) -> Checkpoint:
    arrays = load_all(path)
    notes = arrays.pop(NOTES, None)
    return Checkpoint(arrays, {} if notes is None else _npz_notes(path, notes))


def _npz_notes(path: str, written: Array) -> Mapping[str, str]:
    """The notes of a .npz file, out of the array that has them. Raises: DataError E0761."""
    try:
        notes: Mapping[str, str] = json.loads(bytes(written))
    except ValueError:
        message = f"{path} is no checkpoint that can be read: its notes are no JSON"
        raise DataError("E0761", message, help="name a file that `i train --save` wrote") from None
    return notes


def _is_checkpoint(path: str) -> bool:
    """Whether a file is a checkpoint that a session wrote, of Python or of C: its notes name the definition."""
    try:
        if head(path).startswith(ZIP):
            notes = _npz_notes(path, load_npz(path, NOTES))
        else:
            with open_regular(path) as stream:
                _, notes = _read_header(stream, os.fstat(stream.fileno()).st_size)
    except Exception:
        return False  # whatever it is, no session wrote it
    return DEFINITION in notes


def _is_results(path: str) -> bool:
    """Whether a file is a .npz of arrays, and no checkpoint."""
    try:
        return NOTES not in members(path)
    except DataError:
        return False


CHECKPOINT = FileKind("a checkpoint that `i` wrote", _is_checkpoint)
RESULTS = FileKind("a .npz file of arrays", _is_results)
