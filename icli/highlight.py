"""A line of the REPL as colored pieces; a small lexer, linear in the line."""

from __future__ import annotations

import re
from collections.abc import Container

TOKEN = re.compile(
    r"(?P<comment>#.*)|(?P<command>^\s*:\w*)|(?P<text>\"[^\"]*\"?)|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[-+*/<>^$=!&|~]+)|(?P<other>\s+|.)",
    re.DOTALL,
)
SIGNS = "+-*/<>^$=!&|~"


NAME = r"[A-Za-z_]\w*"
HEAD = re.compile(rf"\s*{NAME}\s*\(([^()~]*)\)\s*=(?!=)", re.ASCII)
INPUTS = re.compile(rf"(?:^|,)\s*({NAME})", re.ASCII)
STATEMENT = re.compile(
    rf"(?:^|[;{{])\s*((?:{NAME}\s*,\s*)*{NAME})\s*=(?!=)", re.ASCII | re.MULTILINE
)


def values(text: str) -> list[str]:
    """The inputs, and the names that statements bind, of a definition that is being typed; its own name is none."""
    head = HEAD.match(text)
    if head is None:
        return []
    inputs = INPUTS.findall(re.sub(r"\[[^\]]*\]?", "", head.group(1)))
    bound = [name for names in STATEMENT.findall(text, head.end()) for name in names.split(",")]
    return list(dict.fromkeys([*inputs, *(name.strip() for name in bound)]))


def pieces(line: str, known: Container[str]) -> list[tuple[str, str]]:
    """Kind and text of every piece, in order: comment command text number known name axis wire sign other.

    Letters that touch a sign are a pattern, a piece of kind ``axis`` each; ``>>`` between blanks is a ``wire``.
    """
    pieces_of_text: list[tuple[str, str]] = []
    for match in TOKEN.finditer(line):
        kind, word = match.lastgroup or "other", match.group()
        before = line[match.start() - 1 : match.start()]
        after = line[match.end() : match.end() + 1]
        if kind == "name" and word in known:
            pieces_of_text.append(("known", word))
        elif kind == "name" and _is_pattern(word) and (_touches(before) or _touches(after)):
            pieces_of_text += (("axis", letter) for letter in word)
        elif word in (">>", "<<", "&", "|") and not before.strip() and not after.strip():
            pieces_of_text.append(("wire", word))
        else:
            pieces_of_text.append((kind, word))
    return pieces_of_text


def _touches(character: str) -> bool:
    return character != "" and character in SIGNS


def _is_pattern(word: str) -> bool:
    return word.isascii() and word.isalpha() and word.islower()
