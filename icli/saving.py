"""``:save`` of the REPL: definitions or arrays in a file, by the end of its name.

:save m.i              2 definitions saved to m.i
:save m.i norm         norm saved to m.i, and sums, which it uses
:save "my x.npy" x     x saved to my x.npy, in place of the arrays that it had
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, Error, counted, enumerated
from ilang.core.library import STD
from ilang.core.suggestion import did_you_mean
from ilang.icli.files import ARRAY_FILES
from ilang.icli.replies import Reply

if TYPE_CHECKING:
    from ilang.icli.session import ReplSession

DEFINITIONS = ".i"


def save(session: ReplSession, rest: str) -> Reply:
    """Save what is named, or all definitions.

    Raises:
        CommandError: E0812 (the file is for something else), E0819 (nothing to save), E0820 (no such array).
        DataError: E0768 (the file has something that would be lost), E0731, E0732.
    """
    place, *names = words_of(rest) or [""]
    if place.endswith(ARRAY_FILES):
        return _save_arrays(session, place, names)
    if place.endswith(DEFINITIONS):
        return _save_definitions(session, place, names)
    raise _no_file(session, place, names)


def words_of(rest: str) -> list[str]:
    """The words after a command; quotes hold one together that has blanks."""
    try:
        return shlex.split(rest)
    except ValueError:
        return rest.split()


def counted_definitions(texts: Iterable[str]) -> str:
    """The number of definitions among these, of which some keys are lines that name libraries."""
    return counted(sum(name.isidentifier() for name in texts), "definition")


def _no_file(session: ReplSession, place: str, names: Sequence[str]) -> CommandError:
    """The error for a file whose name says nothing of what is in it."""
    if not place:
        return CommandError("E0819", ":save needs a file", help=":save model.i")
    known = session.names()
    if names and names[-1].endswith((*ARRAY_FILES, DEFINITIONS)):
        others = [place, *names[:-1]]
        spaced = f'"{" ".join((place, *names))}"'
        hint = (
            f":save {' '.join((names[-1], *others))}"
            if known.issuperset(others)
            else f":save {spaced}"
        )
        message = f"the file comes first, and a name with blanks is quoted; {place} is no file"
        return CommandError("E0812", message, help=hint)
    if not names and place in known:
        kind, ending = (
            ("an array", ".npy") if place in session.arrays else ("a definition", DEFINITIONS)
        )
        message = f"`{place}` is {kind}, and no file is named for it"
        return CommandError("E0819", message, help=f":save {place}{ending} {place}")
    listed = f"for definitions {place} would end in {DEFINITIONS}, for arrays in {enumerated(ARRAY_FILES, 'or')}"
    first = names[0] if names else ""
    stem = re.sub(r"\.\w*$", "", place) or "model"
    ending = (".npy" if len(names) == 1 else ".npz") if first in session.arrays else DEFINITIONS
    return CommandError("E0812", listed, help=f":save {' '.join((stem + ending, *names))}")


def _save_arrays(session: ReplSession, place: str, names: Sequence[str]) -> Reply:
    from pathlib import Path

    from ilang.icli.results import ALONE
    from ilang.icli.results import save as save_results

    if not names:
        stem = place.rpartition("/")[2].rpartition(".")[0]
        name = stem if stem in session.arrays else next(reversed(session.arrays), "x")
        raise CommandError("E0819", f"no array is named for {place}", help=f":save {place} {name}")
    for name in names:
        if name in session.texts:
            message = f"{place} takes arrays, and {name} is a definition"
            raise CommandError("E0812", message, help=f":save {name}{DEFINITIONS} {name}")
        if name not in session.arrays:
            raise no_array(session, name)
    if len(names) > 1 and place.endswith(ALONE):
        other = f":save {place.rpartition('.')[0]}.npz {' '.join(names)}"
        raise CommandError("E0812", f"{len(names)} arrays do not fit {place}", help=other)
    path = Path(place)
    is_there = path.is_file() and path.stat().st_size
    save_results(place, [(name, session.arrays[name]) for name in names])
    lost = ", in place of the arrays that it had" if is_there else ""
    return Reply((f"{', '.join(names)} saved to {place}{lost}",))


def no_array(session: ReplSession, name: str) -> CommandError:
    """The error for a name that no array has."""
    hint = did_you_mean(name, tuple(session.arrays), ":names lists all")
    return CommandError("E0820", f"there is no array named `{name}`", help=hint)


def _save_definitions(session: ReplSession, place: str, names: Sequence[str]) -> Reply:
    from ilang.codegen.system.outputs import FileKind, write_output
    from ilang.core.notation.files.layout import format_module
    from ilang.core.source import Source

    for name in names:
        if name in session.arrays:
            message = f"{place} takes definitions, and {name} is an array"
            raise CommandError("E0812", message, help=f":save {name}.npy {name}")
        if name not in session.texts:
            known = [each for each in session.texts if each.isidentifier()]
            hint = did_you_mean(name, known, ":names lists all")
            raise CommandError("E0819", f"no definition is named {name}", help=hint)
    if not session.texts:
        raise CommandError("E0819", "there is no definition to save", help="make one: sums = +ij~i")
    texts = _with_library(place, _needed(session.texts, names or [*session.texts]))
    text = format_module(Source(place, "\n".join(texts.values()) + "\n"))
    before = _definitions_in(place)
    kind = FileKind(
        "a file of these definitions alone", lambda _: before is not None and before <= texts.keys()
    )
    write_output(place, kind, lambda stream: stream.write(text.encode()))
    used = [name for name in texts if name.isidentifier() and name not in names]
    also = (
        f", and {', '.join(used)}, which {'it uses' if len(names) == 1 else 'they use'}"
        if names and used
        else ""
    )
    saved = ", ".join(names) or counted_definitions(texts)
    names_before = sorted(name for name in before or () if name.isidentifier())
    lost = f", in place of {', '.join(names_before)}" if names_before else ""
    return Reply((f"{saved} saved to {place}{also}{lost}",))


def _needed(texts: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The definitions of some names and those that they use, behind the lines that name libraries."""
    needed, open_names = set(names), [*names]
    while open_names:
        words = set(re.findall(r"[A-Za-z_]\w*", texts[open_names.pop()]))
        new = words & texts.keys() - needed
        needed |= new
        open_names += new
    libraries = {name: text for name, text in texts.items() if not name.isidentifier()}
    return libraries | {name: text for name, text in texts.items() if name in needed}


def _with_library(place: str, texts: dict[str, str]) -> dict[str, str]:
    """Definitions with the line on the library that they use without it, as lines of the REPL may, and files do not."""
    from ilang.core.notation.files.module import parse_module
    from ilang.core.source import Source

    try:
        parse_module(Source(place, "\n".join(texts.values())))
    except Error as error:
        use = f"use {STD}"
        if error.code not in ("E0401", "E0440"):
            raise
        return {use: use, **texts}
    return texts


def _definitions_in(path: str) -> set[str] | None:
    """The names in a file that has definitions and nothing else, no comment between them; None in another one."""
    from ilang.codegen.system.files import read_module
    from ilang.core.notation.files.layout import format_module
    from ilang.core.source import Source
    from ilang.icli.calls import texts_of

    try:
        module = read_module(path)
    except Error:
        return None
    texts = texts_of(module)
    alone = Source(path, "\n".join(texts.values()) + "\n")
    lines = [format_module(each).split() for each in (module.source, alone)]
    return set(texts) if lines[0] == lines[1] else None
