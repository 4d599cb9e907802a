"""The REPL on a terminal: keys in, drawing out."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from ilang.icli.replies import Reply
from ilang.icli.screen import Screen
from ilang.icli.session import ReplSession
from ilang.icli.terminal import interact
from tests.unit.icli.front import ENTRY, ROOT, environment, wait_until_computing

CURSOR_WHERE, CURSOR_HERE = b"\x1b[6n", b"\x1b[1;1R"
PASTING = b"\x1b[?2004h"  # the prompt begins by asking for pastes to be marked
SECONDS = 300


class Terminal:
    """A process on a terminal of its own, which answers where its cursor is."""

    def __init__(self, *tokens: str, home: Path, columns: int = 80, rows: int = 24) -> None:
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
            more = {"HOME": str(home), "XDG_STATE_HOME": "", "TERM": "xterm-256color"}
            os.execve(sys.executable, [sys.executable, "-c", ENTRY, *tokens], environment(**more))
        self.seen = b""

    def send(self, keys: bytes) -> None:
        os.write(self.end, keys)

    def until(self, text: bytes) -> bytes:
        """Read until the terminal has been sent this text; what came before it."""
        begin = time.monotonic()
        while text not in self.seen:
            assert time.monotonic() - begin < SECONDS, str(self.seen)[-1500:]
            if select.select([self.end], [], [], 0.1)[0]:
                data = os.read(self.end, 4096)
                self.seen += data
                if CURSOR_WHERE in data:
                    self.send(CURSOR_HERE)
        before, _, self.seen = self.seen.partition(text)
        return before

    def prompt(self) -> None:
        """Read until the next line can be typed: what is typed before is lost."""
        self.until(PASTING)
        self.until(b"i>")

    def rest(self) -> str:
        """Everything until the process closes its side."""
        while True:
            try:
                data = os.read(self.end, 4096)
            except OSError:  # the other side is closed
                data = b""
            if not data:
                return self.seen.decode()
            self.seen += data

    def status(self) -> int:
        """How the process ended."""
        self.rest()
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


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_ctrl_c_at_the_keyboard(terminal: Terminal) -> None:
    terminal.prompt()
    terminal.send(b"x = rand:1000000\r")
    terminal.prompt()
    for line in (b"i*j~ij >> +ij~. x x\r", b"i*j~ij >> +ij~. x x\r"):
        terminal.send(line)
        wait_until_computing(terminal.pid)
        terminal.send(b"\x03")
        terminal.until(b"^C\r\ninterrupted: ")
        terminal.prompt()
    terminal.send(b"+i~. [1,2,4]\r")
    terminal.until(b"7.")
    terminal.prompt()
    terminal.send(b"\x04")
    assert terminal.status() == 0


def test_explain_draws_on_a_terminal(tmp_path: Path) -> None:
    terminal = Terminal("explain", "+ij~i", home=tmp_path)
    terminal.until(b"\x1b[2mfor\x1b[0m \x1b[36mi\x1b[0m")
    assert terminal.status() == 0


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize(
    "tokens",
    [
        ("run", "I", "rand:4x20"),
        ("explain", "(i+k-1)*k~ik >> +ik~i"),
        ("--help",),
        ("explain", "ik*kj~ijk >> +ijk~ij >> ab+cd~abcde"),
    ],
)
def test_every_line_fits_the_terminal(
    tokens: tuple[str, ...], columns: int, tmp_path: Path
) -> None:
    terminal = Terminal(*tokens, home=tmp_path, columns=columns)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal.rest())
    terminal.status()
    assert shown
    assert max(map(len, shown.splitlines())) <= columns, shown


def test_arrays_of_a_session_fit_the_terminal(tmp_path: Path) -> None:
    terminal = Terminal("repl", home=tmp_path, columns=40)
    terminal.prompt()
    terminal.send(b"I rand:30\r")
    terminal.until(b"out  30  f32\r\n")
    lines = terminal.until(b"]").split(b"\r\n")
    assert len(lines) > 5
    assert max(map(len, lines)) <= 40
    terminal.prompt()
    terminal.send(b"\x04")
    assert terminal.status() == 0


def test_an_interrupted_call_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupted(ReplSession):
        def feed(self, text: str) -> Reply:
            if text == "long":
                raise KeyboardInterrupt
            return super().feed(text)

    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text("half a line\x03")
        keys.send_text("long\r")
        keys.send_text("+i~. [1,2]\r")
        keys.send_text("\x04")
        assert interact(Interrupted(), Screen()) == 0
    out, err = capsys.readouterr()
    assert "\ninterrupted: there is no result" in err
    assert out == "out  .  f32\n3.\n"


def test_a_paste_works_as_if_typed(tmp_path: Path) -> None:
    terminal = Terminal("repl", home=tmp_path)
    terminal.prompt()
    lines = (ROOT / "samples" / "09_softmax.i").read_bytes() + b"x = [[1,2],[3,4]]\n+ij~i x"
    terminal.send(b"\x1b[200~" + lines.replace(b"\n", b"\r") + b"\x1b[201~\r")
    terminal.until(b"softmax  waits for shift, exp, norm")
    terminal.until(b"softmax(x[m,n]) -> [m,n]")
    terminal.until(b"[3. 7.]")
    terminal.prompt()
    terminal.send(b"\x04")
    assert terminal.status() == 0


def test_the_pane_below_the_prompt(terminal: Terminal) -> None:
    terminal.prompt()
    terminal.send(b"+ij~i")
    terminal.until("out[i] = Σ_j in0[i,j]".encode())
    terminal.until(b"(in0[i,j]) -> [i]")
    terminal.send(b"k")
    terminal.until(b"error[E0201]")
    terminal.send(b"\x03")
    terminal.prompt()
    terminal.send(b"\x04")
    assert terminal.status() == 0


def test_history_is_suggested(terminal: Terminal) -> None:
    terminal.prompt()
    terminal.send(b"+i~. [1,2,4]\r")
    terminal.until(b"7.")
    terminal.prompt()
    terminal.send(b"+i~")
    terminal.until(b". [1,2,4]")
    terminal.send(b"\x1b[C\r")
    terminal.until(b"7.")
    terminal.prompt()
    terminal.send(b"\x04")
    assert terminal.status() == 0


def test_long_answers_go_through_a_pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "sed -n 's/^.*gemm/PAGED/p;$a\\END OF PAGER'")
    terminal = Terminal("repl", home=tmp_path)
    terminal.prompt()
    terminal.send(b":c ik*kj~ijk >> +ijk~ij\r")
    terminal.until(b"END OF PAGER")
    terminal.prompt()
    terminal.send(b":shape\r")
    terminal.until(b"shapes are those of the arrays at hand")
    terminal.prompt()
    terminal.send(b"\x04")
    assert terminal.status() == 0


def test_a_terminal_without_a_size_has_no_pager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", "echo PAGED; cat")
    terminal = Terminal("repl", home=tmp_path, columns=0, rows=0)
    terminal.prompt()
    terminal.send(b":shape\r")
    assert b"PAGED" not in terminal.until(b"shapes are those of the arrays at hand")
    terminal.prompt()
    terminal.send(b":quit\r")
    assert "PAGED" not in terminal.rest()
    assert terminal.status() == 0


def test_lines_of_epochs_take_one_place(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(
        'op f(x) = "w" *. x\n'
        "cd step(x, t; lr = 0.1) {\n"
        '  d = f(x) - t\n  loss = d *. d ++ "...|... => 0"\n  backprop(loss)\n'
        "  for p in params(loss) { p =- lr *. p.grad }\n  return loss\n}\n"
    )
    np.savez(tmp_path / "d.npz", x=np.ones((8, 1), np.float32), t=np.ones((8, 1), np.float32))
    place = tmp_path / "c.safetensors"
    tokens = ("--data", f"{tmp_path}/d.npz", "--batch", "8", "--epochs", "5", "--save", str(place))
    terminal = Terminal("train", f"{tmp_path}/m.i", *tokens, home=tmp_path)
    shown = terminal.rest()
    assert terminal.status() == 0
    kept = re.split(r"\x1b\[\d*[A-Z]", shown)[-1]
    assert kept.startswith("epoch 5 of 5   loss ")
    assert kept.count(" of 5") == 1
    assert "examples/s\r\n" in kept
    assert place.exists()


def test_no_bytes_go_to_a_terminal(tmp_path: Path) -> None:
    terminal = Terminal("run", "I", "[1,2]", "-o", "-", home=tmp_path)
    assert "E0812" in terminal.rest()
    assert terminal.status() == 2
