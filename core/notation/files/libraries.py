"""``use nn, optim``: definitions of libraries that a file uses stand beside its own.

Of a library come what the file names, and what those need. A name that the file defines itself means the file's own;
where a definition of a library needs the library's, or a primitive, of that name, that is refused: it would mean
something else than it says. A library may have a component and a tensor function of one name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from ilang.core.diagnostic import Label, ModuleError
from ilang.core.ir.primitives import PRIMITIVES
from ilang.core.library import INNER, LIBRARIES, STD, text_of
from ilang.core.notation.lines import logical_lines, without_comments
from ilang.core.notation.reader import Reader
from ilang.core.record import record
from ilang.core.source import Source, Span
from ilang.core.suggestion import did_you_mean, nearest

BEGINS = re.compile(r"(?:(op|cd)[ \t]+)?([A-Za-z_]\w*)", re.ASCII)
"""The beginning of a definition: its word, if it has one, and its name."""
WORDS = re.compile(r"[A-Za-z_]\w*", re.ASCII)
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|\.[ \t]*\w+")
"""Parts of a text that name no definition: a text in quotes, and a word after a point."""


@record
class LibraryDefinition:
    """One definition of a library: its name, where that and the whole stand, and every word of it.

    ``wired``: it is a component.
    """

    name: Span
    source: Source
    start: int
    end: int
    words: frozenset[str]
    wired: bool

    def text(self) -> str:
        """The definition as it is written."""
        return self.source.text[self.start : self.end]


Part = tuple[str, bool]
"""The name of a definition of a library, and whether it is a component: one of each kind may have one name."""


def used_libraries(reader: Reader) -> list[str]:
    """The libraries that a line names.

    Raises:
        ModuleError: E0413 (there is none of this name), E0406 (something else stands there).
    """
    reader.take(reader.pos + len(reader.word()), right=True)
    names: list[str] = []
    while True:
        span = reader.take_name()
        if span is None:
            raise _no_name(reader)
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
    """The definitions of all libraries, and the first library that has each."""
    known: dict[str, str] = {}
    for library in LIBRARIES:
        for part in definitions_in(library):
            known.setdefault(part.name.text(), library)
    return known


def words_of(text: str) -> set[str]:
    """The words of a text that may name definitions."""
    return set(WORDS.findall(QUOTED.sub(" ", text)))


def needed_parts(
    libraries: Sequence[str],
    wired: Collection[str],
    called: Collection[str],
    defined: Mapping[str, Span],
) -> list[LibraryDefinition]:
    """The definitions of libraries that a file needs, in their order.

    Args:
        libraries: those that the file uses.
        wired: every word of the components of the file.
        called: every word of its tensor functions and routines.
        defined: the definitions of the file, and where they stand.

    Raises:
        ModuleError: E0414 (the file defines what a definition of a library needs of its library or of the language).
    """
    parts = _all_parts(libraries)
    names = {name for name, _ in parts}
    needed: set[Part] = set()
    todo = [
        _meant(parts, name, is_wired)
        for words, is_wired in ((wired, True), (called, False))
        for name in names.intersection(words)
        if name not in defined
    ]
    while todo:
        part = todo.pop()
        if part is None or part in needed:
            continue
        needed.add(part)
        for word in sorted(parts[part].words & (names | PRIMITIVES.keys()) - {part[0]}):
            other = _meant(parts, word, part[1])
            if other is None and (part[1] or word not in PRIMITIVES):
                continue
            if word in defined:
                whose = "that of the library" if other is not None else "the primitive"
                message = f"`{word}` is defined here, and `{part[0]}` of a library needs {whose}"
                labels = (
                    Label(defined[word], "defined here"),
                    Label(parts[part].name, "needs the other"),
                )
                raise ModuleError("E0414", message, defined[word], "give it another name", labels)
            todo.append(other)
    return [part for key, part in parts.items() if key in needed]


def _all_parts(libraries: Sequence[str]) -> dict[Part, LibraryDefinition]:
    """The definitions of libraries; of a name that two have, that of the first of all libraries."""
    parts: dict[Part, LibraryDefinition] = {}
    for library in LIBRARIES:
        for part in definitions_in(library) if library in libraries else ():
            parts.setdefault((part.name.text(), part.wired), part)
    return parts


def _meant(parts: Mapping[Part, LibraryDefinition], name: str, wired: bool) -> Part | None:
    """The definition that a name means in a component, or else in a tensor function, where a primitive comes first."""
    if (name, wired) in parts:
        return name, wired
    other = (name, not wired)
    return other if other in parts and (wired or name not in PRIMITIVES) else None


def piece_help(word: str, in_file: bool) -> str | None:
    """The help on an unknown word that is, or resembles, a component of the library; a file has to use it."""
    public = [part.name.text() for part in definitions_in(STD) if part.wired]
    close = nearest(word, [name for name in public if name not in INNER])
    if close is None or (close == word and not in_file):
        return None
    from ilang.core.notation.guidance import named

    if close != word and named(word) is not None:
        return None  # it is a function of other systems, whose program is help
    return f"`use {STD}` has `{close}`" if close == word else f"did you mean `{close}`, of `{STD}`?"


def text_of_kind(library: str, wired: bool) -> str:
    """The text of a library, its components or its tensor functions blanked: a file has each name once."""
    text = text_of(library)
    for part in definitions_in(library):
        if part.wired is not wired:
            blank = re.sub(r"[^\n]", " ", text[part.start : part.end])
            text = text[: part.start] + blank + text[part.end :]
    return text


@cache
def definitions_in(library: str) -> list[LibraryDefinition]:
    """The definitions of a library, in order."""
    source = Source(f"{library}.i", text_of(library))
    text = without_comments(source.text)
    parts = []
    for start, end in logical_lines(text):
        match = BEGINS.match(text, start)
        assert match is not None
        words = frozenset(words_of(text[start:end]))
        name = Span(source, *match.span(2))
        parts.append(LibraryDefinition(name, source, start, end, words, match[1] is None))
    return parts
