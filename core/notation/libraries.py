"""``use nn, optim``: definitions of libraries that a file uses stand beside its own.

Of a library come what the file names, and what those need. A name that the file defines itself means the file's own;
where a definition of a library needs the library's, or a primitive, of that name, that is refused: it would mean
something else than it says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from ilang.core.diagnostic import Label, ModuleError
from ilang.core.ir.primitives import PRIMITIVES
from ilang.core.library import LIBRARIES, text_of
from ilang.core.notation.lines import logical_lines, without_comments
from ilang.core.notation.reader import WORD, WORD_START, Reader
from ilang.core.record import record
from ilang.core.source import Source, Span
from ilang.core.suggestion import did_you_mean

BEGINS = re.compile(r"(?:(?:op|cd)[ \t]+)?([A-Za-z_]\w*)", re.ASCII)
"""The beginning of a definition, and its name."""
WORDS = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@record
class LibraryDefinition:
    """One definition of a library: its name, where that and the whole stand, and every word of it."""

    name: Span
    source: Source
    start: int
    end: int
    words: frozenset[str]


def used_libraries(reader: Reader) -> list[str]:
    """The libraries that a line names.

    Raises:
        ModuleError: E0413 (there is none of this name), E0406 (something else stands there).
    """
    reader.take(reader.past(WORD, reader.pos), right=True)
    names: list[str] = []
    while True:
        c = reader.skip()
        if not c or c not in WORD_START:
            raise _no_name(reader)
        span = reader.take(reader.past(WORD, reader.pos))
        name = span.text()
        if name not in LIBRARIES:
            listed = did_you_mean(name, LIBRARIES, f"there are {', '.join(LIBRARIES)}", "`{}`")
            raise ModuleError("E0413", f"there is no library `{name}`", span, listed)
        names.append(name)
        if reader.skip() != ",":
            break
        reader.take(reader.pos + 1, right=True)
    if reader.skip():
        raise _no_name(reader)
    return names


def _no_name(reader: Reader) -> ModuleError:
    span = reader.span(reader.pos, max(reader.pos + 1, reader.end))
    return ModuleError("E0406", "a line `use` names libraries", span, "write `use nn, optim`")


def defined_in() -> dict[str, str]:
    """The definitions of all libraries, and the library of each."""
    return {part.name.text(): library for library in LIBRARIES for part in _parts(library)}


def needed_parts(
    libraries: Sequence[str],
    words: Collection[str],
    defined: Mapping[str, Span],
) -> list[LibraryDefinition]:
    """The definitions of libraries that a file needs, in their order.

    Args:
        libraries: those that the file uses.
        words: every word of the file.
        defined: the definitions of the file, and where they stand.

    Raises:
        ModuleError: E0414 (the file defines what a definition of a library needs of its library or of the language).
    """
    parts = {part.name.text(): part for name in dict.fromkeys(libraries) for part in _parts(name)}
    needed: set[str] = set()
    todo = [name for name in parts if name in words and name not in defined]
    while todo:
        name = todo.pop()
        if name in needed:
            continue
        needed.add(name)
        for word in sorted(parts[name].words & (parts.keys() | PRIMITIVES.keys()) - {name}):
            if word in defined:
                whose = "that of the library" if word in parts else "the primitive"
                message = f"`{word}` is defined here, and `{name}` of a library needs {whose}"
                labels = (
                    Label(defined[word], "defined here"),
                    Label(parts[name].name, "needs the other"),
                )
                raise ModuleError("E0414", message, defined[word], "give it another name", labels)
            if word in parts:
                todo.append(word)
    return [part for name, part in parts.items() if name in needed]


def _parts(library: str) -> list[LibraryDefinition]:
    source = Source(f"{library}.i", text_of(library))
    text = without_comments(source.text)
    parts = []
    for start, end in logical_lines(text):
        match = BEGINS.match(text, start)
        assert match is not None
        words = frozenset(WORDS.findall(text, start, end))
        parts.append(LibraryDefinition(Span(source, *match.span(1)), source, start, end, words))
    return parts
