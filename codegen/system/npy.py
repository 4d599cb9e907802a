"""Array files: .npy and .npz.

Data is hostile until shown otherwise: only regular files are read, nothing is unpickled, and what a header declares is
compared with what is there before any memory is taken.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from ilang.codegen.system.files import open_regular
from ilang.core.diagnostic import DataError
from ilang.core.suggestion import nearest

Array = np.ndarray[Any, np.dtype[Any]]

LONGEST_HEAD = 1 << 20
"""Bytes in which the header of a .npy file ends."""
MOST_MEMBERS = 10_000
"""Arrays that a .npz may hold."""


def check_memory(size: int, subject: str) -> None:
    """Refuse what would take more than half of the machine's memory.

    Raises: DataError E0727.
    """
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    if limit < size:
        raise DataError(
            "E0727",
            f"{subject} needs {size:,} bytes, more than half of this machine's memory",
            help="take a smaller array",
        )


def load_npy(path: str) -> Array:
    """The array in a .npy file.

    Raises: DataError E0725 to E0728.
    """
    with open_regular(path) as stream:
        return _read_array(stream, os.fstat(stream.fileno()).st_size, path)


def map_npy(path: str) -> Array:
    """The array in a .npy file, read-only: its elements are read from the file when they are needed.

    Raises: DataError E0725, E0726, E0728.
    """
    import mmap

    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        number, mode = stream.fileno(), mmap.ACCESS_READ
        return _array(stream, size, path, lambda at, _: (mmap.mmap(number, 0, access=mode), at))


def read_npy(data: bytearray) -> Array:
    """The array in the bytes of a .npy file that came by standard input, in their place.

    Raises: DataError E0728.
    """
    head = io.BytesIO(memoryview(data)[:LONGEST_HEAD])
    return _array(head, len(data), "standard input", lambda begin, _: (data, begin))


def _read_array(stream: IO[bytes], size: int, path: str) -> Array:
    """Read an array of the .npy format of which ``size`` bytes are there."""

    def read(begin: int, count: int) -> tuple[Any, int]:
        del begin  # the header has been read
        check_memory(count, path)
        return bytearray(stream.read(count)), 0

    return _array(stream, size, path, read)


def _array(
    head: IO[bytes], size: int, path: str, memory: Callable[[int, int], tuple[Any, int]]
) -> Array:
    """The array of the .npy format in ``size`` bytes, of which ``head`` reads the first ones.

    ``memory`` gives, for where elements begin and how many bytes they have, what holds them, and where in it.
    """
    try:
        shape, fortran, dtype, begin = _header(head)
        count = math.prod(shape)
        _check_header(dtype, count * dtype.itemsize, size - begin)
        held, place = memory(begin, count * dtype.itemsize)
        flat = np.frombuffer(held, dtype, count, place)
        array = flat.reshape(shape, order="F" if fortran else "C")
        return array.astype(dtype.newbyteorder("="), copy=False)
    except (DataError, MemoryError):
        raise
    except Exception as trouble:
        raise _not_an_array(path, trouble) from None


def load_npz(path: str, key: str | None) -> Array:
    """One array of a .npz file; without a key, the only one.

    Raises: DataError E0725 to E0729.
    """
    with _opened(path) as archive:
        return _read_member(archive, path, key)


def load_all(path: str) -> dict[str, Array]:
    """All arrays of a .npz file by name: of one file, also where another one takes its place meanwhile.

    Raises: DataError E0725 to E0729.
    """
    with _opened(path) as archive:
        return {name: _read_member(archive, path, name) for name in _names(archive, path)}


def members(path: str) -> list[str]:
    """The names of the arrays of a .npz file.

    Raises: DataError E0725, E0726, E0728, E0729.
    """
    with _opened(path) as archive:
        return _names(archive, path)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    """The archive in a .npz file; what it does not hold is said by a DataError."""
    import zipfile

    with open_regular(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                yield archive
        except (DataError, MemoryError):
            raise
        except Exception as trouble:
            raise _not_an_array(path, trouble) from None


def _names(archive: Any, path: str) -> list[str]:
    names = sorted(
        info.filename[:-4] for info in archive.infolist() if info.filename[-4:] == ".npy"
    )
    if len(names) > MOST_MEMBERS:
        raise DataError(
            "E0729",
            f"{path} holds more than {MOST_MEMBERS} arrays",
            help="divide them among several files",
        )
    return names


def _member(archive: Any, path: str, key: str | None) -> Any:
    names = _names(archive, path)
    if key is None and len(names) == 1:
        key = names[0]
    if key in names:
        return archive.getinfo(f"{key}.npy")
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


def _read_member(archive: Any, path: str, key: str | None) -> Array:
    member = _member(archive, path, key)
    check_memory(member.file_size, f"{path}:{member.filename[:-4]}")
    with archive.open(member) as inner:
        return _read_array(inner, member.file_size, path)


def _check_header(dtype: np.dtype[Any], declared: int, present: int) -> None:
    """Refuse elements that are no numbers, and a size that is not the size of what is there."""
    if dtype.hasobject or dtype.kind not in "fiub":
        raise ValueError(f"its elements are {dtype}, not numbers")
    if declared != present:
        raise ValueError(f"it declares {declared:,} bytes of data and holds {present:,}")


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
    words = "it ends within its header" if words.startswith("EOF") else words
    name = path if path.endswith(".npy") else "x.npy"
    hint = f"numpy.save({name!r}, x) writes one"
    if path.endswith(".npz"):
        hint = f"numpy.savez({path!r}, x=x, y=y) writes one"
    elif "complex" in words:
        hint = "save its parts alone: x.real and x.imag"
    elif "not numbers" in words:
        hint = f"numpy.save({name!r}, x.astype(numpy.float32)) writes numbers"
    return DataError("E0728", f"{path} is not an array file that can be read: {words}", help=hint)
