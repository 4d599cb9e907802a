"""Arrays as text, literals, CSV and JSON, and arrays on standard input.

CSV has a row of numbers on each line, divided by commas, semicolons, tabs or blanks; a first line of words is skipped.
A column is a vector, one number alone a scalar. JSON is a number, nested lists, or what ``i run --json`` prints.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ilang.codegen.system.files import open_regular, unreadable
from ilang.codegen.system.npy import Array, check_memory, read_npy
from ilang.codegen.system.outputs import FileKind
from ilang.core.diagnostic import CommandError, DataError, counted
from ilang.core.dtype import INTEGER_ENDS, NUMPY_NAMES
from ilang.core.source import Source, Span
from ilang.icli.files import standard_input
from ilang.icli.literal import (
    DECIMAL,
    INTEGER,
    SPELLING,
    WORDS,
    ArrayLiteral,
    Number,
    kind_of,
    number_of,
    parse_literal,
)
from ilang.icli.values import DTYPES

SEPARATORS = (";", ",", "\t")
"""Between the numbers of a line, the first one that a text has; without them blanks."""
NOT_FINITE = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
"""Numbers as Python's JSON writes them, and as literals have them."""
CHUNK = 1 << 20
"""Bytes of standard input that are read at a time."""
BINARY = (b"\x93NUMPY", b"PK")
"""The first bytes of files of arrays that are no text."""
FORMS = '[[1, 2], [3, 4]] or {"values": [[1, 2], [3, 4]]}'
"""Arrays in JSON, for help."""


def array_of_input(written: str | None, dtype: str | None) -> Array:
    """The array on standard input: .npy, CSV or JSON, whose numbers have a type as in ``array_of_text``.

    Raises: DataError E0721 to E0723, E0725 (closed, or it cannot be read), E0727, E0728.
    """
    data = _everything()
    if data.startswith(BINARY):
        return read_npy(data)
    return array_of_text(data, "<stdin>", written, dtype)


def _everything() -> bytearray:
    stream, data = standard_input(), bytearray()
    try:
        while chunk := stream.read(CHUNK):
            data += chunk
            check_memory(len(data), "standard input")
            if b"\0" in chunk and not data.startswith(BINARY):  # no text, perhaps without end
                break
    except OSError as trouble:
        raise unreadable("standard input", trouble) from None
    if not data.strip():
        message = "standard input holds no array: it is empty"
        raise DataError("E0728", message, help="write one to it: i run PROGRAM - < x.npy")
    return data


def array_of_text(
    data: bytes | bytearray, name: str, written: str | None, dtype: str | None
) -> Array:
    """The array that a text in CSV or JSON is, of the type ``written`` before it, else of its own, else of ``dtype``.

    Raises: DataError E0721 to E0723 (at its place in the text), E0728 (it is no text).
    """
    literal, stated = _literal_of(data, name)
    return literal_array(literal, written or stated or dtype)


def literal_array(literal: ArrayLiteral, dtype: str | None) -> Array:
    """A literal as an array: of the wanted type, else f32, or bool if it holds truth values."""
    wanted = dtype or ("bool" if literal.kind == "bool" else "f32")
    for value in literal.numbers:
        _fits(value, literal.kind, wanted)
    flat = np.array(literal.numbers, dtype=_carrier(literal.kind, wanted))
    return flat.astype(NUMPY_NAMES[wanted]).reshape(literal.shape)


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
        lost = value % 1 != 0 or not low <= value <= high
    elif kind == "int":
        lost = abs(value) > 2**1000 or int(np.array(float(value), NUMPY_NAMES[wanted])) != value
    else:
        limit = float(np.finfo(NUMPY_NAMES[wanted]).max)
        lost = math.isfinite(value) and limit < abs(value)
    if lost:
        shown = str(value).lower() if isinstance(value, bool) else f"{value:.17g}"
        low, high = INTEGER_ENDS["i64"]
        fitting = {"bool": "bool", "int": "i64" if low <= value <= high else "f64"}.get(kind, "f64")
        help_line = (
            f"write the type before it: {fitting}:{shown}, or {fitting}:[{shown}, ...] for a list"
        )
        raise DataError("E0723", f"{shown} is not a value of type {wanted}", help=help_line)


