"""Results of ``i run``: printed as text, CSV or JSON, or saved in a file, whole or not at all."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import IO

import numpy as np

from ilang.codegen.session.checkpoint import RESULTS
from ilang.codegen.system.npy import Array
from ilang.codegen.system.outputs import ARRAY, FileKind, begins_with, write_output
from ilang.core.diagnostic import CommandError, enumerated
from ilang.icli.command import Request, whole_number
from ilang.icli.exchange import CSV, csv_text, json_text
from ilang.icli.screen import SCHEMA, Screen, is_terminal
from ilang.icli.values import DIGITS, array_text

KINDS = {
    ".npy": ARRAY,
    ".npz": RESULTS,
    ".csv": CSV,
    ".json": FileKind("results of `i run` as JSON", begins_with(b'{"schema": ')),
}
"""The kinds of files of results, by the end of their names."""
ENDINGS = enumerated([*KINDS], "or")
ALONE = (".npy", ".csv")
"""Kinds that have one array."""
MOST_DIGITS = 100


def kind_of(place: str) -> FileKind | None:
    """The kind of a file of results, by the end of its name; None if ``form_of`` refuses it."""
    return next((kind for ending, kind in KINDS.items() if place.endswith(ending)), None)


def form_of(request: Request, outputs: int) -> str:
    """The form of so many results, as the end of a file's name; nothing for text.

    Raises: CommandError E0812 (no place for them), E0825, E0830 (options of which one has no use).
    """
    place, form = request.one("-o"), ""
    if request.has("--csv") and (request.has("--json") or place not in (None, "-")):
        other = "--json" if request.has("--json") else f"-o {place}"
        message = f"--csv and {other} are two forms of the results"
        raise CommandError("E0830", message, help="give one of them: --csv, --json or -o out.csv")
    if place not in (None, "-"):
        form = next((each for each in KINDS if place.endswith(each)), "")
        if not form:
            message = f"-o {place or '(empty)'} must end in {ENDINGS}"
            raise CommandError("E0812", message, help=f"-o out{'.npy' if outputs == 1 else '.npz'}")
    elif request.has("--csv") or request.has("--json"):
        form = ".csv" if request.has("--csv") else ".json"
    elif place is not None:
        form = ".npy" if outputs == 1 else ".npz"
        if is_terminal(sys.stdout):
            message = f"-o - writes a {form} to standard output, which is a terminal"
            raise CommandError("E0812", message, help=f"-o out{form}, or a pipe: | i run ...")
    if outputs != 1 and form in ALONE:
        message = f"{outputs} outputs do not fit a {form}"
        other = "--json" if place is None else f"-o out{'.npz' if form == '.npy' else '.json'}"
        raise CommandError("E0812", message, help=other)
    _precision(request, form)
    return form


def _precision(request: Request, form: str) -> int | None:
    """The digits after a point; None for as many as give the numbers back. Raises: CommandError E0825, E0830."""
    if not request.has("--precision"):
        return DIGITS if not form else None
    if form in (".npy", ".npz"):
        message = f"--precision is of numbers as text, and a {form} has the numbers themselves"
        raise CommandError("E0830", message, help="leave it out, or print text, --csv or --json")
    return whole_number(request, "--precision", DIGITS, least=0, most=MOST_DIGITS)


def show(named: Sequence[tuple[str, Array]], request: Request, screen: Screen) -> None:
    """Print results by name, or save them, as options ask. Raises: CommandError E0812, E0825, E0830, DataError."""
    place, form = request.one("-o"), form_of(request, len(named))
    digits = _precision(request, form)
    if not form:
        width, whole = screen.width(sys.stdout), request.has("--all")
        texts = (array_text(name, array, width, digits or 0, whole) for name, array in named)
        screen.write("\n".join(texts))
        return
    if place not in (None, "-"):
        save(place, named, digits)
        return
    stream = io.BytesIO()
    _write(stream, form, named, digits)
    screen.write_bytes(stream.getvalue())


def save(place: str, named: Sequence[tuple[str, Array]], digits: int | None = None) -> None:
    """Write results by name to a file, in the form that the end of its name says."""
    form = next(each for each in KINDS if place.endswith(each))
    write_output(place, KINDS[form], lambda out: _write(out, form, named, digits))


def _write(
    out: IO[bytes], form: str, named: Sequence[tuple[str, Array]], digits: int | None
) -> None:
    if form == ".npz":
        np.savez(out, allow_pickle=False, **dict(named))
    elif form == ".npy":
        np.save(out, named[0][1], allow_pickle=False)
    elif form == ".csv":
        out.write(csv_text(*named[0], digits).encode())
    else:
        text = f'{{"schema": {SCHEMA}, "outputs": {json_text(named, digits)}}}\n'
        out.write(text.encode())
