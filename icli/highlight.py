"""The kinds of words and signs, and lines of the REPL as colored pieces.

``TOKENS`` is the one table of them: the REPL reads it here, Pygments in ``lexer.py``, the language server in
``server.py``, and ``editors.py`` writes the grammars of editors out of it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from ilang.core.ir.primitives import PRIMITIVES
from ilang.core.notation.functions.tokens import CONSTANTS, WORDS
from ilang.core.notation.reader import LATER, RESERVED, TYPES


class TokenRule(NamedTuple):
    """A kind of token: the regular expression of one, and what others call such a token.

    Of two rules the one that matches first in the line counts, and of those that match at one place the first one.
    ``scope`` is the name in TextMate grammars, ``pygments`` the token of Pygments, ``group`` that of vim, ``semantic``
    that of the language server, empty where it has none. ``pattern`` uses what Python, Oniguruma and ``editors.py``
    read alike.
    """

    kind: str
    pattern: str
    scope: str
    pygments: str
    group: str
    semantic: str = ""


def _any(words: Iterable[str]) -> str:
    """The pattern of one of some words."""
    return rf"\b(?:{'|'.join(sorted(set(words)))})\b"


NAME = r"[A-Za-z_]\w*"
BEFORE_OUTPUT = r"(?=[a-z0-9.+\-*/<>^$!&|=@:,()\[\]]{0,60}~)"
"""Before the rest of an index expression: of bounded length, so that lines are read in linear time."""
QUOTED = r'"[^"\n]*"?' + r"|(?<![A-Za-z0-9_'])'[^'\n]*'"
"""A text, or a label: the quotes of ``i'`` in a schedule begin none."""
KEYWORDS = ("use", "not", "forward", "backprop", "zero_grads", *LATER, *WORDS)
FUNCTIONS = tuple(word for word in PRIMITIVES if word not in KEYWORDS)
QUOTING = tuple(word for word in RESERVED if word not in (*TYPES, *LATER))

TOKENS = (
    TokenRule("comment", r"#.*", "comment.line.number-sign", "Comment.Single", "Comment", "comment"),
    TokenRule("text", QUOTED, "string.quoted", "String", "String", "string"),
    TokenRule("member", rf"(?<=\.){NAME}(?!\w)(?!~)", "variable.other.member", "Name.Attribute", "Identifier"),
    TokenRule("type", _any(TYPES), "support.type", "Keyword.Type", "Type", "type"),
    TokenRule("definition", rf"(?<=^op |^cd ){NAME}|^(?!(?:op|cd|use)\b){NAME}(?=\s*(?:\([^~]*\)\s*)?=(?!=))",
              "entity.name.function", "Name.Function", "Function", "function"),
    TokenRule("axis", rf"[a-z]+{BEFORE_OUTPUT}|(?<=~)[a-z]+(?![a-z0-9_:])|(?<=~\()[a-z]+",
              "variable.parameter.axis", "Name.Variable", "Identifier", "typeParameter"),
    TokenRule("keyword", _any(KEYWORDS), "keyword.control", "Keyword", "Keyword", "keyword"),
    TokenRule("number", r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", "constant.numeric", "Number", "Number", "number"),
    TokenRule("constant", _any(tuple(CONSTANTS)), "constant.language", "Keyword.Constant", "Boolean", "keyword"),
    TokenRule("builtin", rf"{_any(QUOTING)}|{_any(FUNCTIONS)}(?=\s*\()", "support.function", "Name.Builtin",
              "Special", "function"),
    TokenRule("call", rf"{NAME}(?=\()", "entity.name.function.call", "Name.Function", "Function", "function"),
    TokenRule("name", NAME, "variable.other", "Name", "Identifier"),
    TokenRule("wire", r"(?<!\S)(?:>>|<<|&|\|)(?!\S)", "keyword.operator.wire", "Operator", "Statement", "operator"),
    TokenRule("sign", r"[-+*/<>^$=!&|~@?]+", "keyword.operator", "Operator", "Operator", "operator"),
)  # fmt: skip
"""Every kind of token of a file, in the order in which they are tried; anything else is a piece of its own."""

TOKEN = re.compile(
    r"(?P<command>^\s*:\w*)|"
    + "|".join(f"(?P<t{n}>{rule.pattern})" for n, rule in enumerate(TOKENS))
    + r"|(?P<other>\s+|.)",
    re.DOTALL | re.ASCII,
)
SIGNS = "+-*/<>^$=!&|~"

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


def tokens(line: str) -> Iterator[tuple[str, int, int]]:
    """Kind, start and end of every piece of a line, in order; of kind ``other`` where no rule has it."""
    for match in TOKEN.finditer(line):
        group = match.lastgroup or "other"
        kind = TOKENS[int(group[1:])].kind if group[1:].isdigit() else group
        yield kind, match.start(), match.end()


def pieces(line: str, known: Container[str]) -> list[tuple[str, str]]:
    """Kind and text of every piece, in order: one of ``TOKENS``, ``command``, ``known`` or ``other``.

    A letter of an axis is a piece of its own, and so is one of a word that touches a sign: a pattern that is typed has
    no ``~`` yet.
    """
    pieces_of_text: list[tuple[str, str]] = []
    for kind, start, end in tokens(line):
        word = line[start:end]
        touches = _touches(line[start - 1 : start]) or _touches(line[end : end + 1])
        if word in known:
            pieces_of_text.append(("known", word))
        elif kind == "axis" or (kind in ("name", "call") and touches and _is_pattern(word)):
            pieces_of_text += (("axis", letter) for letter in word)
        else:
            pieces_of_text.append((kind, word))
    return pieces_of_text


def _touches(character: str) -> bool:
    return character != "" and character in SIGNS


def _is_pattern(word: str) -> bool:
    return word.isascii() and word.isalpha() and word.islower()
