"""A cursor over a source: what every reader of text shares.

The cursor never looks past ``end``, and can note the tokens taken (``trace``), which is what a formatter needs.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

from ilang.core.diagnostic import NotationError
from ilang.core.limits import check_expressions
from ilang.core.ops import SYMBOLS
from ilang.core.source import Source, Span

BLANKS = " \t\n\r\f"
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
DIGITS = frozenset("0123456789")
WORD_START = LETTERS.union("ABCDEFGHIJKLMNOPQRSTUVWXYZ_")
WORD = WORD_START | DIGITS
QUOTES = frozenset("'\"")
KNOWN = WORD.union(BLANKS, ".|&~()'\":,[]@", "".join(SYMBOLS))
"""Every character that a program may hold."""
SIGNS = frozenset(symbol[0] for symbol in SYMBOLS)
"""The characters with which an operator begins."""

COMBINATORS = (">>", "<<", "&", "|")
TYPES = ("f32", "f64", "i32", "i64", "bool")
TYPES_HELP = f"the element types are {', '.join(TYPES)}"
LATER = ("op", "cd")
QUOTED = frozenset(("i", "einsum", "einx", "elementwise"))
"""Words before a quotation: `i("...")`, `einsum("...")`, `einx.sum("...")`."""
RESERVED = frozenset(("I", *QUOTED, *LATER, *TYPES))

UNFINISHED = r'(?:[-+*/.<>=&|~,@!?^]|\bnot|\*\+\s*"[^"\n]*")$'
"""The end of a line whose statement goes on: an operator, or a comma."""

DEFINITION_HELP = "a definition, `name = program`, belongs in a file; `equal` is written `==`"
ALPHABET_HELP = (
    "programs are letters, numbers, and operators such as `+` `*` `>`: `ik*kj~ijk >> +ijk~ij`"
)
TILDE_HELP = "`~` stands between the inputs and the output: `+ij~i`"
_ALIKE = (
    ("~", "∼～˜〜"),  # noqa: RUF001
    ("*", "×·∗⋅＊"),  # noqa: RUF001
    ("/", "÷∕／"),  # noqa: RUF001
    ("-", "−–—‐‑－"),  # noqa: RUF001
    ("'", "’‘′‵ʼ"),  # noqa: RUF001
    ('"', "“”„″"),
    ("|", "∣｜│"),  # noqa: RUF001
    ("||", "∨"),  # noqa: RUF001
    ("&&", "∧"),
    ("^^", "⊕⊻"),
    ("!!", "¬"),
    ("<=", "≤"),
    (">=", "≥"),
    ("!=", "≠"),
    (">>", "≫"),
    ("<<", "≪"),
    ("==", "＝"),  # noqa: RUF001
    *zip("+><:,.()&!^", "＋＞＜：，．（）＆！＾", strict=True),  # noqa: RUF001
)
LOOKALIKES = {c: ascii_text for ascii_text, many in _ALIKE for c in many}
"""Characters that look like, or are commonly written for, one of the language's."""

HINTS = (
    ("-->", TILDE_HELP),
    ("->", TILDE_HELP),
    ("=>", TILDE_HELP),
    ("→", TILDE_HELP),
    ("∑", "the sum over j is `+ij~i`"),
    ("Σ", "the sum over j is `+ij~i`"),
    ("<~", TILDE_HELP),
    ("**", "the power is `^`: `i^j~ij`"),
    (
        "//",
        'rounded down, it is `elementwise("f: x, y -> floor_divide(x, y)")`; of floats it is `i/j~ij`',
    ),
    ("|>", "results flow on through `>>`: `+ij~i >> ^i~i`"),
    ("<>", "`different` is written `!=`"),
    ("=", "`equal` is written `==`"),
    ("%", "there is no remainder operator; the operators are + * - / > < ^ $ and the comparisons"),
    ("@", "a matrix product is `ik*kj~ijk >> +ijk~ij`"),
    ("&", "`and` is written `&&`"),
    ("!", "`not` is written `!!` and `different` is `!=`"),
    (",", "the two inputs stand on the sides of an operator: `ik*kj~ijk`"),
    (";", "the two inputs stand on the sides of an operator: `ik*kj~ijk`"),
    ("?", "the larger of 0 and x is `>ij~ij`"),
    ("#", "comments belong to files"),
    ("[", "a guard stands after the indices of an input: `ij[j<=i]~ij`"),
    ("{", "groups are written with ( )"),
)
"""Spellings of other languages, longest first, and what the language has for it."""


