"""Replies of the REPL to lines: text, pages and diagnostics, and how they are printed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ilang.core.diagnostic import Error
from ilang.core.record import record

if TYPE_CHECKING:
    from ilang.core.explain.explanation import Explanation
    from ilang.icli.screen import Screen
    from ilang.icli.session import ReplSession


@record
class Reply:
    """The reply to a line: text, pages and diagnostics in order."""

    parts: tuple[str | Explanation | Error, ...]
    failed: bool = False
    leaves: bool = False


def answer(session: ReplSession, screen: Screen, entries: Iterable[str]) -> Reply:
    """Answer entries until one leaves: whether one failed, and whether one left."""
    failed = False
    for entry in entries:
        reply = session.feed(entry)
        show(reply, screen)
        failed = failed or reply.failed
        if reply.leaves:
            return Reply((), failed, leaves=True)
    return Reply((), failed)


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
