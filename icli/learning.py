"""A REPL with lessons: each has a task, and what is typed is compared with its solution, by running both.

A line is one of ``hint``, ``solution``, ``skip``, ``task``, ``quit``; a command, ``i build ...``; or what the REPL
takes. A program, or a definition of the name that the task asks for, is an answer.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ilang.core.diagnostic import Error, counted
from ilang.icli.calls import RunRequest
from ilang.icli.commands import COMMANDS
from ilang.icli.entries import entries_of
from ilang.icli.files import state_folder
from ilang.icli.lessons import Lesson
from ilang.icli.programs import defined, named_results
from ilang.icli.replies import Reply
from ilang.icli.session import ReplSession
from ilang.icli.staged import ComponentAtShapes
from ilang.icli.values import DTYPES, array_text

if TYPE_CHECKING:
    from ilang.codegen.system.npy import Array
    from ilang.core.ir.graph import Graph

    Results = list[tuple[str, Array]]

WORDS = "hint, solution, skip or quit; anything else is run as in `i repl`"
NO_COMMANDS = ("learn", "repl", "lsp")
"""Commands that do not run inside of a lesson: they read what is typed."""
CLOSE = 1e-5
"""The largest difference of results that agree, relative, and the absolute one."""


class LessonSession(ReplSession):
    """Lessons one after the other, each with arrays and definitions of its own."""

    def __init__(
        self,
        numbered: Sequence[tuple[int, Lesson]],
        width: Callable[[], int | None] = lambda: None,
        colored: bool = False,
    ) -> None:
        """For lessons with their numbers: ``solved`` are those, ``skipped`` counts others, ``typed`` all lines."""
        super().__init__(width, colored)
        self.left = list(numbered)
        self.solved: list[Lesson] = []
        self.skipped = 0
        self.typed = 0
        self.hinted = 0
        self.folder = tempfile.TemporaryDirectory(prefix="i-learn-")
        self.begin()

    @property
    def lesson(self) -> Lesson:
        """The lesson that is learned."""
        return self.left[0][1]

    def begin(self) -> None:
        """Begin a lesson: its arrays and its file are there, and nothing else."""
        self.hinted, self.last = 0, None
        self.drawn = self.drawn_before = 0
        self._have({})
        self.arrays = dict(
            zip(self._arrays_of(0), self.values([], [*self._arrays_of(0).values()]), strict=True)
        )
        if self.lesson.file is not None:
            name, text = self.lesson.file
            (Path(self.folder.name) / name).write_text(text, "utf-8")

    def _arrays_of(self, number: int) -> dict[str, str]:
        """The arrays of a run by name, as they are written."""
        return self.lesson.arrays[number] if self.lesson.arrays else {}

    def page(self) -> str:
        """The text of the lesson, its task, and what may be typed."""
        number, lesson = self.left[0]
        arrays = [f"  {name} = {text}" for name, text in self._arrays_of(0).items()]
        task = "\n".join([f"Task  {lesson.task}", *arrays])
        return f"\nLesson {number}  {lesson.title}\n\n{lesson.text}\n\n{task}\n\nType your answer, or {WORDS}."

    def feed(self, text: str) -> Reply:
        """Take what is typed: a word of lessons, a command, or a line of the REPL, which may be the answer."""
        word = text.strip()
        self.typed += 1
        match word:
            case "hint" | "?":
                return Reply((self._hint(),))
            case "solution":
                return Reply(("\n".join(self.lesson.solution),))
            case "task":
                return Reply((self.page(),))
            case "skip":
                self.skipped += 1
                return self._next(())
            case _ if (
                len(word.split()) > 1 and word.startswith("i ") and word.split()[1] in COMMANDS
            ):
                return self._command(word)
        before, defined_before = self.last, dict(self.texts)
        reply = super().feed(text)
        name = self._wanted()
        is_new = (
            self.last is not before
            if name is None
            else self.texts.get(name) != defined_before.get(name)
        )
        if reply.failed or reply.leaves or not is_new or self.lesson.file is not None:
            return reply
        try:
            verdict = self._verdict(name)
        except Error as error:
            return Reply((error,), failed=True)
        if not verdict:
            return self._right()
        shown = [part for part in reply.parts if isinstance(part, str) and name is not None]
        return Reply((*shown, verdict), failed=True)

    def _hint(self) -> str:
        hints = self.lesson.hints
        self.hinted = min(self.hinted + 1, len(hints))
        more = "" if self.hinted == len(hints) else "   (`hint` again says more)"
        return f"{hints[self.hinted - 1]}{more}"

    def _right(self) -> Reply:
        """The reply to the right answer, with the next lesson."""
        number, lesson = self.left[0]
        self.solved.append(lesson)
        keep_done(lesson.key)
        return self._next((f"Right. Lesson {number} is done.",))

    def _next(self, parts: tuple[str, ...]) -> Reply:
        self.left.pop(0)
        if not self.left:
            return Reply(parts, leaves=True)
        self.begin()
        return Reply((*parts, self.page()))

    # -- answers -------------------------------------------------------------------------------------------------------

    def _wanted(self) -> str | None:
        """The name that the task asks for; None where it asks for a program."""
        return list(self._solved().texts)[-1] if self._solved().texts else None

    def _solved(self) -> ReplSession:
        """A session in which the solution was typed."""
        session = ReplSession()
        session.arrays = dict(self.arrays)
        for entry in [*entries_of(self.lesson.solution, session.is_array)]:
            session.feed(entry)
        return session

    def _verdict(self, name: str | None) -> str:
        """The difference between what was typed and the solution; nothing where they agree.

        Raises: Error (the answer does not take the arrays).
        """
        solution = self._solved()
        takes, asked = (_inputs(each, name) for each in (self, solution))
        if takes != asked:
            names = ", ".join(self._arrays_of(0))
            return f"Not yet: it takes {counted(takes, 'input')}, and the task has {asked}: {names}"
        for number in range(len(self.lesson.arrays)):
            words = list(self._arrays_of(number).values())
            given, wanted = (_results(each, name, words) for each in (self, solution))
            if not _agree(given, wanted):
                return self._difference(number, given, wanted)
        if self.lesson.needs:
            stage = _stage(self, name, self.lesson.needs)
            if stage != _stage(solution, name, self.lesson.needs):
                return f"The result is right. The {self.lesson.needs} are not yet those of the task:\n{stage}"
        return ""

    def _difference(self, number: int, given: Results, wanted: Results) -> str:
        arrays = "\n".join(f"  {name} = {text}" for name, text in self._arrays_of(number).items())
        shown, asked = (self._shown_all(each) for each in (given, wanted))
        return f"Not yet. For\n{arrays}\nit gives\n{shown}\nand the task asks for\n{asked}"

    def _shown_all(self, results: Results) -> str:
        texts = (array_text(name, array, self.width()) for name, array in results)
        return "\n".join(text.rstrip("\n") for text in texts)

    def _command(self, line: str) -> Reply:
        """Run a command in the folder of the lesson, and compare the files with those of the solution."""
        try:
            words = shlex.split(line)[1:]
        except ValueError as trouble:
            return Reply((f"the line is no command: {trouble}",), failed=True)
        if not words or words[0] in NO_COMMANDS:
            return Reply((f"`{line}` does not run inside of a lesson",), failed=True)
        status = _ran(words, self.folder.name)
        if self.lesson.file is None:
            return Reply((), failed=status != 0)
        with tempfile.TemporaryDirectory() as folder:
            name, text = self.lesson.file
            (Path(folder) / name).write_text(text, "utf-8")
            with contextlib.redirect_stdout(io.StringIO()):
                _ran(shlex.split(self.lesson.solution[0])[1:], folder)
            if _files(folder).items() <= _files(self.folder.name).items():
                return self._right()
        return Reply((), failed=status != 0)


def _ran(words: Sequence[str], folder: str) -> int:
    """The status of a command that is run in a folder."""
    from ilang.icli.main import main

    before = Path.cwd()
    os.chdir(folder)
    try:
        return main(words)
    finally:
        os.chdir(before)
        sys.stdout.flush()


def _files(folder: str) -> dict[str, bytes]:
    place = Path(folder)
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file()
    }


def _results(session: ReplSession, name: str | None, words: Sequence[str]) -> Results:
    """The results of a definition, or of the last program, of a session for arrays: NumPy evaluates it."""
    session.drawn_before = 0  # the answer and the solution are given the same numbers
    if name is not None and name in session.calls.heads:
        request = RunRequest(session.calls.function(name), tuple(words), {})
        arrays = session.values(request.dtypes(), request.words)
        shapes = session.calls.seen(request, arrays).shapes
        compiled = request.function.session(shapes, target="numpy")
        return named_results(compiled.outputs, compiled(*arrays))
    from ilang.core.pipeline import infer
    from ilang.core.reference import evaluate

    graph, arrays = _graph(session, name), session.values([None] * len(words), words)
    dtypes = [DTYPES[array.dtype.name] for array in arrays]
    shaped = infer(graph, dtypes, shapes=[array.shape for array in arrays])
    results = evaluate(shaped, arrays, [size.fixed or 0 for size in shaped.sizes])
    return list(zip(graph.output_names(graph.outputs), results, strict=True))


def _inputs(session: ReplSession, name: str | None) -> int:
    """The number of inputs of a definition, or of the last program."""
    if name is not None and name in session.calls.heads:
        return len(session.calls.heads[name].tensors)
    return len(_graph(session, name).inputs)


def _graph(session: ReplSession, name: str | None) -> Graph:
    if name is not None:
        return defined(session.calls.module, name).graph
    assert isinstance(session.last, ComponentAtShapes)
    return session.last.wired


def _stage(session: ReplSession, name: str | None, stage: str) -> str:
    """A program at a stage of its way down, for open extents."""
    return ComponentAtShapes(_graph(session, name), None).text(stage)


def _agree(given: Results, wanted: Results) -> bool:
    """Whether results are the same but for rounding."""
    return len(given) == len(wanted) and all(
        one.shape == other.shape and bool(np.allclose(one, other, CLOSE, CLOSE, equal_nan=True))
        for (_, one), (_, other) in zip(given, wanted, strict=True)
    )


# -- progress ----------------------------------------------------------------------------------------------------------


def done() -> frozenset[str]:
    """The lessons that were solved, by their keys; none where nothing can be kept."""
    folder = state_folder()
    if folder is None:
        return frozenset()
    try:
        return frozenset((folder / "lessons").read_text("utf-8").split())
    except (OSError, ValueError):
        return frozenset()


def keep_done(key: str) -> None:
    """Keep that a lesson was solved, beside the history of the REPL."""
    folder = state_folder()
    if folder is not None and key not in done():
        with contextlib.suppress(OSError), (folder / "lessons").open("a", encoding="utf-8") as file:
            file.write(f"{key}\n")
