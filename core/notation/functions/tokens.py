"""The lexemes of tensor functions and routines, taken from a reader one by one; the longest one wins.

In:  ``x *. "w" 0.5``
Out: word ``x``, sign ``*.``, string ``"w"``, number ``0.5``

A number begins with a digit, so that a dotted operator directly before one reads as a mistake: ``x *.5``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from typing import TypeVar

from ilang.core.diagnostic import NotationError
from ilang.core.ir.functions import DEEPEST, Number
from ilang.core.notation.functions.elsewhere import instead
from ilang.core.notation.reader import (
    BLANKS,
    LOOKALIKES,
    RESERVED,
    Lexeme,
    Reader,
    brief_number,
    unclosed,
)
from ilang.core.source import Span

SIGNS = (
    *("-?/", "!..", "**.", "[|", "|]", "?/", "!.", "**", "*+", "*.", "/.", "++", "+.", "-.", "@|"),
    *("<=", ">=", "<>", "&&", "||", "~~", "*", "/", "+", "-", "<", ">", "=", "(", ")", "[", "]"),
    *("{", "}", ",", ";", ":", ".", "~"),
)
LEXEME = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r'|(?P<string>"[^"\n]*")|(?P<label>\'[^\'\n]*\')|(?P<sign>'
    + "|".join(map(re.escape, SIGNS))
    + ")"
)
DOTTED = ("**.", "*.", "/.", "+.", "-.", "!..", "!.")
"""Signs that end with a point."""
BINDING = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("<", "<=", ">", ">=", "=", "<>"), 3),
    **dict.fromkeys(("+", "+.", "-", "-.", "-?/", "++"), 4),
    **dict.fromkeys(("*", "*.", "/", "/.", "*+"), 5),
    "**.": 7,
    "@|": 9,
}
"""The level of binding of each operator between operands."""
COMPARISON = 3
NEGATION = 6
POWER = 7
PREFIX = 8
CALL = 9
WORDS = frozenset(
    ("for", "in", "if", "else", "return", "prim", "grad", "params", "forward", "backprop", "repeat")
)
"""Words in the bodies of tensor functions and routines alone."""
PARTS = frozenset(("value", "grad", "merge"))
CONSTANTS = {"true": 1, "false": 0}
NO_NAMES = RESERVED | WORDS | PARTS | frozenset(("not", *CONSTANTS))
"""Names that no tensor and no configuration value may have."""
TAIL = re.compile(r'~\s*(?:logic|schedule)\s*:\s*"[^"\n]*"\s*$')
"""A logic or a schedule that ends a statement."""
BINDS = re.compile(r"[A-Za-z_]\w*\s*=(?!=)", re.ASCII)
"""The beginning of a statement that binds a name."""
KEEPS = re.compile(r'"[^"]*"[^"]*=:')
"""The beginning of a statement that says what a tensor has in the next run."""
ASSIGN = re.compile(r"=(?:(:)(\*\*|@\^|@-|&&|\|\||\?/|[-+*/])?|(\*\*|@\^|@-|&&|\|\||\?/|[-+*/]))")
"""An operator of assignment; `=` alone binds."""

INSTEAD = (
    ("**", "the pointwise power is `**.`: `x **. 2`"),
    ("==", "`equal` is written `=`"),
    ("!=", "`different` is written `<>`"),
    ("=>", "`at least` is written `>=`"),
    ("=<", "`at most` is written `<=`"),
    ("//", "a quotient is `/.`"),
    (">>", "a call takes the result of another: `tanh(linear(x; 16))`"),
    ("[", 'a position of an axis is `x ++ "b|0 => b|"`, of the first batch axis `x @| 0`'),
    (".*", "the pointwise product is `*.`: `x *. 2`"),
    ("./", "the pointwise quotient is `/.`: `x /. 2`"),
    (".^", "the pointwise power is `**.`: `x **. 2`"),
    ("^", "the pointwise power is `**.`: `x **. 2`"),
    ("%", "there is no remainder operator"),
    ("&", "`and` is written `&&`"),
    ("|", "`or` is written `||`; a position of the first batch axis is `x @| 0`"),
    (
        "@",
        "a contraction is `*`: `w * x` is `x @ w.T` in NumPy; a position of the first batch axis is `x @| 0`",
    ),
    ("!", "`not` is written `not x`, and `different` is `<>`"),
    ("?", "the larger of 0 and x is `?/ x`"),
    ("$", "the logarithm is `log(x)`"),
    (":", "a tensor is assigned by `=:`, and bound by `=`"),
    ("~", "a program is applied in parentheses, `(+ij~i)(x)`; a schedule follows a parenthesis"),
    ("=", "a comparison does not stand alone; a tensor is bound by `name = ...` in a block"),
)
"""Spellings of other languages, longest first, and what this notation has for it."""
WORDS_INSTEAD = {
    "and": "`and` is written `&&`",
    "or": "`or` is written `||`",
    "is": "`equal` is written `=`",
    "if": "a choice by element is `where(test, a, b)`",
    "for": "what is done again and again is `repeat(x; n in 3) { ... }`",
    "return": "a block of an `op` ends with its value: `{ y = x + 1; y }`; a `cd` returns",
    "lambda": "a tensor function is a definition: `op f(x) = ...`",
}
"""The same for words."""
ASSIGNED = {"+": "adds", "-": "subtracts", "*": "multiplies", "/": "divides"}
"""The words for assigning operators that others write the other way round, ``c += x``."""


Item = TypeVar("Item")


def lexeme(reader: Reader) -> Lexeme:
    """The token at the cursor, after blanks, which are passed over."""
    reader.skip()
    if reader.ahead is None or reader.ahead[0] != reader.pos:
        reader.ahead = reader.pos, lexeme_at(reader, reader.pos)
    return reader.ahead[1]


def lexeme_at(reader: Reader, start: int) -> Lexeme:
    """The token at a place, after blanks."""
    start = reader.past(BLANKS, start)
    if start >= reader.end:
        return Lexeme("end", "", start)
    match = reader.matches(LEXEME, start)
    if match is None or match.lastgroup is None:
        return Lexeme("other", reader.text[start], start + 1)
    return Lexeme(match.lastgroup, match.group(), match.end())


def take(reader: Reader, left: bool = False, right: bool = False) -> Span:
    """Take the token at the cursor."""
    return reader.take(lexeme(reader).end, left=left, right=right)


def listed(reader: Reader, ends: Sequence[str], read: Callable[[], Item]) -> list[Item]:
    """Items between commas at the cursor, up to a sign that ends them; the sign stays."""
    items: list[Item] = []
    while items or sign(reader) not in ends:
        items.append(read())
        if sign(reader) != ",":
            break
        take(reader, right=True)
    return items


def sign(reader: Reader) -> str:
    """The sign at the cursor; empty if there is none."""
    token = lexeme(reader)
    return token.text if token.kind == "sign" else ""


def word(reader: Reader) -> str:
    """The word at the cursor; empty if there is none."""
    token = lexeme(reader)
    return token.text if token.kind == "word" else ""


def expect(
    reader: Reader, text: str, wanted: str, code: str, left: bool = False, right: bool = False
) -> Span:
    """Take a sign or a word that must stand here."""
    token = lexeme(reader)
    if token.text != text or token.kind not in ("sign", "word"):
        raise unexpected(reader, code, wanted)
    return take(reader, left, right)


def closing(reader: Reader, text: str, bracket: Span, code: str, wanted: str = "") -> Span:
    """Take the bracket that closes another one."""
    if lexeme(reader).kind == "end":
        raise unclosed(bracket)
    return expect(reader, text, wanted or f"an operator or `{text}`", code)


USUAL = {
    "E0120": "a schedule is `| splits | order | roles`",
    "E0191": 'expressions are like `"w" * x + "b" 3`, `f(x; 64)`, `repeat(y = x; h in hids) { f(y; h) }`',
    "E0190": "heads are like `op f(x, y: i64[b|]; hid = 64) = x` and `cd step(x; lr) { ... }`",
    "E0196": 'a parameter is written `"w"`, `"w" (2, 3)` or `"b" (-0.5)`',
    "E0197": "statements are like `y = f(x)`, `p =- lr *. p.grad`, `if k > 0 { y =: x }`",
}
"""Help for each code: the usual spelling, where nothing closer is known."""


def unexpected(
    reader: Reader, code: str, wanted: str, help_line: str | None = None, usual: str = ""
) -> NotationError:
    """An error at the cursor, where ``wanted`` was expected; ``usual`` helps where nothing tells what was meant."""
    token = lexeme(reader)
    start = reader.pos
    help_line = help_line or _meant(reader, token) or usual or USUAL[code]
    if token.kind == "end":
        shown = f"the end of the {reader.unit}"
        return NotationError(
            code, f"expected {wanted} before {shown}", reader.span(start), help_line
        )
    span = reader.span(start, token.end)
    if token.text in ('"', "'"):
        message = f"this quote is not closed by another `{token.text}` on its line"
        kind = (
            'a parameter is written `"w"`' if token.text == '"' else "a label is written `'q' 2.0`"
        )
        return NotationError("E0112", message, span, kind)
    if token.kind == "other" and (token.text in LOOKALIKES or not token.text.isascii()):
        spelled = LOOKALIKES.get(token.text)
        help_line = f"the ASCII spelling is `{spelled}`" if spelled else help_line
        message = f"the character `{token.text}` is not part of the language"
        return NotationError("E0102", message, span, help_line)
    return NotationError(code, f"expected {wanted} before `{token.text}`", span, help_line)


def _meant(reader: Reader, token: Lexeme) -> str | None:
    """The meaning of a spelling that other languages have."""
    if token.kind == "word":
        return WORDS_INSTEAD.get(token.text)
    text, at = reader.text, reader.pos
    if token.text in ASSIGNED and text.startswith("=", at + 1):
        return f"`c ={token.text} x` {ASSIGNED[token.text]}, in a routine"
    if token.text == "." and not text.startswith(("*", "/", "^"), at + 1):
        return part_instead(lexeme_at(reader, token.end).text)
    if text.startswith(("==", "//", ">>"), at - 1):
        at -= 1  # the first of them was read as an operator
    return next((hint for spelling, hint in INSTEAD if text.startswith(spelling, at)), None)


def part_instead(name: str) -> str | None:
    """Help for a method or a member of another language: what there is here."""
    from ilang.core.ir.primitives import PRIMITIVES
    from ilang.core.notation.files.libraries import defined_in

    known = name in PRIMITIVES or name in defined_in()
    return instead(name) or (f"its tensor stands in parentheses: `{name}(x)`" if known else None)


def finished(reader: Reader, code: str, help_line: str | None = None, usual: str = "") -> None:
    """Nothing may follow."""
    if lexeme(reader).kind != "end":
        wanted = f"an operator, or the end of the {reader.unit},"
        raise unexpected(reader, code, wanted, help_line, usual)


def refuse_brace(reader: Reader, help_line: str) -> None:
    """Refuse what is no brace, where a block begins."""
    if sign(reader) != "{":
        raise unexpected(reader, "E0197", "`{` and the statements", help_line)


def take_number(reader: Reader, left: bool = False) -> Number:
    """The number at the cursor.

    Raises:
        NotationError: E0116.
    """
    token = lexeme(reader)
    after = reader.text[token.end : token.end + 1] if token.end < reader.end else ""
    if after and (after.isalnum() or after in "_."):
        stop = token.end
        while stop < reader.end and (reader.text[stop].isalnum() or reader.text[stop] in "_."):
            stop += 1
        span = reader.span(reader.pos, stop)
        message = f"`{span.text()}` is not a number"
        name = span.text().removeprefix(token.text)
        help_line = "a number is written like 2, 0.5 or 1e-5"
        if name.isidentifier():
            help_line = f"a product is written `{token.text} *. {name}`"
        raise NotationError("E0116", message, span, help_line)
    whole = token.text.isdigit()
    if (
        len(token.text) > 300
        or (whole and len(token.text) > 18)
        or float(token.text) == float("inf")
    ):
        message = f"the number {brief_number(token.text)} is too large"
        help_line = "numbers are below 1.8e308, and whole ones have 18 digits at most"
        raise NotationError("E0116", message, reader.span(reader.pos, token.end), help_line)
    value = int(token.text) if whole else float(token.text)
    return Number(token.text, value, whole, take(reader, left))


def refuse_joined(reader: Reader, text: str, span: Span) -> None:
    """Refuse a dotted operator directly before a number: ``*.5``, which may mean two things.

    Raises:
        NotationError: E0193.
    """
    match = reader.matches(LEXEME)
    if text not in DOTTED or match is None or match.lastgroup != "number":
        return
    number = match.group()
    whole = reader.span(span.start, match.end())
    meant = f"`{text} {number}`"
    if number.isdigit() and not text.startswith("!"):
        meant += f" or `{text} 0.{number}`"
    message = f"the point of `{text}` stands directly before a number"
    raise NotationError("E0193", message, whole, f"write {meant}")


class Context:
    """The context that readers of one definition share.

    ``definitions``: the names of the file. ``code``: whether this is a routine or a ``prim``, where `x.grad` and
    `**` belong. ``slots``: what slots of a ``prim`` are called, by each of their spellings.
    """

    def __init__(
        self, definitions: Container[str], code: bool = False, slots: dict[str, str] | None = None
    ) -> None:
        self.definitions = definitions
        self.code = code
        self.slots = slots or {}
        self.depth = 0

    def enter(self, span: Span) -> None:
        """One bracket or prefix deeper.

        Raises:
            NotationError: E0114.
        """
        self.depth += 1
        if self.depth > DEEPEST:
            message = f"more than {DEEPEST} brackets and prefixes are open"
            raise NotationError("E0114", message, span, "give a part of it a name in a block")

    def leave(self) -> None:
        """One bracket or prefix less deep."""
        self.depth -= 1