class Lexeme(NamedTuple):
    """A token: its kind, its text, and where it ends."""

    kind: str
    text: str
    end: int


class Reader:
    """A position in a source.

    ``text`` may be a copy of the source's text, of the same length, in which some characters are blanked. A reader and
    its parts count the expressions that they read together.
    """

    __slots__ = ("ahead", "end", "expressions", "pos", "source", "text", "trace", "unit", "whole")

    def __init__(
        self,
        source: Source,
        start: int = 0,
        end: int | None = None,
        text: str | None = None,
        trace: list[Token] | None = None,
        unit: str = "definition",
    ) -> None:
        """Start at ``start`` and see nothing from ``end`` on, where the ``unit`` ends unless all of the text does."""
        self.source = source
        self.text = source.text if text is None else text
        self.pos = start
        self.end = len(self.text) if end is None else end
        self.trace = trace
        self.unit = unit
        self.whole = self
        self.expressions = 0
        self.ahead: tuple[int, Lexeme] | None = None  # the token at a place, where it was looked at

    def part(self, start: int, end: int, unit: str) -> Reader:
        """A reader of a part of this one's text."""
        part = Reader(self.source, start, end, self.text, self.trace, unit)
        part.whole = self.whole
        return part

    def count(self, span: Span) -> None:
        """Count an expression that is read.

        Raises:
            MeaningError: E0250 (there are too many).
        """
        self.whole.expressions += 1
        check_expressions(self.whole.expressions, span, is_exact=False)

    def peek(self, ahead: int = 0) -> str:
        """The character at the cursor, empty at the end."""
        at = self.pos + ahead
        return self.text[at] if at < self.end else ""

    def at(self, token: str | tuple[str, ...], start: int | None = None) -> bool:
        """Whether a token, or one of several, stands at a position, by default at the cursor."""
        return self.text.startswith(token, self.pos if start is None else start, self.end)

    def matches(self, pattern: re.Pattern[str], start: int | None = None) -> re.Match[str] | None:
        """The match of a pattern at a position, by default at the cursor, if there is one."""
        return pattern.match(self.text, self.pos if start is None else start, self.end)

    def skip(self) -> str:
        """Pass over blanks; give the character then at the cursor."""
        self.pos = self.past(BLANKS, self.pos)
        return self.text[self.pos] if self.pos < self.end else ""

    def past(self, characters: Container[str], start: int) -> int:
        """The first position from ``start`` on whose character is not one of ``characters``."""
        text, end = self.text, self.end
        while start < end and text[start] in characters:
            start += 1
        return start

    def word(self) -> str:
        """The word at the cursor; empty if there is none."""
        return self.text[self.pos : self.past(WORD, self.pos)]

    def take_name(self) -> Span | None:
        """Take the name after the blanks at the cursor; None where no name stands there."""
        return self.take(self.past(WORD, self.pos)) if self.skip() in WORD_START else None

    def operator(self, start: int) -> str:
        """The operator at a position, longest spelling first; empty if there is none."""
        if start < self.end and self.text[start] in SIGNS:
            for symbol in SYMBOLS:
                if self.at(symbol, start):
                    return symbol
        return ""

    def combinator(self, start: int) -> str:
        """The combinator at a position; empty if there is none."""
        return next((symbol for symbol in COMBINATORS if self.at(symbol, start)), "")

    def take(self, end: int, left: bool = False, right: bool = False) -> Span:
        """The span up to ``end``, which the cursor moves to.

        ``left`` and ``right`` say whether tidy text has a space on that side.
        """
        span = Span(self.source, self.pos, end)
        if self.trace is not None and end > self.pos:
            self.trace.append((self.pos, end, left, right))
        self.pos = end
        return span

    def span(self, start: int, end: int | None = None) -> Span:
        """The span from ``start`` to ``end``, by default to the cursor."""
        return Span(self.source, start, self.pos if end is None else end)

    def here(self) -> Span:
        """The token at the cursor: a word, an operator, or one character; empty at the end."""
        if self.pos >= self.end:
            return self.span(self.end, self.end)
        length = len(self.word()) or len(self.operator(self.pos)) or 1
        return self.span(self.pos, self.pos + length)

    def found(self) -> str:
        """The text at the cursor, in words."""
        if self.pos < self.end:
            return f"`{self.here().text()}`"
        if self.text[self.end : self.end + 1] in ("'", '"'):
            return "the closing quote"
        return f"the end of the {'text' if self.end == len(self.text) else self.unit}"

    def hint(self, expression: bool = True) -> str | None:
        """The spelling that the language has instead of the one at the cursor, in an expression or elsewhere."""
        c = self.peek()
        if c in LOOKALIKES:
            return f"the ASCII spelling is `{LOOKALIKES[c]}`"
        if not expression:
            return None
        if c == "=" and is_head(self.text[: self.pos]):
            return DEFINITION_HELP
        before = self.text[max(0, self.pos - 20) : self.pos].rstrip(BLANKS)
        for spelling, help_line in HINTS:
            split = 0 < self.pos and self.at(spelling, self.pos - 1)
            if self.at(spelling) or (len(spelling) > 1 and (split or before.endswith(spelling))):
                return help_line
        if c in WORD_START and c.upper() == c:
            if "~" in self.text[: self.pos] and self.text[self.pos - 1] in BLANKS:
                return "a program has no arrays in it: they stand after it, and after its schedule"
            return f"axes are lower-case letters: `{self.here().text().lower()}`"
        return None

    def unexpected(
        self, code: str, wanted: str, help_line: str, expression: bool = True
    ) -> NotationError:
        """An error at the cursor: ``wanted`` was expected there.

        A character that no program may hold is always E0102, whatever was expected. ``expression`` says whether
        hints about expressions make sense here.
        """
        c = self.peek()
        hint = self.hint(expression)
        if c and c not in KNOWN:
            message = f"the character `{c}` is not part of the language"
            span = self.span(self.pos, self.pos + 1)
            return NotationError("E0102", message, span, hint or ALPHABET_HELP)
        message = f"expected {wanted} before {self.found()}"
        return NotationError(code, message, self.here(), help_line)


