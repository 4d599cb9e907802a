"""The screen, to which results and messages go.

Results go to standard output and everything else to standard error. A character that a stream cannot encode becomes
ASCII art or an escape, so no text fails to print; a stream that cannot be written is a failure with a message.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from ilang.core.diagnostic import DataError, Error, as_object, gathered, plain, visible

if TYPE_CHECKING:
    from ilang.core.explain.explanation import Explanation

ASCII = {
    "×": "x", "·": ".", "→": "->", "…": "...", "−": "-", "–": "-", "≤": "<=", "≥": ">=", "Σ": "sum",
    "—": "-", "’": "'", "“": '"', "”": '"', "─": "-", "│": "|", "µ": "u", "ε": "eps",
}  # fmt: skip
"""Characters for signs of ours where the stream has no such character."""


SCHEMA = 1
"""The number of the forms of JSON that commands print (docs/json.md); a form that changes makes it another one."""


class Screen:
    """The two streams and how to draw on them, decided once from the command line and the environment."""

    def __init__(self, tokens: Sequence[str] = ()) -> None:
        """Look for ``--color`` and ``--json`` before any command reads its options, so that every error obeys them."""
        before = list(tokens[: tokens.index("--")] if "--" in tokens else tokens)
        self.json = "--json" in before
        self.color = "auto"
        self._held: list[str] | None = None
        for number, token in enumerate(before):
            if token == "--color" and number + 1 < len(before):
                self.color = before[number + 1]
            elif token.startswith("--color="):
                self.color = token[len("--color=") :]

    def colored(self, stream: IO[str] | None) -> bool:
        """Whether to draw for a person on this stream."""
        if self.color in ("always", "never"):
            return self.color == "always"
        return (
            not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
            and is_terminal(stream)
        )

    def width(self, stream: IO[str] | None) -> int | None:
        """The columns that text on this stream is folded for; None where it is not, as in a pipe."""
        if is_terminal(stream) or (self.color == "always" and os.environ.get("COLUMNS")):
            from ilang.icli.fold import NARROWEST

            return max(NARROWEST, _columns(stream))
        return None

    def write(self, text: str) -> None:
        """Write a result for a person: on a terminal, folded at its width."""
        self.write_exact(_fitting(text, self.width(sys.stdout)))

    @contextmanager
    def held(self) -> Iterator[list[str]]:
        """Results that are written meanwhile, as a list of texts: none is printed."""
        texts: list[str] = []
        self._held = texts
        try:
            yield texts
        finally:
            self._held = None

    def write_exact(self, text: str) -> None:
        """Write a result that is copied as it stands: JSON, a path, a program."""
        if self._held is not None:
            self._held.append(text)
            return
        stream = sys.stdout
        if stream is None:
            message = "standard output is closed, so there is nowhere to print to"
            raise DataError("E0735", message, help="leave `>&-` out")
        _guarded(lambda: stream.write(encodable(text, stream)))

    def write_json(self, value: Mapping[str, object]) -> None:
        """Write an object as one line of JSON, with the number of its form."""
        self.write_exact(as_json({"schema": SCHEMA, **value}) + "\n")

    def write_bytes(self, data: bytes) -> None:
        """Write a result that is no text, or that another program reads."""
        self.write_exact("")  # refuses a closed stream
        stream = sys.stdout.buffer
        _guarded(sys.stdout.flush)
        _guarded(lambda: stream.write(data))
        _guarded(stream.flush)

    def write_path(self, path: str) -> None:
        """Write the name of a file on a line of its own."""
        self.write_exact(visible(path) + "\n")

    def columns(self) -> int:
        """The columns of a page: those of the terminal, 80 in a pipe."""
        return self.width(sys.stdout) or 80

    def page(self, explanation: Explanation) -> None:
        """Write the first page of an explanation, as the REPL does."""
        from ilang.core.explain.first_page import first_page
        from ilang.icli.respelling import MORE

        self.write_page(first_page(explanation, self.columns(), more=MORE))

    def write_page(self, text: str) -> None:
        """Write a first page, with what is beside the program in another color on a terminal."""
        if self.colored(sys.stdout):
            from ilang.icli.render import painted

            text = painted(text)
        self.write(text)

    def listing(self, explanation: Explanation) -> None:
        """Write every step of an explanation: drawn on a terminal, plain text in a pipe."""
        if self.colored(sys.stdout):
            from ilang.icli.render import explanation_text

            self.write(explanation_text(explanation, self.width(sys.stdout)))
        else:
            from ilang.core.explain.page import explanation_text as plain_text

            self.write(plain_text(explanation))

    def close(self) -> None:
        """Flush the results: the moment when a full disk or a closed pipe shows."""
        if sys.stdout is not None:
            _guarded(sys.stdout.flush)

    def note(self, text: str) -> None:
        """Write a line beside the results, folded on a terminal; trouble with that stream is nobody's."""
        _beside(_fitting(text, self.width(sys.stderr)))

    def complain(self, error: Error) -> None:
        """Write a diagnostic, and those it brings with it: as text with their count, or as one JSON object."""
        if self.json:
            _beside(as_json({"schema": SCHEMA, **as_object(error)}))
            return
        for each in (error, *error.others):
            self._tell(each)
        if error.others:
            self.note(f"\n{1 + len(error.others)} errors")

    def verdict(self, answer: Mapping[str, object], refused: Sequence[Error]) -> int:
        """End a command that goes on after errors: the errors, or in JSON the answer; the status is the worst one."""
        if self.json:
            self.write_json({"ok": not refused, **answer})
        elif refused:
            self.complain(gathered(refused))
        return max((error.status for error in refused), default=0)

    def _tell(self, error: Error) -> None:
        text, width = plain(error), self.width(sys.stderr)
        if width is not None:
            from ilang.icli.fold import fold_excerpts

            text = fold_excerpts(text, width)
        if self.colored(sys.stderr):
            from ilang.icli.paint import diagnostic_text

            text = diagnostic_text(text)
        self.note(text)


