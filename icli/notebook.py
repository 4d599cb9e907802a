"""The language in notebooks: ``%load_ext ilang``, then cells that begin with ``%%i``, and ``%i softmax x`` in a line.

A cell holds lines as the REPL takes them (``session.py``). Arrays of the notebook are known by their names, and what a
cell binds, arrays and definitions, is bound in the notebook. ``--time`` also times each line that runs.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from ilang.core.diagnostic import CommandError, Error
from ilang.core.explain.explanation import Explanation
from ilang.icli.entries import entries_of
from ilang.icli.lines import BINDS, LAST
from ilang.icli.session import ReplSession
from ilang.icli.waiting import unfinished

OPTION = "--time"
WORD = re.compile(r"[A-Za-z_]\w*")


def load(shell: Any) -> None:
    """Register ``%i`` and ``%%i`` with an interactive shell of IPython."""
    cells = NotebookCells(shell)
    shell.register_magic_function(cells.run, magic_kind="line_cell", magic_name="i")


class NotebookCells:
    """The cells of one notebook, which share names."""

    def __init__(self, shell: Any) -> None:
        """``shell`` has the names of the notebook in ``user_ns``."""
        self.shell = shell
        self.session = ReplSession()

    def run(self, line: str, cell: str | None = None) -> None:
        """Run a line, or a cell, whose line has options alone.

        Raises:
            Error: what is wrong with the first line that is; a notebook shows its message alone.
        """
        words = line.split()
        times = OPTION in words
        rest = line.replace(OPTION, "", 1).strip() if times else line
        try:
            if cell is not None and rest:
                message = f"{rest} is no option of a cell"
                raise CommandError("E0802", message, help=f"write `%%i`, or `%%i {OPTION}`")
            text = rest if cell is None else cell
            if not text.strip():
                raise CommandError("E0805", "%i needs a line", help="%i softmax x")
            self._run(text, times)
        except Error as error:
            shown = str(error).splitlines()
            error._render_traceback_ = lambda: shown  # type: ignore[attr-defined]
            raise

    def _run(self, text: str, times: bool) -> None:
        self._take_arrays(text)
        before = dict(self.session.arrays)
        try:
            for entry in [*entries_of(text.splitlines(), self.session.is_array)]:
                self._answer(entry, times)
            for part in unfinished(self.session).parts:
                if isinstance(part, Error):
                    raise part
        finally:
            self._give_names(before)

    def _answer(self, entry: str, times: bool) -> None:
        """Show the reply to one entry. Raises: Error, where it failed."""
        reply = self.session.feed(entry)
        for part in reply.parts:
            if isinstance(part, Error) and reply.failed:
                raise part
            if isinstance(part, Explanation):
                self.show(part)
            else:
                sys.stdout.write(f"{str(part).rstrip()}\n")
        if times:
            self._time(entry)

    def _time(self, entry: str) -> None:
        """Time an entry that runs a program on arrays."""
        binds = BINDS.match(entry)
        program = (entry if binds is None else binds.group(2)).strip()
        reply = self.session.feed(f":time {program}")
        if not reply.failed:  # what defines or shows something has no time
            sys.stdout.write("".join(f"{part}\n" for part in reply.parts))

    def show(self, page: Explanation) -> None:
        """Show a page as the notebook shows it."""
        from ilang.codegen.components.notebook_pages import notebook_page

        display = self.shell.user_ns.get("display", print)
        display(notebook_page(page))

    def _take_arrays(self, text: str) -> None:
        """Know the arrays and tensors of the notebook whose names stand in a text. Raises DataError E0702, E0703."""
        from numpy import ndarray

        from ilang.codegen.call.arguments import supported_array

        names: dict[str, Any] = self.shell.user_ns
        for word in WORD.findall(text):
            value = names.get(word)
            is_array = isinstance(value, ndarray) or (
                hasattr(type(value), "__array__") and 0 < getattr(value, "ndim", 0)
            )
            if is_array and word not in self.session.texts:
                self.session.arrays[word] = supported_array(word, value)

    def _give_names(self, before: dict[str, Any]) -> None:
        """Bind what a cell has bound in the notebook."""
        from ilang.codegen.components.library import library

        names, session = self.shell.user_ns, self.session
        for name, array in session.arrays.items():
            if name != LAST and before.get(name) is not array:
                names[name] = array
        if session.texts:
            definitions = library(session.calls.module)
            names.update({name: definitions[name] for name in session.texts if name.isidentifier()})
