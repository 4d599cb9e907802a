"""``i tune``: time the best tiles of contractions, and print or write the schedule that is fastest.

A program with written schedules is searched as it is without them, and what is timed stands beside it as it is written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ilang.codegen.components import tuning
from ilang.codegen.components.scheduled_text import ScheduledText, scheduled_text
from ilang.core.ir.graph import Graph
from ilang.core.ir.syntax import Module
from ilang.core.machine import MACHINES, Machine
from ilang.core.source import Source
from ilang.icli.command import (
    EMULATE,
    JSON,
    SHAPE,
    Command,
    CommandOperand,
    Option,
    Request,
    target_of,
    whole_number,
)
from ilang.icli.programs import all_shapes, is_file, one_subject, open_program
from ilang.icli.screen import Screen
from ilang.icli.shapes import wrong_count

if TYPE_CHECKING:
    from ilang.codegen.components.component import Component

EACH = 0.5
"""Seconds in which a schedule is timed beside that of the program; the winner is timed once more, for twice as long."""
NOTHING = "nothing to tune: there is one order of loops, and no other tile (i explain --why)"
LEFT_OUT = "nothing to compare: {} other schedules were left out, for the reasons above"
NOT_CHOSEN = "      timed beside the chosen schedule, it is not faster by more than the spread"
ONCE_MORE = "      timed once more, it is not faster by more than the spread"
SAME: dict[str, float | None] = {"gain": 1.0, "spread": 0.0}
"""The gain of a schedule over itself."""


def run(request: Request, screen: Screen) -> int:
    """Time schedules one after the other, and print the fastest."""
    seconds = whole_number(request, "--time", 60, most=1_000_000)
    program = open_program(request.operands[0])
    subject = one_subject(program, request.one("--def"))
    ((_, shapes),) = all_shapes([subject.graph], request.all("--shape"))
    is_module = isinstance(program, Module)
    source = program.source if isinstance(program, Module) else subject.tree.span.source
    target, machine = target_of(request), MACHINES[request.one("--target") or "c"]
    if target != "c":
        from ilang.codegen.device.offload import device_of

        device_of(target)
    task = {
        "name": source.name,
        "target": target,
        "definition": subject.graph.name if is_module else "",
        "shapes": _extents(subject.graph) if shapes is None else shapes,
    }
    component = subject.component()
    text = scheduled_text(source, component, shapes or ())
    if text.schedules:
        from ilang.core import pipeline

        # An illegal one is refused here, where its span is known.
        pipeline.schedule(component.shaped(shapes or ()), machine)
    search = ScheduleSearch(task, text, screen.note)
    search.compare(component, shapes or (), seconds)
    shown = search.winner(machine)
    answer: dict[str, Any] = {"tried": search.tried, **search.over_chosen, "schedule": shown}
    answer["written"] = search.over_written if text.schedules else None
    says = search.result(machine)
    if search.best is not None and request.has("--write"):
        says += f"\n{_write(request.operands[0], source, search.best[0], search.is_chosen_best)}"
    screen.write_json(answer) if screen.json else screen.write(says + "\n")
    if search.interrupted:
        screen.note("interrupted")
        return 130
    return 0


def _extents(graph: Graph) -> Sequence[Sequence[int]]:
    """The shapes of inputs that the program itself says. Raises: CommandError E0811 (it leaves some open)."""
    from ilang.core.pipeline import infer

    shaped = infer(graph)
    shapes = [[shaped.sizes[n].fixed for n in shaped.tensors[each].dims] for each in shaped.inputs]
    names = graph.input_names()
    missing = [name for name, shape in zip(names, shapes, strict=True) if None in shape]
    if missing:
        raise wrong_count(f"gives none for {', '.join(missing[:20])}", names, "the program")
    return [[each or 0 for each in shape] for shape in shapes]


class ScheduleSearch:
    """Schedules that are timed beside that of the program, and the text of the fastest with its times."""

    def __init__(
        self, task: dict[str, Any], text: ScheduledText, note: Callable[[str], None]
    ) -> None:
        self.task, self.text, self.note = task, text, note
        self.reference = "written" if text.schedules else "chosen"
        self.best: tuple[str, tuning.Times] | None = None
        self.chosen: tuning.Times | None = None
        self.best_beside_chosen: tuning.Times | None = None
        self.tried = self.left_out = self.untried = 0
        self.interrupted = False

    @property
    def is_chosen_best(self) -> bool:
        """Whether the program is fastest without the schedules that are written in it."""
        return self.best is not None and self.best[0] == self.text.bare.text

    @property
    def over_written(self) -> dict[str, float | None]:
        """The gain of the winner over the schedule of the program."""
        return SAME if self.best is None else _gain(self.best[1])

    @property
    def over_chosen(self) -> dict[str, float | None]:
        """The gain of the winner over the chosen schedule; unknown where Ctrl-C came before that was timed."""
        if not self.text.schedules:
            return self.over_written
        if self.is_chosen_best:
            return SAME
        if self.best is not None:
            return _gain(self.best_beside_chosen)
        return _gain(None if self.chosen is None else self.chosen[::-1])

    def compare(self, program: Component, shapes: Any, seconds: float) -> None:
        """Time the candidates until the time is over or Ctrl-C comes, and the fastest once more."""
        try:
            self._time_each(self._schedules(program, shapes), time.monotonic() + seconds)
            if self.best is not None:
                self._time_again(*self.best)
        except KeyboardInterrupt:
            self.interrupted = True

    def result(self, machine: Machine) -> str:
        """The schedules of the winner and its gains, or the sentence where the schedule of the program stays."""
        return self._kept() if self.best is None else f"{self.winner(machine)}\n{self._gains()}"

    def winner(self, machine: Machine) -> str | None:
        """The schedules of all expressions of the fastest text, as they could be pasted; None where none won."""
        if self.best is None:
            return None
        from ilang.core import pipeline
        from ilang.core.explain.page import schedule_text

        fastest = tuning.component(self.task["name"], self.best[0], self.task["definition"])
        return schedule_text(
            pipeline.explain(fastest.graph(), self.task["shapes"], machine=machine)
        )

    def _kept(self) -> str:
        """The sentence where the schedule of the program stays."""
        if not self.tried:
            return LEFT_OUT.format(self.left_out) if self.left_out else NOTHING
        says = f"the {self.reference} schedule is the fastest of {self.tried + 1}"
        if self.chosen is not None:
            if 1 < tuning.gain(self.chosen):
                says = f"none of {self.tried} is faster than the written schedule by more than the spread"
            says += f": {_speed(self.chosen[::-1])}"
        return says + self._more()

    def _gains(self) -> str:
        """The gains of the winner over the schedule of the program, and over the chosen one."""
        assert self.best is not None
        lines = [_speed(self.best[1], self.reference)]
        if self.is_chosen_best:
            lines[0] += "; it is what is chosen where none is written"
        elif self.best_beside_chosen is not None:
            lines.append(_speed(self.best_beside_chosen))
        return "\n".join(lines) + f"; {self.tried + 1} timed{self._more()}"

    def _more(self) -> str:
        """The number of schedules that there was no time for, as words."""
        return (
            f"; {self.untried} more were not timed: `i tune --time SECONDS` has longer"
            if self.untried
            else ""
        )

    def _schedules(self, program: Component, shapes: Any) -> dict[str, str]:
        """The texts that are timed, each with what is said of it."""
        source, bare = self.text.source, self.text.bare
        schedules: dict[str, str] = {}
        if self.text.schedules:
            schedules[bare.text] = "without a schedule"
            program = tuning.component(bare.name, bare.text, self.task["definition"])
        for words in tuning.candidates(program, shapes, self.task["target"]):
            text = self.text.with_schedules(words)
            if text is not None and text != source.text:
                schedules[text] = words[-1][1]
        return schedules

    def _time_each(self, schedules: dict[str, str], end: float) -> None:
        texts = tuning.compiled_ahead(self.task, iter(schedules))
        for number, text in enumerate(texts):
            if number and end < time.monotonic():
                self.untried = len(schedules) - number
                break
            times = self._timed(self.text.source.text, text, EACH)
            if isinstance(times, str):
                self.left_out += 1
                self.note(f"left out: {times}: {schedules[text]}")
                continue
            self.tried += 1
            if text == self.text.bare.text:
                self.chosen = times
            if tuning.is_faster(times) and (
                self.best is None or tuning.gain(self.best[1]) < tuning.gain(times)
            ):
                self.best = text, times
                says = _speed(times, self.reference)
                self.note(f"{self.tried:4}  {says}  {schedules[text]}")

    def _time_again(self, text: str, times: tuning.Times) -> None:
        """Time the fastest once more, where it has to win again; over the chosen schedule, too, if one is written."""
        bare = self.text.bare.text
        is_chosen_faster = self.chosen is not None and tuning.is_faster(self.chosen)
        if self.text.schedules and text != bare:
            beside = self._timed(bare, text, 2 * EACH)
            self.best_beside_chosen = None if isinstance(beside, str) else beside
            if is_chosen_faster and (isinstance(beside, str) or not tuning.is_faster(beside)):
                self.note(NOT_CHOSEN)
                text = bare
        again = self._timed(self.text.source.text, text, 2 * EACH)
        if isinstance(again, str) or not tuning.is_faster(again):
            self.note(ONCE_MORE)
            self.best = None
            return
        self.best = text, again

    def _timed(self, first: str, second: str, seconds: float) -> tuning.Times | str:
        return tuning.timed({**self.task, "texts": (first, second)}, seconds)


def _gain(times: tuning.Times | None) -> dict[str, float | None]:
    gain, spread = (None, None) if times is None else (tuning.gain(times), tuning.spread(times))
    return {"gain": gain, "spread": spread}


def _speed(times: tuning.Times, than: str = "chosen") -> str:
    gain, spread = tuning.gain(times), tuning.spread(times)
    return f"{gain:.2f} times as fast as the {than} schedule, spread {spread:.0%}"


def _write(operand: str, source: Source, text: str, is_chosen: bool) -> str:
    """Write a program into its file; what was done."""
    from ilang.codegen.system.files import read_program_bytes, write_whole

    if not is_file(operand):
        return "there is no file to write it into"
    if read_program_bytes(operand).decode() != source.text:
        return f"{operand} has changed meanwhile, and is left as it is"
    write_whole(os.path.realpath(operand), lambda stream: stream.write(text.encode()))
    return f"the schedule is taken out of {operand}" if is_chosen else f"written into {operand}"


COMMAND = Command(
    "tune",
    "Time the best tiles of contractions, and other orders of loops, and print the fastest schedule.",
    run,
    (CommandOperand("program", "TEXT|FILE|-", "program"),),
    (
        Option.of_definition("Tune this definition of a file"),
        SHAPE,
        Option("--target", "TARGET", "The machine to tune for", tuple(MACHINES)),
        EMULATE,
        Option("--time", "SECONDS", "How long to search; default: 60"),
        Option("--write", None, "Write the schedule into the file, if it is faster"),
        JSON,
    ),
)
