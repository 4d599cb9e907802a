"""Stored values of self-tests as C: the tables that inputs repeat, and what outputs are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ilang.codegen.project.cases import TABLE, StoredOutput, table
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, listed, literal
from ilang.core.dtype import FLOATS

LETTERS = {"f32": "f", "f64": "d", "i32": "i", "i64": "l", "bool": "b"}


def table_name(dtype: str, positive: bool) -> str:
    """The name of the table of an element type."""
    return f"test_{dtype}" + ("_positive" if positive else "")


def table_text(dtype: str, positive: bool) -> list[str]:
    """The declaration of the table of an element type."""
    words = [number(value, dtype) for value in table(dtype, positive)]
    return list(
        listed(f"static const {C_TYPES[dtype]} {table_name(dtype, positive)}[] = {{", words, "};")
    )


def values_of(name: str, output: StoredOutput, dtype: str) -> Iterator[str]:
    """The declaration of what is stored of an output, inside a function."""
    words = [number(v, dtype) for v in output.values] or ["0"]
    return listed(f"{INDENT}static const {C_TYPES[dtype]} {name}[] = {{", words, "};")


def given_row(name: str, dtype: str, count: int, values: str, start: int, limit: int | None) -> str:
    """The row of an input: the table that it repeats, where it begins there, what its indices are less than."""
    indices = f", .below = {limit}" if limit else ""
    return (
        f"{{.name = \"{name}\", .type = '{LETTERS[dtype]}', .count = {count}, .values = {values}, "
        f".stored = {TABLE}, .start = {start}{indices}}},"
    )


def result_row(name: str, dtype: str, count: int, values: str, output: StoredOutput) -> str:
    """The row that describes an output: the values that are stored of it."""
    bounds = (
        f", .relative = {output.relative:.3g}, .scale = {output.scale:g}" if dtype in FLOATS else ""
    )
    return (
        f"{{.name = \"{name}\", .type = '{LETTERS[dtype]}', .count = {count}, .values = {values}, "
        f".stored = {len(output.values)}, .step = {output.step}{bounds}}},"
    )


def number(value: Any, dtype: str) -> str:
    """A stored value: the shortest decimal that reads back as the same number."""
    if dtype not in FLOATS:
        return literal(int(value), dtype)
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "INFINITY" if 0 < value else "-INFINITY"
    if value == 0 or 1e-4 <= abs(value) < 1e9:
        text = np.format_float_positional(value, unique=True, trim="0")
    else:
        text = np.format_float_scientific(value, unique=True, trim="0")
    return text + ("f" if dtype == "f32" else "")