def no_program(reader: Reader) -> NotationError:
    """A text in which nothing stands."""
    help_line = "write one, such as `ik*kj~ijk >> +ijk~ij`, or name a file: `i run model.i`"
    return NotationError(
        "E0101", "there is no program: the text is empty", reader.here(), help_line
    )


def unclosed(bracket: Span, help_line: str = "") -> NotationError:
    """The error for a bracket that nothing closes."""
    kind, sign = {"{": ("brace", "}"), "[": ("bracket", "]")}.get(
        bracket.text(), ("parenthesis", ")")
    )
    help_line = help_line or f"close it with `{sign}`"
    return NotationError("E0110", f"this {kind} is never closed", bracket, help_line)


def is_head(text: str) -> bool:
    """Whether a text is what stands before the ``=`` of a definition: one word, perhaps with inputs."""
    name, bracket, inputs = text.strip(BLANKS).partition("(")
    if bracket and not inputs.endswith(")"):
        return False
    name = name.rstrip(BLANKS)
    return name[:1] in WORD_START and WORD.issuperset(name)


def number_below(digits: str, limit: int) -> int | None:
    """The number that digits write; None where it is not below a limit, however many digits there are."""
    digits = digits.lstrip("0") or "0"
    number = int(digits) if len(digits) <= len(str(limit)) else limit
    return number if number < limit else None


def brief_number(text: str) -> str:
    """A number as a message shows it: one of very many digits is cut."""
    return text if len(text) < 40 else text[:20] + "…"


Token = tuple[int, int, bool, bool]
"""Start and end of a token, and whether tidy text has a space before and after it."""
