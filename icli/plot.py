"""Pictures of arrays: ``:plot`` of the REPL.

A vector is a line, a matrix a heat map; they are made of blocks in a terminal, or SVG.
"""

from __future__ import annotations

import math

import numpy as np

from ilang.codegen.system.npy import Array
from ilang.codegen.system.outputs import FileKind, begins_with
from ilang.core.diagnostic import DataError
from ilang.icli.curve import SVG, curve_svg, curve_text
from ilang.icli.shapes import shape_text

SHADES = " ░▒▓█"
COLORS = (17, 19, 61, 97, 133, 169, 205, 211, 217, 223, 229)
"""Colors of a heat map from the least to the largest element, of the 256 that terminals have."""
MOST_ROWS = 24
PICTURE = FileKind("a picture that `:plot` drew", begins_with(SVG.encode()))
CELLS = 128
"""Rows and columns of a heat map as SVG at most; more are joined."""


def plot_text(name: str, array: Array, width: int, colored: bool) -> str:
    """An array as a picture of at most so many columns. Raises: DataError E0779."""
    values = _drawable(name, array)
    head = f"{name}  {shape_text(array.shape)}  {_range(values)}"
    if values.ndim == 1:
        drawn = curve_text(values.tolist(), max(8, width - 12))
        return f"{head}\n{drawn or f'{values.tolist()}'}"
    cells = _joined(values, MOST_ROWS, max(1, (width - 1) // 2))
    steps = _steps(cells, len(COLORS) if colored else len(SHADES))
    lines = ["".join(_cell(step, colored) for step in row).rstrip(" ") for row in steps]
    return "\n".join((head, *lines)) + "\n"


def plot_svg(name: str, array: Array) -> str:
    """An array as a picture in SVG. Raises: DataError E0779."""
    values = _drawable(name, array)
    if values.ndim == 1:
        points = [(float(n), each) for n, each in enumerate(values.tolist())]
        return curve_svg(points, (), (name, ""), "position")
    cells = _joined(values, CELLS, CELLS)
    rows, columns = cells.shape
    side = max(1, min(600 // columns, 320 // rows))
    lines = [SVG, f'<text x="20" y="14">{name}  {shape_text(array.shape)}  {_range(values)}</text>']
    for (row, column), step in np.ndenumerate(_steps(cells, 256)):
        if 0 <= step:
            shade = f"rgb({step},{step * step // 255},{255 - step})"
            place = f'x="{20 + column * side}" y="{20 + row * side}"'
            lines.append(f'<rect {place} width="{side}" height="{side}" fill="{shade}"/>')
    return "\n".join([*lines, "</svg>\n"])


def _drawable(name: str, array: Array) -> Array:
    """An array of one or two dimensions, as f64. Raises: DataError E0779."""
    if array.ndim not in (1, 2) or not array.size:
        message = f"{name} is {shape_text(array.shape)}, and a picture is of a vector or a matrix"
        pattern = "ijklmnop"[: max(0, array.ndim - 2)]
        part = f"{'0' if len(pattern) == 1 else '(0)' * len(pattern)}yx~yx"
        help_line = f"take a part: m = {part} {name}" if 2 < array.ndim else "[1, 2, 3] is one"
        raise DataError("E0779", message, help=help_line)
    return array.astype(np.float64)


def _range(values: Array) -> str:
    finite = values[np.isfinite(values)]
    return f"{finite.min():.4g} to {finite.max():.4g}" if finite.size else "no finite element"


def _joined(values: Array, rows: int, columns: int) -> Array:
    """A matrix of at most so many rows and columns, whose elements are means of those that they stand for."""
    for axis, most in ((0, rows), (1, columns)):
        extent = values.shape[axis]
        if most < extent:
            starts = [n * extent // most for n in range(most)]
            counts = (
                np.diff([*starts, extent]).reshape(-1, 1)
                if axis == 0
                else np.diff([*starts, extent])
            )
            values = np.add.reduceat(values, starts, axis=axis) / counts
    return values


def _steps(values: Array, count: int) -> Array:
    """The step of each element between the least and the largest one, from 0; -1 for one that is not finite."""
    finite = np.isfinite(values)
    if not finite.any():
        return np.full(values.shape, -1)
    low, high = values[finite].min(), values[finite].max()
    scale = (high - low) or math.inf
    with np.errstate(invalid="ignore"):
        steps = np.minimum((values - low) / scale * count, count - 1)
    return np.where(finite, steps, -1).astype(np.int64)


def _cell(step: int, colored: bool) -> str:
    """Two columns of a heat map; an element that is not finite is a question mark."""
    if step < 0:
        return "? "
    return f"\x1b[48;5;{COLORS[step]}m  \x1b[0m" if colored else 2 * SHADES[step]
