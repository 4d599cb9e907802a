"""Errors of a program or its data, as values: code, message, places, help.

Every failure a user can cause is an ``Error`` of one of the families below, and of the class that Python and NumPy
raise for such a mistake, so that code written for them catches it: ValueError, or TypeError. ``core`` never prints:
``plain`` gives the text that the command line shows, without color. Codes are documented in ``icli/errors.md``
(``i explain E0103``).

    error[E0505]: axis k is 4 in in0 and 5 in in1
     --> <text>:1:4
      |
    1 | ik*kj~ijk
      |    ^ 5 here
      |  - 4 here
      |
    help: ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ilang.core.record import record
from ilang.core.source import Span

WIDEST_LINE = 160
"""Columns of a source line that a message shows; longer lines are cut around the caret."""

LONGEST_MESSAGE = 2000
"""Code points of one message or help line at most: it may quote the user's text, of any length."""


@record
class Label:
    """A place in the text and what stands there (may be empty)."""

    span: Span
    text: str


class Error(Exception):
    """Base of every failure this package raises for a mistake in a program, its data, or its surroundings.

    Attributes: ``code`` (stable, like ``E0103``), ``message`` (one sentence), ``span`` (the place in the text, or
    None), ``help`` (what to do), ``labels`` (further places), ``others`` (further errors of the same file).
    """

    status = 1
    """Exit status of the command line for this family."""
    word = "error"
    """The word before the code."""
    advice = ""
    """The help where none is written."""

    def __init__(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        help: str = "",  # noqa: A002 - the contract names the attribute `help`
        labels: Sequence[Label] = (),
    ) -> None:
        """Build the error; ``span`` is the first place to underline, ``labels`` further ones."""
        message = encodable(message)
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.span = span
        self.help = encodable(help or self.advice)
        self.labels = tuple(labels)
        self.others: tuple[Error, ...] = ()
        places = [label.span for label in self.labels] + ([] if span is None else [span])
        called = [each.source for each in places if each.source.caller is not None]
        alike = [each for each in called if span is not None and each.name == span.source.name]
        for source in (alike or called)[:1]:
            assert source.caller is not None
            at_caller(self, source.caller, source.given)

    def __reduce__(self) -> tuple[object, ...]:
        """Errors survive copying and pickling: a worker process hands them to its caller."""
        given = (self.code, self.message, self.span, self.help, self.labels)
        return type(self), given, {"others": self.others}

    def with_help(self, help_line: str) -> Self:
        """The same error with another help line; those that it brings stay behind."""
        return type(self)(self.code, self.message, self.span, help_line, self.labels)

    def __str__(self) -> str:
        """The whole diagnostic without color, as the command line prints it."""
        return plain(self)

    def _repr_html_(self) -> str:
        """The diagnostic, in a notebook."""
        from ilang.core.markup import PREFORMATTED, escaped

        first, end, rest = plain(self).partition("\n")
        return f"{PREFORMATTED}<b>{escaped(first)}</b>{end}{escaped(rest)}</pre>"


def at_caller(error: Error, caller: Span, given: str) -> None:
    """Have an error whose first place is in a library begin with a place of the user's text: the call, if no other.

    At the call it says what is ``given`` for the names of the library.
    """
    file = caller.source.name
    if error.span is not None and error.span.source.name == file:
        return
    first = next((label for label in error.labels if label.span.source.name == file), None)
    if first is None:
        first = Label(caller, f"called here: {given}" if given else "called here")
        if not error.labels and error.span is not None:
            error.labels = (Label(error.span, "here"),)
    error.labels = (first, *(label for label in error.labels if label is not first))
    error.span = first.span


class NotationError(Error, ValueError):
    """E01: the text is not in the language."""


class MeaningError(Error, ValueError):
    """E02: the text reads well but says something the language refuses (forms, axes, combinators)."""


