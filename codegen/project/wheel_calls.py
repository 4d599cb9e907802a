"""Calls of a compiled library with arrays of NumPy: the part of a wheel that does not follow from its program.

`i build --wheel` copies this file into each wheel, so it imports nothing of ours. ``__init__.py`` beside the copy has
the names, element types and extents of each function, and of each session, which keeps arrays between its runs.
"""

from __future__ import annotations

import ctypes
import os
import reprlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

TYPES = {
    "pointer": ctypes.c_void_p,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "bool": ctypes.c_uint8,
}
"""The type in C of each field of a struct."""
TOO_MANY_BYTES = ctypes.c_size_t(-1).value
"""The number of bytes of what does not fit into memory."""
ERRORS: dict[int, type[Exception]] = {4: IndexError, 5: OSError}
"""Exceptions of statuses: an index out of range, and a file that cannot be read; others are a ValueError."""


class Port(NamedTuple):
    """An input or an output: its name, its element type, and its extents: numbers, or names of sizes."""

    name: str
    dtype: str
    dims: tuple[str | int, ...]

    def __str__(self) -> str:
        """The element type and the extents: ``float32[n, 64]``."""
        return f"{self.dtype}[{', '.join(map(str, self.dims))}]"


class CallPorts(NamedTuple):
    """All inputs and outputs, the sizes that C takes, in order, and those that follow from them."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    sizes: tuple[str, ...]
    derived: Mapping[str, Callable[[Mapping[str, int]], int]]


class Entry:
    """A function of the library that takes arrays and gives arrays."""

    def __init__(self, library: ctypes.CDLL, name: str, run: str, ports: CallPorts) -> None:
        """For the function ``run``; ``name`` begins those that measure its workspace and say what a status means."""
        self.name = name
        self.ports = ports
        self.run = getattr(library, run)
        self.run.restype = ctypes.c_int
        self.says = getattr(library, f"{name}_status")
        self.says.restype, self.says.argtypes = ctypes.c_char_p, [ctypes.c_int]
        self.work = getattr(library, f"{name}_work", None)
        if self.work is not None:
            self.work.restype = ctypes.c_size_t

    def __call__(self, title: str, given: Sequence[Any], model: Any = None) -> Any:
        """Call it: the result, a tuple of several, or None. ``model`` is the struct of a session.

        Raises:
            TypeError: an array has another element type. ValueError: another shape. IndexError: an index is out of
                range. MemoryError: the workspace is larger than memory can be.
        """
        arrays = [self._array(title, *pair) for pair in zip(self.ports.inputs, given, strict=True)]
        sizes = self._fitted(title, arrays)
        numbers = [sizes[each] for each in self.ports.sizes]
        packed = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
        before: list[Any] = [] if model is None else [ctypes.byref(model)]
        after: list[NDArray[Any]] = []
        if self.work is not None:
            count = self.work(packed)
            if count == TOO_MANY_BYTES:
                says = ", ".join(f"{name} = {sizes[name]}" for name in self.ports.sizes)
                raise ValueError(f"{title}: these extents do not fit: {says}")
            work = np.empty(count, np.uint8)
            before.append(packed)
            after.append(work)
        results = [np.empty(_extents(each, sizes), each.dtype) for each in self.ports.outputs]
        places = [ctypes.c_void_p(each.ctypes.data) for each in (*arrays, *results, *after)]
        self.check(title, self.run(*before, *places))
        return (tuple(results) if 1 < len(results) else results[0]) if results else None

    def check(self, title: str, status: int) -> None:
        """Refuse a status that is not 0. Raises: IndexError, OSError, ValueError."""
        if status:
            raise ERRORS.get(status, ValueError)(f"{title}: {self.says(status).decode()}")

    def _array(self, title: str, port: Port, value: Any) -> NDArray[Any]:
        """An argument as C reads it: row-major and contiguous, of its element type. Raises: TypeError."""
        try:
            array = np.asarray(value)
        except ValueError:  # rows of several lengths
            array = np.asarray(None)
        if array.dtype == port.dtype:
            return np.ascontiguousarray(array).reshape(array.shape)
        if hasattr(value, "dtype"):
            message = (
                f"{title}: {port.name} is an array of {array.dtype}, and {port.dtype} is taken"
            )
            raise TypeError(f"{message}: {port.name}.astype({port.dtype!r})")
        if array.dtype.kind not in "biuf":
            message = f"{title}: {port.name} is no array of numbers, and {port} is taken"
            raise TypeError(f"{message}: {reprlib.repr(value)}")
        converted = np.asarray(value, port.dtype)
        if converted.dtype.kind not in "fc" and not np.array_equal(converted, array):
            changed = array[converted != array].flat[0]
            raise TypeError(f"{title}: {port.name} has {changed}, and {port.dtype} is taken")
        return converted

    def _fitted(self, title: str, arrays: Sequence[NDArray[Any]]) -> dict[str, int]:
        """The extent of each size. Raises: ValueError."""
        sizes: dict[str, int] = {}
        for port, array in zip(self.ports.inputs, arrays, strict=True):
            if len(port.dims) != array.ndim:
                raise ValueError(
                    f"{title}: {port.name} has shape {array.shape}, and {port} is taken"
                )
            for size, extent in zip(port.dims, array.shape, strict=True):
                if size in self.ports.sizes:
                    sizes.setdefault(str(size), extent)
        for name, rule in self.ports.derived.items():
            sizes.setdefault(name, rule(sizes))
        for port, array in zip(self.ports.inputs, arrays, strict=True):
            if _extents(port, sizes) != array.shape:
                named = [f"{each} = {sizes[each]}" for each in port.dims if isinstance(each, str)]
                sizes_text = f", where {', '.join(named)}" if named else ""
                message = (
                    f"{title}: {port.name} has shape {array.shape}, and {port} is taken{sizes_text}"
                )
                raise ValueError(message)
        return sizes


def _extents(port: Port, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(each if isinstance(each, int) else max(0, sizes[each]) for each in port.dims)


class Kept(NamedTuple):
    """A tensor of a session: its path, the field of the struct that has it, its element type and its extents."""

    path: str
    field: str
    dtype: str
    dims: tuple[int, ...]


class SessionTable(NamedTuple):
    """A session as C has it: its name, the struct that it runs on, with its fields, and what it keeps, by role."""

    name: str
    struct: str
    fields: tuple[tuple[str, str], ...]
    counter: str
    kept: Mapping[str, tuple[Kept, ...]]
    ports: CallPorts


class KeptArrays(MutableMapping[str, Any]):
    """Arrays of a session by path. Reading one copies it, and writing one copies into it."""

    def __init__(self, session: CompiledSession, role: str) -> None:
        self._session = session
        self._rows = {each.path: each for each in session.table.kept.get(role, ())}

    def __repr__(self) -> str:
        """The numbers, and the element types and extents of arrays: ``{lr: 0.1, w: float32[8, 3]}``."""
        words = (
            f"{path}: {Port(path, row.dtype, row.dims) if row.dims else self[path]}"
            for path, row in self._rows.items()
        )
        return f"{{{', '.join(words)}}}"

    def __getitem__(self, path: str) -> Any:
        """A copy of the array, or the number."""
        with self._session.lock:
            return self._view(path).copy()[()]

    def __setitem__(self, path: str, values: Any) -> None:
        """Copy values into the array. Raises: KeyError, ValueError."""
        given = np.asarray(values)
        with self._session.lock:
            view = self._view(path)
            if given.shape != view.shape:
                raise ValueError(f"{path} has shape {view.shape}, and the array {given.shape}")
            view[...] = given

    def __delitem__(self, path: str) -> None:
        raise TypeError("a session keeps all of its arrays")

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def _view(self, path: str) -> NDArray[Any]:
        """The array in the memory of the session, or the number in its struct."""
        if path not in self._rows:
            raise KeyError(f"{path} is none of {', '.join(self._rows) or 'no arrays'}")
        row, struct = self._rows[path], self._session.struct
        place = getattr(type(struct), row.field).offset + ctypes.addressof(struct)
        if row.field in self._session.pointers:
            place = getattr(struct, row.field)
        count = int(np.prod(row.dims, dtype=np.int64)) * np.dtype(row.dtype).itemsize
        raw = (ctypes.c_char * count).from_address(place or 0)
        return np.frombuffer(memoryview(raw), np.dtype(row.dtype)).reshape(row.dims)


class CompiledSession:
    """A definition with its parameters and its state, which last from run to run.

    Attributes:
        parameters: arrays by path; a session that takes them from another one has them together with it.
        state: likewise.
        gradients: those of the last run.
        config: numbers that the next run reads.
    """

    table: ClassVar[SessionTable]
    library: ClassVar[ctypes.CDLL]
    struct: ctypes.Structure
    lock: RLock
    _memory: NDArray[Any]

    def __init__(self, seed: int = 0, *, parameters: CompiledSession | None = None) -> None:
        """Begin with parameters drawn for a seed, or with those of another session.

        Raises:
            ValueError: the other session has no such parameters, or the seed is none. MemoryError.
        """
        if not 0 <= seed < 2**64:
            raise ValueError(f"a seed is a whole number from 0 to 2^64 - 1, and not {seed}")
        table, library = self.table, self.library
        self.pointers = {name for name, kind in table.fields if kind == "pointer"}
        self._entry = Entry(library, table.name, f"{table.name}_run", table.ports)
        if parameters is not None:
            if parameters.table.struct != table.struct:
                raise ValueError(f"{type(parameters).__name__} has other parameters")
            self.struct, self._memory = parameters.struct, parameters._memory  # noqa: SLF001 - its own class
            self.lock = parameters.lock
        else:
            self.lock = RLock()
            count_bytes = getattr(library, f"{table.struct}_bytes")
            count_bytes.restype = ctypes.c_size_t
            count = count_bytes()
            if count == TOO_MANY_BYTES:
                raise MemoryError(f"{table.name} needs more memory than there can be")
            fields = [(name, TYPES[kind]) for name, kind in table.fields]
            self.struct = type(table.struct, (ctypes.Structure,), {"_fields_": fields})()
            self._memory = np.empty(count, np.uint8)
            memory = ctypes.c_void_p(self._memory.ctypes.data)
            begin = getattr(library, f"{table.struct}_init")
            status = begin(ctypes.byref(self.struct), memory, ctypes.c_uint64(seed))
            self._entry.check(type(self).__name__, status)
        self.parameters = KeptArrays(self, "parameter")
        self.state = KeptArrays(self, "state")
        self.gradients = KeptArrays(self, "gradient")
        self.config = KeptArrays(self, "setting")

    @property
    def runs(self) -> int:
        """The number of runs so far."""
        return int(getattr(self.struct, self.table.counter))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and state into a file of safetensors. Raises: OSError."""
        self._file("save", path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on with the parameters and the state of a file. Raises: OSError, ValueError."""
        self._file("load", path)

    def run_with(self, *arrays: Any) -> Any:
        """One run. Raises: those of a call of a function."""
        with self.lock:
            return self._entry(type(self).__name__, arrays, self.struct)

    def _file(self, part: str, path: str | os.PathLike[str]) -> None:
        call = getattr(self.library, f"{self.table.name}_{part}")
        with self.lock:
            status = call(ctypes.byref(self.struct), ctypes.c_char_p(os.fsencode(path)))
        self._entry.check(f"{type(self).__name__}.{part}({os.fspath(path)!r})", status)


def library_beside(file: str, name: str) -> ctypes.CDLL:
    """The library of a name in the folder of a file. Raises: OSError."""
    return ctypes.CDLL(str(Path(file).with_name(name)))
