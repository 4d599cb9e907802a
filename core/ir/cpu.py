"""Statements of kernels that only a CPU has; ``ir/kernel.py`` has those of every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ilang.core.ir.affine import Affine
from ilang.core.record import record

if TYPE_CHECKING:  # a kernel has these statements, and these statements have loops
    from ilang.core.ir.kernel import For, Rest


@record
class Product:
    """A factor times sizes: a number of elements."""

    factor: int
    sizes: tuple[int, ...] = ()


@record
class Trips:
    """How often a loop runs: ``size`` times, fewer where the ``rest`` of a ragged dimension is shorter."""

    size: int
    rest: Rest | None


@record
class Strided:
    """Elements of a buffer: ``first`` is the index of the first one, ``stride`` goes on to the next: a sum."""

    buffer: int
    first: tuple[Affine, ...]
    stride: tuple[Product, ...]


@record
class Transpose:
    """A copy of rows to columns, in squares that registers hold: ``to[c * stride + r] = source[r * stride + c]``.

    ``loops`` say what it means, one element at a time: the columns' loop around the rows' around the one store.
    ``short`` where the rows are known to be shorter than the longest vector. Where all of the target has
    ``stream_from`` bytes or more, whole cache lines go past the caches; 0 for never.
    """

    loops: For
    target: Strided
    source: Strided
    rows: Trips
    columns: Trips
    dtype: str
    short: bool
    stream_from: int
