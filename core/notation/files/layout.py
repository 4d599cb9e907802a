"""The tidy layout of a module file: ``i fmt``.

Tokens stay, in their order, on their lines; what changes is the space between them. A continued line is indented by
four, a statement of a block by two; comments are kept, two spaces after the code they follow; runs of blank lines
become one.
"""

from __future__ import annotations

import re
from itertools import pairwise

from ilang.core.diagnostic import InternalError
from ilang.core.ir.syntax import Module, same
from ilang.core.notation.files.module import parse_module, read_module
from ilang.core.notation.lines import without_comments
from ilang.core.notation.reader import BLANKS, UNFINISHED, Token
from ilang.core.source import Source

INDENT = "    "
STATEMENT = "  "
OPENING = ("(", "[", "[|", "{")
BEGINS = re.compile(r"\w|\"|~~")
"""The beginning of a statement: a word, a string or a comment."""
CLOSING = (")", "]", "|]", "}")


def format_module(source: Source) -> str:
    """The text of a file in its tidy layout; the definitions stay the same."""
    trace: list[list[Token]] = []
    before = read_module(source, trace)
    text = source.text.replace("\r", " ")
    code = without_comments(text)
    pieces = _Pieces(text)
    last = 0
    for tokens in trace:
        pieces.between(last, tokens[0][0], "")
        pieces.line(code[tokens[0][0] : tokens[0][1]])
        nesting = _Nesting()
        for one, other in pairwise(tokens):
            word = code[other[0] : other[1]]
            nesting.pass_over(code[one[0] : one[1]])
            if "\n" in code[one[1] : other[0]]:
                pieces.between(one[1], other[0], nesting.indent(""))
                pieces.line(nesting.indent(word) + word)
            else:
                begins = code[one[1] - 1] == "}" and BEGINS.match(word) is not None
                pieces.join((" " if one[3] or other[2] or begins else "") + word)
        last = tokens[-1][1]
    pieces.between(last, len(text), "")
    tidy = pieces.finish()
    _compare(before, Source(source.name, tidy))
    return tidy


class _Nesting:
    """The place of a token in a definition: in how many blocks, and in a statement or at the start of one."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.before = ("", "")

    def pass_over(self, word: str) -> None:
        """Take note of a token."""
        if word in OPENING:
            self.open.append(word)
        elif word in CLOSING and self.open:
            self.open.pop()
        self.before = (self.before[1], word)

    def indent(self, word: str) -> str:
        """The space before a token that begins a line; before a comment, where ``word`` is empty."""
        depth = self.open.count("{")
        if not depth:
            return INDENT
        if word == "}":
            return STATEMENT * (depth - 1)
        return STATEMENT * depth + ("" if self._begins() else INDENT)

    def _begins(self) -> bool:
        """Whether a statement begins after the last token."""
        return self.open[-1] == "{" and re.search(UNFINISHED, " ".join(self.before)) is None


class _Pieces:
    """Lines of the result, so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[str] = []

    def line(self, words: str) -> None:
        self.lines.append(words)

    def join(self, words: str) -> None:
        self.lines[-1] += words

    def between(self, start: int, end: int, indent: str) -> None:
        """Keep the comments and blank lines between two tokens on different lines."""
        first, *rest = self.text[start:end].split("\n")
        if start == 0:
            first, rest = "", [first, *rest]
        if first.strip(BLANKS):
            self.join("  " + first.strip(BLANKS))
        if end < len(self.text):
            rest = rest[:-1]
        for line in rest:
            words = line.strip(BLANKS + "\ufeff")
            if words:
                self.line(indent + words)
            elif self.lines and self.lines[-1]:
                self.line("")

    def finish(self) -> str:
        while self.lines and not self.lines[-1]:
            self.lines.pop()
        return "\n".join(self.lines) + "\n"


def _compare(before: Module, tidy: Source) -> None:
    """The tidy text must say what the old one said."""
    after = parse_module(tidy)
    alike = len(before.definitions) == len(after.definitions) and all(
        one.name == other.name and one.parameters == other.parameters and same(one.body, other.body)
        for one, other in zip(before.definitions, after.definitions, strict=True)
    )
    if before.functions or before.routines:
        from ilang.core.ir.functions import alike as alike_functions

        alike = alike and alike_functions(before.functions, after.functions)
        alike = alike and alike_functions(before.routines, after.routines)
    if not alike:
        raise InternalError("E9901", f"the layout of {tidy.name} changed what it says")
