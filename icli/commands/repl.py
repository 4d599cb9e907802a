"""``i repl``: try programs line by line."""

from __future__ import annotations

import os
import sys
from itertools import chain

from ilang.core.diagnostic import Error
from ilang.icli.command import Command, CommandOperand, Request
from ilang.icli.entries import Entries
from ilang.icli.replies import answer, show
from ilang.icli.screen import Screen, is_terminal
from ilang.icli.session import ReplSession
from ilang.icli.waiting import unfinished

AT_ONCE = 1 << 16
"""Bytes of standard input that are read at once: the lines among them are one paste."""


def run(request: Request, screen: Screen) -> int:
    """Read, answer, repeat: at a terminal with a prompt, else plainly, line by line."""
    session = ReplSession(lambda: screen.width(sys.stdout), screen.colored(sys.stdout))
    if request.operands:
        loaded = session.feed(f":load {request.operands[0]}")
        show(loaded, screen)
        for part in loaded.parts:
            if isinstance(part, Error):
                return part.status
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        from ilang.icli.terminal import interact

        return interact(session, screen)
    return read_lines(session, screen)


def read_lines(session: ReplSession, screen: Screen) -> int:
    """Answer every line of standard input; the status is 1 if one failed."""
    entries = Entries(session.is_array)
    status, left = 0, b""
    while sys.stdin is not None and (data := os.read(sys.stdin.fileno(), AT_ONCE)):
        whole, newline, left = (left + data).rpartition(b"\n")
        if newline:
            reply = answer(session, screen, entries.of(_lines(whole)))
            status = max(status, int(reply.failed))
            if reply.leaves:
                return status
    reply = answer(session, screen, chain(entries.of(_lines(left)), entries.rest()))
    last = unfinished(session)
    show(last, screen)
    return max(status, int(reply.failed or last.failed))


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")


COMMAND = Command(
    "repl",
    "Type programs line by line and see their results; `:help` lists the commands.",
    run,
    (CommandOperand("program", "[FILE]", "program", required=False),),
    (),
    "The definitions of FILE are loaded first. If standard input is a pipe, each of its lines is answered.",
)
