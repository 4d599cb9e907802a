"""``i repl``: try programs line by line."""

from __future__ import annotations

import sys

from ilang.core.diagnostic import Error
from ilang.icli.command import Command, CommandOperand, Request
from ilang.icli.screen import Screen, is_terminal
from ilang.icli.session import ReplSession, Reply, goes_on


def run(request: Request, screen: Screen) -> int:
    """Read, answer, repeat: at a terminal with a prompt, else plainly, line by line."""
    session = ReplSession(lambda: screen.width(sys.stdout))
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
    status, pending = 0, ""
    for data in sys.stdin.buffer if sys.stdin is not None else ():
        pending += data.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")
        if goes_on(pending):
            pending += "\n"
            continue
        reply = session.feed(pending)
        pending = ""
        show(reply, screen)
        status = max(status, int(reply.failed))
        if reply.leaves:
            return status
    reply = session.feed(pending)
    show(reply, screen)
    return max(status, int(reply.failed))


def show(reply: Reply, screen: Screen) -> None:
    """Print an answer."""
    for part in reply.parts:
        if isinstance(part, str):
            screen.write(part.rstrip("\n") + "\n")
        elif isinstance(part, Error):
            screen.close()
            screen.complain(part)
        else:
            screen.page(part)
            screen.write("\n")
    screen.close()


COMMAND = Command(
    "repl",
    "Type programs line by line and see their results; `:help` lists the commands.",
    run,
    (CommandOperand("program", "[FILE]", "program", required=False),),
    (),
    "FILE is loaded first. Where standard input is no terminal, its lines are read and answered plainly.",
)
