"""Libraries of emitted programs: headers, of which a text holds the parts that it names.

A header of ``headers/`` is C that compiles alone. The parts of a header stand between empty lines: a function, a macro
or a type, or some that belong together, with their comment. As a linker takes members of an archive, ``linked`` takes
the parts that a text names, and those that these name; so nothing can be called that is not there, and nothing is there
that nobody calls. No name of a part is one that a program may give (``identifiers.py``).

Example, of a text that calls ``exp_f32``:
    exp_f32 names muladd_f32, bits_of_f32, f32_of_bits and power_f32, and all of them INLINED; muladd_f32 names FUSED
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from ilang.core.record import record
from ilang.core.walks import reached

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
WORD = re.compile(r"([A-Za-z_]\w*)(?:<\w+>)?(\(|<<<)?")
TOKEN = re.compile(
    r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'"
    r"|(?<![\w.])(?P<word>[A-Za-z_]\w*)(?=(?:<\w+>)?(?P<called>\(|<<<)?)",
    re.DOTALL,
)
"""A comment, a text, a character or a word, and whether it is called or launched."""
DEFINED = re.compile(
    r"^#define (\w+)"
    r"|^typedef struct (\w+)"
    r"|^struct (\w+)"
    r"|^typedef [\w ]+? (\w+) __attribute__"
    r"|^enum \{ (\w+)"
    r"|^(?:static|INLINED) [^;{(=]*?(\w+(?:\(|(?=;)))",
    re.MULTILINE,
)
CONDITION = re.compile(r"#if\w* [^\n]*")


@record
class HeaderPart:
    """A part of a header: what it defines, and its text; ``condition`` is the line that has to hold.

    The name of a function ends in ``(``: it is named where it is called, and not by a variable of the same name.
    """

    names: tuple[str, ...]
    text: str
    condition: str = ""


def parts_of(text: str) -> Iterator[HeaderPart]:
    """The parts of a header; what stands around them, the guard, the includes and conditions of all, is none."""
    condition = ""
    for paragraph in text.strip("\n").split("\n\n"):
        code = COMMENT.sub("", paragraph).strip("\n")
        names = tuple(dict.fromkeys("".join(groups) for groups in DEFINED.findall(code)))
        if CONDITION.fullmatch(paragraph):
            condition = paragraph
        elif paragraph == "#endif":
            condition = ""
        elif names and not code.startswith("#ifndef"):
            yield HeaderPart(names, paragraph, condition)
        else:
            frame = all(line.startswith("#") for line in code.split("\n"))
            assert frame, f"a part of a header defines something: {paragraph}"


@functools.cache
def header(name: str) -> tuple[HeaderPart, ...]:
    """The parts of a header."""
    path = Path(__file__).parent / "headers" / name
    return tuple(parts_of(path.read_text("ascii")))


def linked(text: str, parts: Sequence[HeaderPart], before: str = "") -> Iterator[str]:
    """The lines of the parts that a text names, and of those that these name, in their order.

    What a text ``before`` it names is there already.
    """
    known = _wanted(before, parts) if before else []
    wanted = [part for part in _wanted(text, parts) if part not in known]
    for condition, group in groupby(wanted, key=lambda part: part.condition):
        yield from [condition] if condition else []
        for part in group:
            yield from (*part.text.split("\n"), "")
        yield from ["#endif", ""] if condition else []


def _wanted(text: str, parts: Sequence[HeaderPart]) -> list[HeaderPart]:
    """The parts that a text names, and those that these name."""
    owners = {name: number for number, part in enumerate(parts) for name in part.names}
    texts = {name: parts[number].text for name, number in owners.items()}
    named = reached(_named(text), lambda n: _named_by_part(texts[n]) if n in texts else ())
    taken = {owners[name] for name in named & owners.keys()}
    return [part for number, part in enumerate(parts) if number in taken]


@functools.lru_cache(maxsize=1024)
def _named_by_part(text: str) -> frozenset[str]:
    """The names that a part of a header mentions; many texts take it."""
    return frozenset(_named(text))


PREFIX = "il_"
"""The beginning of the names of parts in a text."""


def prefixed(
    lines: Iterable[str], parts: Sequence[HeaderPart], prefix: str = PREFIX
) -> Iterator[str]:
    """Lines of C whose names of parts begin with a prefix, so that arrays may have the names of functions of headers.

    A function is named where it is called. What stands in comments, texts and characters is nobody's name.
    """
    names = {name for part in parts for name in part.names}

    def renamed(token: re.Match[str]) -> str:
        word, called = token["word"], token["called"] or ""
        is_part = word is not None and (word in names or (called and f"{word}(" in names))
        return f"{prefix}{token[0]}" if is_part else token[0]

    yield from TOKEN.sub(renamed, "\n".join(lines)).split("\n")


MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)


def own(text: str, parts: Sequence[HeaderPart], prefix: str) -> Iterator[str]:
    """Lines by which the parts that a text names have a prefix of their own, where the text says ``il_`` alone.

    Two files that begin so may be one translation unit: what the second one defines anew, the first one has read.
    """
    yield "/* names of this library alone: its files and those of another may be compiled as one */"
    for part in _wanted(text, parts):
        macros = MACRO.findall(part.text)
        for name in dict.fromkeys(name.removesuffix("(") for name in part.names):
            yield f"#undef {PREFIX}{name}"
            if name not in macros:
                yield f"#define {PREFIX}{name} {prefix}{name}"
    yield ""


def _named(text: str) -> set[str]:
    """Every word of a C text, but for comments; what is called or launched is named both with ``(`` and without."""
    words = set(WORD.findall(COMMENT.sub(" ", text)))
    return {word for word, _ in words} | {f"{word}(" for word, called in words if called}
