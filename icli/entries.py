"""Lines of the REPL cut into entries, the same whether they are typed, pasted or read from a pipe.

    i> x = [1,
    ...  2]             one entry, without its prompts
    # a comment         none
    f(a) = g
      >> h              one entry with the line before
    y = (1,             an entry, whose bracket was forgotten
    f x                 another one

An entry goes on while a bracket is open or it ends with an operator, and where the next line begins with a
combinator, or is indented below a line such as ``def f(x):``. A bracket that was forgotten ends where a line begins
something new, or follows without a comma or an operator. Blank lines and comments between entries are skipped, prompts
that were copied are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ilang.core.notation.lines import without_comments
from ilang.core.notation.reader import COMBINATORS
from ilang.icli.calls import defined_name
from ilang.icli.lines import BINDS, DEFINES, goes_on, open_bracket, split_words

PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))
STARTS = re.compile(r"\s*(?:\$ )?i repl(?: .*)?")
"""A command that was copied with the lines that follow it."""
PROMPT = re.compile(r"\s*(?:i>|>|\.\.\.|…)(?: |$)")
JOINS = (",", ";", ":", "=", *"+-*/<>^$!&|~@.", '"', "'")
"""Signs between two parts of what is in brackets."""
PATTERN = r"(?:[a-z0-9.]|\([^()]*\))+"
BLOCK = re.compile(r"(?:cd|op|def|for|while|if|with|class)\b[^\n]*:\s*(?:\n|$)")
"""The first line of a block in Python's spelling, of which indented lines are a part."""
COMPARED = re.compile(rf"\s*i?>\s+@?{PATTERN}\s*(?:\[[^]]*\]\s*)?~")
"""A program that begins as a prompt does: ``> ij~i``, ``i> j~ij``."""


class Entries:
    """Entries of lines; what is open after the last line is kept for the next ones."""

    def __init__(self, is_array: Callable[[str], bool]) -> None:
        """``is_array`` says whether a word names or spells an array."""
        self.is_array = is_array
        self.pending = ""

    def of(self, lines: Sequence[str]) -> Iterator[str]:
        """The entries that end in these lines."""
        bare = without_prompts(lines)
        for line, after in zip(bare, [*bare[1:], ""], strict=True):
            bracket = self._open()
            if bracket and self._begins_anew(line, bracket):
                yield from self.rest()
                bracket = ""
            is_blank = not line.strip()
            if (is_blank and bracket == "{") or (not self.pending and _says_nothing(line)):
                continue
            self.pending = f"{self.pending}\n{line}" if self.pending else line
            in_block = BLOCK.match(self.pending) is not None and after[:1].isspace()
            if in_block or goes_on(self.pending) or after.lstrip().startswith(COMBINATORS):
                continue
            yield from self.rest()

    def rest(self) -> Iterator[str]:
        """The entry that is open, if there is one."""
        if self.pending:
            entry, self.pending = self.pending, ""
            yield entry

    def _open(self) -> str:
        """The last bracket that is open, or nothing."""
        at = open_bracket(without_comments(self.pending)) if self.pending else -1
        return self.pending[at] if 0 <= at else ""

    def _is_joined(self, code: str) -> bool:
        """Whether a line can go on inside the brackets that are open: something stands between it and what is there."""
        before = without_comments(self.pending).rstrip()
        ends = before.endswith(JOINS) or before.endswith(("(", "["))
        return ends or code.lstrip().startswith((*JOINS, ")", "]"))

    def _begins_anew(self, line: str, bracket: str) -> bool:
        """Whether a line after an open bracket is an entry of its own: the bracket was forgotten."""
        code = without_comments(line)
        if bracket != "{" and code.strip() and not self._is_joined(code):
            return True
        if code.rstrip().endswith(",") or any(code.count(a) != code.count(b) for a, b in PAIRS):
            return False
        if code.startswith(":") or defined_name(code) or DEFINES.match(code):
            return True
        if bracket == "{":
            return False
        first, *words = split_words(code) or [""]
        applies = words and first not in JOINS and all(map(self.is_array, words))
        return BINDS.match(code) is not None or bool(applies) or (bracket == "[" and "~" in code)


def entries_of(lines: Sequence[str], is_array: Callable[[str], bool]) -> Iterator[str]:
    """The entries of lines after which nothing follows."""
    entries = Entries(is_array)
    yield from entries.of(lines)
    yield from entries.rest()


def is_open(text: str) -> bool:
    """Whether the last entry of a text that is typed needs another line."""
    entries = Entries(lambda _: False)
    for _ in entries.of(text.split("\n")):
        pass
    return bool(entries.pending) and not text.endswith("\n")


def _says_nothing(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def without_prompts(lines: Sequence[str]) -> list[str]:
    """Lines without the prompts that were copied with them.

    ``> ij~i`` and ``i> j~ij`` are programs too: they are prompts where every line has one.
    """
    typed = [line for line in lines if not STARTS.fullmatch(line)]
    written = [line for line in typed if not _says_nothing(line)]
    prompted = 1 < len(written) and all(PROMPT.match(line) for line in written)
    return [_bare(line) if prompted or not COMPARED.match(line) else line for line in typed]


def _bare(line: str) -> str:
    prompt = PROMPT.match(line)
    return line if prompt is None else line[prompt.end() :]
