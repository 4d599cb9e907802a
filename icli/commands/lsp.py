"""``i lsp``: the language server of editors."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from ilang.core.diagnostic import ToolError
from ilang.icli.command import Command, Request
from ilang.icli.screen import Screen


def run(_request: Request, screen: Screen) -> int:
    """Answer an editor on standard input and output until it leaves.

    Raises: ToolError E0925 (pygls, which speaks the protocol, is not installed).
    """
    if find_spec("pygls") is None:
        message = "the language server needs pygls, which is not installed"
        raise ToolError("E0925", message, help="pip install 'ilang[lsp]'")
    from ilang.icli.server import serve

    if sys.stdin is not None and sys.stdin.isatty():
        screen.note("editors start this and write to it; Ctrl-C leaves")
    serve()
    return 0


COMMAND = Command(
    "lsp",
    "Answer an editor as its language server, on standard input and output.",
    run,
    (),
    (),
    "Editors start it for files `*.i`; docs/editors.md says how, for each of them.",
)
