"""The REPL on a terminal: keys in, drawing out."""

import os
import pty
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.icli.front import ENTRY, environment

CURSOR_WHERE, CURSOR_HERE = b"\x1b[6n", b"\x1b[1;1R"
PASTING = b"\x1b[?2004h"  # the prompt begins by asking for pastes to be marked
SECONDS = 60


class Terminal:
    """A process on a terminal of its own, which answers where its cursor is."""

    def __init__(self, *tokens: str, home: Path) -> None:
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            more = {"HOME": str(home), "XDG_STATE_HOME": "", "TERM": "xterm-256color"}
            os.execve(sys.executable, [sys.executable, "-c", ENTRY, *tokens], environment(**more))
        self.seen = b""

    def send(self, keys: bytes) -> None:
        os.write(self.end, keys)

    def until(self, text: bytes) -> None:
        """Read until the terminal has been sent this text."""
        begin = time.monotonic()
        while text not in self.seen:
            assert time.monotonic() - begin < SECONDS, str(self.seen)[-1500:]
            if select.select([self.end], [], [], 0.1)[0]:
                data = os.read(self.end, 4096)
                self.seen += data
                if CURSOR_WHERE in data:
                    self.send(CURSOR_HERE)
        self.seen = self.seen.partition(text)[2]

    def prompt(self) -> None:
        """Read until the next line can be typed: what is typed before is lost."""
        self.until(PASTING)
        self.until(b"i>")

    def status(self) -> int:
        """How the process ended."""
        while True:
            try:
                if not os.read(self.end, 4096):
                    break
            except OSError:  # the other side is closed
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal("repl", home=tmp_path)
    yield made
    os.close(made.end)


def test_a_session_at_the_keyboard(terminal: Terminal, tmp_path: Path) -> None:
    terminal.prompt()
    terminal.send(b"+i~. [1,2,4]\r")
    terminal.until(b"7.")
    terminal.prompt()
    terminal.send(b"ij~\r")
    terminal.until(b"E0103")
    terminal.prompt()
    terminal.send(b"half a line\x03")
    terminal.prompt()
    terminal.send(b":nam\t")
    terminal.until(b"es")
    terminal.send(b"\r")
    terminal.until(b"f32")
    terminal.prompt()
    terminal.send(b"\x04")
    assert terminal.status() == 0
    assert "+i~. [1,2,4]" in (tmp_path / ".local/state/i/history").read_text("utf-8")


def test_explain_draws_on_a_terminal(tmp_path: Path) -> None:
    terminal = Terminal("explain", "+ij~i", home=tmp_path)
    terminal.until(b"\x1b[36mi\x1b[0m")
    assert terminal.status() == 0