class ScheduleError(Error, ValueError):
    """E03: a schedule that is not well formed or not legal.

    Attributes: ``fix`` (the nearest legal one, where one is known), ``within`` (whether a definition that uses the
    refused one may make it legal, by summing its result).
    """

    fix: Label | None = None
    within = False

    def __reduce__(self) -> tuple[object, ...]:
        """As any error, with what would be legal."""
        given = (self.code, self.message, self.span, self.help, self.labels)
        return type(self), given, {"others": self.others, "fix": self.fix, "within": self.within}


class ModuleError(Error, ValueError):
    """E04: module files: names, definitions, cycles."""


class ShapeError(Error, ValueError):
    """E05: ranks and extents that do not fit.

    Attributes: ``guessed`` (whether it rests on sizes that nothing gave, so that shapes of inputs may mend it).
    """

    guessed = False


class ElementTypeError(Error, TypeError):
    """E06: element types that do not fit."""


class DataError(Error, ValueError):
    """E07: arrays and files given to a program.

    Attributes: ``element`` (the array and the position of an element that is no index, where they are known).
    """

    element: tuple[str, tuple[int, ...]] | None = None


class DataTypeError(DataError, TypeError):
    """E07: what is given is of a Python class, or has elements of a type, that is not taken."""


class CommandError(Error):
    """E08: a wrong command line."""

    status = 2


class ToolError(Error):
    """E09: a tool (compiler) or the file system is missing or failed."""

    status = 3


class Note(Error):
    """A remark on a program that may mean something else: printed as errors are, and never raised."""

    status = 0
    word = "note"


class LossWarning(UserWarning):
    """A run of a session goes back from a loss of several elements, as if it was their sum."""


class VersionsWarning(UserWarning):
    """A component has no more versions for the extents of calls: further ones share a version with open extents."""


class InternalError(Error):
    """E99: our own bug: an invariant of the compiler does not hold."""

    status = 70
    advice = "this is a bug in i, not in your program; please report the command and this message"


def visible(text: str) -> str:
    """Text with every control, bidirectional, surrogate or line-separating code point escaped."""
    return "".join(c if _is_plain(c) else _escape(c) for c in text)


def encodable(text: str) -> str:
    """Text that every encoding of Unicode takes: lone surrogates, as file names may have them, are escaped."""
    if text.isascii():
        return text
    return "".join(_escape(c) if "\ud800" <= c <= "\udfff" else c for c in text)


def _is_plain(c: str) -> bool:
    if c <= "\u00a0":
        return " " <= c <= "~"
    from unicodedata import category

    return category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def _escape(c: str) -> str:
    code = ord(c)
    if 0xDC80 <= code <= 0xDCFF:  # a raw byte that was not UTF-8, kept by surrogateescape
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return {"\t": "\\t", "\n": "\\n", "\r": "\\r"}.get(c, f"\\x{code:02x}")
    return f"\\u{{{code:x}}}"


def counted(count: int, word: str) -> str:
    """A number of things: ``1 input``, ``2 inputs``, ``no inputs``."""
    return f"{count or 'no'} {word}{'' if count == 1 else 's'}"


def enumerated(words: Sequence[str], last: str = "and") -> str:
    """Words of a sentence, the ``last`` one after another word: ``a, b and c``."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def shorten(text: str, limit: int = LONGEST_MESSAGE) -> str:
    """Text cut to a limit, with an ellipsis where something was left out."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def gathered(errors: Sequence[Error]) -> Error:
    """The first of several errors, which brings all others with it; one that says the same again is left out."""
    distinct: dict[tuple[object, ...], Error] = {}
    every = [each for error in errors for each in (error, *error.others)]
    for error in every:
        span = error.span
        place = None if span is None else (span.source.name, span.start, span.end)
        distinct.setdefault((error.code, error.message, place), error)
    for error in distinct.values():
        error.others = ()
    first, *others = distinct.values()
    first.others = tuple(others)
    return first


def plain(error: Error) -> str:
    """The diagnostic as text: header, place, marked line, help. No control bytes, no color."""
    lines = [f"{error.word}[{error.code}]: {shorten(visible(error.message))}"]
    places = [] if error.span is None else [Label(error.span, "")]
    places += error.labels
    for at, first in _by_line(places):
        lines += _excerpt(first, at)
    if error.help:
        lines += [f"help: {shorten(visible(error.help))}"]
    return "\n".join(lines)


