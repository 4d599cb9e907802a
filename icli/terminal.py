"""The REPL at a terminal: prompt, history, completion, colors, and the shape of what is being typed.

The only user of prompt_toolkit.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from ilang.icli.candidates import completions
from ilang.icli.entries import entries_of, is_open
from ilang.icli.files import state_folder
from ilang.icli.fold import cells
from ilang.icli.highlight import pieces, values
from ilang.icli.paint import AXIS_COLORS, axis_color
from ilang.icli.pane import pane
from ilang.icli.replies import answer
from ilang.icli.screen import Screen, encodable
from ilang.icli.session import ReplSession

PROMPT, MORE = "i> ", " … "

FILE = re.compile(r"\s*:(load|save)\s+")
WORD = re.compile(r"(^\s*:\w*|\w+)$")

STYLE = Style.from_dict(
    {
        "prompt": "bold",
        "comment": "ansibrightblack",
        "command": "bold",
        "text": "ansigreen",
        "wire": "bold",
        "keyword": "bold",
        "known": "bold",
        "auto-suggestion": "ansibrightblack",
        "bottom-toolbar": "noreverse ansibrightblack",
        "mistake": "ansired",
        **{f"axis-{color}": f"ansi{color}" for color in AXIS_COLORS},
    }
)


def interact(session: ReplSession, screen: Screen) -> int:
    """Prompt and answer until the end of input."""
    colored = screen.colored(sys.stdout)
    prompt: PromptSession[str] = PromptSession(
        history=history(),
        multiline=Condition(lambda: is_open(get_app().current_buffer.text)),
        completer=_Names(session),
        complete_while_typing=False,
        lexer=_Colors(session) if colored else None,
        style=STYLE if colored else None,
        auto_suggest=AutoSuggestFromHistory() if colored else None,
        bottom_toolbar=_pane(session),
        prompt_continuation=MORE,
        enable_open_in_editor=True,
    )
    screen.note("`:help` says what can be typed; Ctrl-D leaves")
    while True:
        try:
            line = prompt.prompt([("class:prompt", PROMPT)])
        except KeyboardInterrupt:
            continue  # what was typed is left on its line, and the next prompt is empty
        except EOFError:
            return 0
        entries = entries_of(line.split("\n"), session.is_array)
        try:
            with _paged(screen) if line.lstrip().startswith((":", "?")) else nullcontext():
                reply = answer(session, screen, entries)
        except KeyboardInterrupt:
            screen.note("\ninterrupted: there is no result, and every name is what it was")
            continue
        if reply.leaves:
            return 0


def history() -> History:
    """The lines of earlier sessions; trouble with the file is nobody's."""
    folder = state_folder()
    try:
        if folder is None:
            return InMemoryHistory()
        with (folder / "history").open("ab"):
            pass
    except OSError:
        return InMemoryHistory()
    return _LenientHistory(folder / "history")


class _LenientHistory(FileHistory):
    """A history file whose failures do not reach the user."""

    def load_history_strings(self) -> Iterable[str]:
        try:
            yield from super().load_history_strings()
        except (OSError, ValueError):
            return

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except (OSError, ValueError):
            return


class _Names(Completer):
    """Completes names, colon commands, and the files of ``:load`` and ``:save``."""

    def __init__(self, session: ReplSession) -> None:
        self.session = session
        self.files = PathCompleter(expanduser=True)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        before = document.text_before_cursor
        file = FILE.match(before)
        if file is not None:
            inner = Document(before[file.end() :])
            yield from self.files.get_completions(inner, complete_event)
            return
        start = WORD.search(before)
        word = start.group() if start is not None else ""
        for candidate in completions(self.session, word, before[: len(before) - len(word)]):
            yield Completion(candidate, start_position=-len(word))


class _Colors(Lexer):
    """Axis letters in the colors of the pages, known names underlined."""

    def __init__(self, session: ReplSession) -> None:
        self.session = session

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        known = self.session.names().union(values(document.text))
        lines = document.lines

        def line(number: int) -> StyleAndTextTuples:
            if len(lines) <= number:
                return []
            return [(_style(*piece), piece[1]) for piece in pieces(lines[number], known)]

        return line


def _style(kind: str, word: str) -> str:
    return f"class:axis-{axis_color(word)}" if kind == "axis" else f"class:{kind}"


def _pane(session: ReplSession) -> Callable[[], StyleAndTextTuples]:
    """The lines below the prompt: what the text that is typed means, or the first mistake in it."""
    seen: dict[str, list[str]] = {}

    def toolbar() -> StyleAndTextTuples:
        text = get_app().current_buffer.text
        if text not in seen:
            seen.clear()
            seen[text] = pane(session, text)
        width = get_app().output.get_size().columns - 1
        lines = [
            f" {line if cells(line) < width else line[: width - 2] + '…'}" for line in seen[text]
        ]
        style = "class:mistake" if seen[text] and seen[text][0].startswith("error[") else ""
        return [(style, "\n".join(lines))]

    return toolbar


@contextmanager
def _paged(screen: Screen) -> Iterator[None]:
    """Results that are printed meanwhile, shown by a pager where they are longer than the screen."""
    with screen.held() as texts:
        yield
    text = encodable("".join(texts), sys.stdout)
    lines = os.get_terminal_size(sys.stdout.fileno()).lines
    if lines == 0 or text.count("\n") < lines:  # 0: a terminal that does not know its size
        screen.write_exact(text)
        screen.close()
        return
    from click import echo_via_pager

    echo_via_pager(text, color=screen.colored(sys.stdout))