def _fitting(text: str, width: int | None) -> str:
    if width is None:
        return text
    from ilang.icli.fold import fold

    return fold(text, width)


def _beside(text: str) -> None:
    """Write lines to standard error, if that can be done."""
    stream = sys.stderr
    if stream is None:
        return
    try:
        stream.write(encodable(text + "\n", stream))
        stream.flush()
    except OSError:
        return


def _columns(stream: IO[str] | None) -> int:
    """Columns of a terminal: ``COLUMNS``, else what it says itself, else 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return (os.get_terminal_size(stream.fileno()).columns if stream is not None else 0) or 80
    except (OSError, ValueError):
        return 80


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether a stream is a terminal; a closed one is not."""
    try:
        return stream is not None and stream.isatty()
    except (OSError, ValueError):
        return False


def as_json(value: object) -> str:
    """A value as JSON on one line; what is not ASCII is escaped, so any terminal survives it."""
    import json

    return json.dumps(value)


def encodable(text: str, stream: IO[str]) -> str:
    """Text in which every character has a code in the stream's encoding."""
    if text.isascii():
        return text
    encoding = getattr(stream, "encoding", None) or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_spelled(c, encoding) for c in text)
    except LookupError:
        return "".join(_spelled(c, "ascii") for c in text)
    return text


def _spelled(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        escaped = visible(character)
        return ASCII.get(character, escaped if escaped.isascii() else f"\\u{{{ord(character):x}}}")
    return character


def _guarded(action: Callable[[], object]) -> None:
    """Run a write to standard output; name what went wrong."""
    try:
        action()
    except BrokenPipeError:
        raise
    except OSError as trouble:
        reason = trouble.strerror or str(trouble)
        message = f"standard output cannot be written: {reason}"
        raise DataError("E0735", message, help="print to another file, or free space") from None