def _literal_of(data: bytes | bytearray, name: str) -> tuple[ArrayLiteral, str | None]:
    """The numbers of a text in CSV or JSON, and their type where it says one."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        message = f"{name} is neither a .npy file nor a text of numbers"
        raise DataError("E0728", message, help="an array is npy, CSV or JSON") from None
    first = text.lstrip()[:1]
    if first == "{":
        return _of_object(text, name)
    if first == "[":
        return _of_list(text, name), None
    return _of_rows(Source(name, text)), None


def _of_list(text: str, name: str) -> ArrayLiteral:
    """The numbers of lists of JSON: those that are not finite stand in quotes, or have other names.

    Raises: DataError E0721, E0722, whose place is one of the text as it is given.
    """
    quoted = r'"?(-?)(NaN|Infinity|nan|inf)"?'
    spelled = re.sub(quoted, lambda m: f"{m[1]}{m[2][:3].lower()}".ljust(len(m[0])), text)
    try:
        return parse_literal(spelled, name)
    except DataError as error:
        span = error.span and Span(Source(name, text), error.span.start, error.span.end)
        raise type(error)(error.code, error.message, span, error.help) from None


def _of_object(text: str, name: str) -> tuple[ArrayLiteral, str | None]:
    """The array, and its type, of an object of JSON: the one result of ``i run --json``, or an entry of it."""
    try:
        whole = json.loads(text)
        entries = whole.get("outputs", [whole])
        (entry,) = entries if len(entries) == 1 else (None,)
        values = json.dumps(entry["values"]) if entry is not None else ""
        shape, dtype = (entry or {}).get("shape"), (entry or {}).get("dtype")
    except (ValueError, LookupError, AttributeError, TypeError):
        message = f"{name} is no JSON of an array"
        raise DataError("E0728", message, help=f"write its numbers: {FORMS}") from None
    if entry is None:
        message = f"{name} holds {len(entries)} arrays, and one is read"
        raise DataError("E0728", message, help=f"write the numbers of one: {FORMS}")
    literal = _of_list(values, name)
    if not literal.numbers and isinstance(shape, list) and 0 in shape:
        literal = ArrayLiteral(
            tuple(shape), (), literal.kind
        )  # lists without numbers have not all of it
    return literal, dtype if dtype in NUMPY_NAMES else None


def _of_rows(source: Source) -> ArrayLiteral:
    mark = next((each for each in SEPARATORS if each in source.text), None)
    rows: list[list[Number]] = []
    kinds: set[str] = set()
    for line, place in enumerate(re.finditer(r"[^\r\n]*\S[^\r\n]*", source.text)):
        fields = [each.strip(' "') for each in place[0].split(mark)]
        if not line and not any(_is_number(each) for each in fields):
            continue  # names of columns
        if rows and len(fields) != len(rows[0]):
            message = (
                f"this line has {counted(len(fields), 'number')}, and the first one {len(rows[0])}"
            )
            span = Span(source, *place.span())
            raise DataError("E0722", message, span, "a row has a number for each column")
        row = []
        for number, text in enumerate(fields):
            try:
                read = number_of(NOT_FINITE.get(text, text))
            except DataError as error:
                span = _field(source, place, mark, number)
                raise DataError(error.code, error.message, span, error.help) from None
            if read is None:
                message = f"`{text}` is not a number" if text else "a number is missing"
                raise DataError("E0721", message, _field(source, place, mark, number), SPELLING)
            row.append(read[0])
            kinds.add(read[1])
        rows.append(row)
    if not rows:
        message = f"{source.name} holds no number"
        raise DataError(
            "E0728", message, help="CSV has rows like 1,2 and JSON lists like [[1, 2], [3, 4]]"
        )
    numbers = tuple(number for row in rows for number in row)
    shape = (len(rows), len(rows[0])) if len(rows[0]) > 1 else (len(rows),)
    alone = len(numbers) == 1 and len(source.text.split()) == 1
    return ArrayLiteral(() if alone else shape, numbers, kind_of(kinds))


def _is_number(text: str) -> bool:
    is_word = text in WORDS or text in NOT_FINITE
    return is_word or bool(INTEGER.fullmatch(text) or DECIMAL.fullmatch(text))


def _field(source: Source, line: re.Match[str], mark: str | None, number: int) -> Span:
    """The place of a field of a line, without blanks and quotes around it."""
    kind = r"\S+" if mark is None else f"(?:(?<={mark})|^)[^{mark}\r\n]*"
    field = list(re.compile(kind, re.MULTILINE).finditer(source.text, *line.span()))[number]
    start = field.start() + len(field[0]) - len(field[0].lstrip(' "'))
    return Span(source, start, start + len(field[0].strip(' "')))


def read_text(path: str, written: str | None = None, dtype: str | None = None) -> Array:
    """The array in a file of CSV or JSON. Raises: DataError E0721 to E0723, E0725 to E0728."""
    with open_regular(path) as stream:
        check_memory(os.fstat(stream.fileno()).st_size, path)
        return array_of_text(stream.read(), path, written, dtype)


def csv_text(name: str, array: Array, precision: int | None) -> str:
    """An array as CSV: a line for each row, or for each element of a vector.

    Raises: CommandError E0812 (it has more dimensions).
    """
    if 2 < array.ndim:
        message = f"{name} has {array.ndim} dimensions, and CSV has two"
        raise CommandError("E0812", message, help="--json, or -o out.npy")
    rows = array.reshape(len(array), -1) if array.ndim and array.size else array.reshape(-1, 1)
    return "".join(f"{','.join(number_text(each, precision) for each in row)}\n" for row in rows)


def json_text(named: Sequence[tuple[str, Array]], precision: int | None) -> str:
    """Arrays by name, as the member ``outputs`` of an object of JSON."""
    entries = []
    for name, array in named:
        head = {"name": name, "dtype": DTYPES[array.dtype.name], "shape": list(array.shape)}
        values = _nested(array, precision)
        entries.append(f'{json.dumps(head)[:-1]}, "values": {values}}}')
    return f"[{', '.join(entries)}]"


def _nested(array: Array, precision: int | None) -> str:
    if array.ndim:
        return f"[{', '.join(_nested(each, precision) for each in array)}]"
    text = number_text(array[()], precision)
    return text if np.isfinite(array) else f'"{text}"'


def number_text(number: Any, precision: int | None = None) -> str:
    """A number of an array with the fewest digits that give it back, or so many after the point."""
    if number.dtype.kind == "b":
        return str(number).lower()
    if number.dtype.kind != "f" or not np.isfinite(number):
        return str(number)
    if precision is None:
        return str(number) if number == 0 and np.signbit(number) else str(number).removesuffix(".0")
    is_plain = number == 0 or 1e-4 <= abs(number) < 1e16
    spelled = np.format_float_positional if is_plain else np.format_float_scientific
    return str(spelled(number, precision=precision, trim="-"))


def _is_text_of(path: str) -> bool:
    """Whether a file holds an array as text."""
    try:
        read_text(path)
    except DataError:
        return False
    return True


CSV = FileKind("a CSV file of numbers", _is_text_of)