def _by_line(places: Sequence[Label]) -> list[tuple[list[Label], Span]]:
    """Labels grouped by the source line they stand on, in the order in which they were given."""
    groups: dict[tuple[int, int], list[Label]] = {}
    for label in places:
        groups.setdefault((id(label.span.source), label.span.line_number()), []).append(label)
    return [(_merged(group), group[0].span) for group in groups.values()]


def _merged(group: list[Label]) -> list[Label]:
    """One label per span: the words of a later label at the same place belong to the first."""
    texts: dict[tuple[int, int], Label] = {}
    for label in group:
        key = (label.span.start, label.span.end)
        known = texts.get(key)
        texts[key] = label if known is None or not known.text else known
    return list(texts.values())


def _excerpt(first: Span, labels: list[Label]) -> list[str]:
    """The place, the line and a caret line per label."""
    number, margin = first.line_number(), len(str(first.line_number()))
    line_start = first.start - first.column() + 1
    line = first.line()
    shown, columns = _drawn(line, max(0, first.start - line_start))
    gutter = " " * margin
    out = [
        f"{gutter}--> {visible(first.source.name)}:{number}:{first.column()}",
        f"{gutter} |",
        f"{number} | {shown}",
    ]
    for nth, label in enumerate(labels):
        begin = min(max(label.span.start - line_start, 0), len(line))
        end = min(max(label.span.end - line_start, begin + 1), len(line) + 1)
        left = columns[begin]
        width = max(1, columns[min(end, len(line))] - left) if begin < len(line) else 1
        mark = ("^" if nth == 0 else "-") * width
        out.append(f"{gutter} | {' ' * left}{mark} {shorten(visible(label.text), 200)}".rstrip())
    return out


def _drawn(line: str, focus: int) -> tuple[str, list[int]]:
    """The visible line, cut around ``focus``, and the drawn column of each code point (one more for the end)."""
    from unicodedata import east_asian_width

    cut_left = max(0, focus - WIDEST_LINE // 2) if len(line) > WIDEST_LINE else 0
    cut_right = min(len(line), cut_left + WIDEST_LINE)
    text, column = ("…", 1) if cut_left else ("", 0)
    columns = [column] * cut_left
    for c in line[cut_left:cut_right]:
        columns.append(column)
        piece = c if _is_plain(c) else _escape(c)
        text += piece
        column += sum(2 if east_asian_width(each) in "WF" else 1 for each in piece)
    columns += [column] * (len(line) - cut_right + 1)
    return (text + "…" if cut_right < len(line) else text), columns


def as_object(error: Error) -> dict[str, object]:
    """The diagnostic as one JSON-ready object (``--json``)."""
    span = error.span
    fix = error.fix if isinstance(error, ScheduleError) else None
    fixed = {} if fix is None else {"fix": {**_place(fix.span), "text": fix.text}}
    return {
        "code": error.code,
        "message": error.message,
        "file": None if span is None else encodable(span.source.name),
        "line": None if span is None else span.line_number(),
        "column": None if span is None else span.column(),
        "length": None if span is None else max(1, span.end - span.start),
        "labels": [
            {"line": at.span.line_number(), "column": at.span.column(), "text": encodable(at.text)}
            for at in error.labels
        ],
        "help": error.help,
        **fixed,
        **({"others": [as_object(other) for other in error.others]} if error.others else {}),
    }


def _place(span: Span) -> dict[str, object]:
    return {
        "line": span.line_number(),
        "column": span.column(),
        "length": max(1, span.end - span.start),
    }


def place(error: Error) -> int:
    """The place of an error, so that those of a file can be told in order."""
    return -1 if error.span is None else error.span.start


def keep(refused: list[Error], error: Error) -> None:
    """Add an error, and those that it brings."""
    others, error.others = error.others, ()
    refused += (error, *others)
