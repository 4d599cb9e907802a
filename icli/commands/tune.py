"""``i tune``: time the best tiles of contractions, and print or write the schedule that is fastest."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from ilang.codegen.components import tuning
from ilang.core.ir.graph import Assignment, Graph
from ilang.core.ir.syntax import Module
from ilang.core.machine import MACHINES
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

EACH = 0.5
"""Seconds in which a schedule is timed beside the chosen one; the winner is timed once more, for twice as long."""
NOTHING = "nothing to tune: there is one order of loops, and no other tile (i explain --why)"
WRITTEN = "nothing to tune: the schedule is written (i diff PROGRAM --unscheduled: the one that would be chosen)"
ONCE_MORE = "      timed once more, it is not faster by more than the spread"


def run(request: Request, screen: Screen) -> int:
    """Time schedules one after the other, and print the fastest."""
    seconds = whole_number(request, "--time", 60, most=1_000_000)
    program = open_program(request.operands[0])
    subject = one_subject(program, request.one("--def"))
    ((_, shapes),) = all_shapes([subject.graph], request.all("--shape"))
    is_module = isinstance(program, Module)
    source = program.source if isinstance(program, Module) else subject.tree.span.source
    target = target_of(request)
    if target != "c":
        from ilang.codegen.device.offload import device_of

        device_of(target)
    task = {
        "name": source.name,
        "target": target,
        "definition": subject.graph.name if is_module else "",
        "shapes": _extents(subject.graph) if shapes is None else shapes,
    }
    best, tried, interrupted = _searched(task, source, subject.component(), shapes, seconds, screen)
    if best is None:
        answer: dict[str, Any] = {"tried": tried, "gain": 1.0, "schedule": None}
        nodes = [node for node in subject.graph.nodes if isinstance(node, Assignment)]
        nothing = WRITTEN if any(node.schedule is not None for node in nodes) else NOTHING
        says = f"the chosen schedule is the fastest of {tried + 1}" if tried else nothing
    else:
        text, times = best
        winner = tuning.component(source.name, text, str(task["definition"]))
        from ilang.core import pipeline
        from ilang.core.explain.page import schedule_text

        machine = MACHINES[request.one("--target") or "c"]
        shown = schedule_text(pipeline.explain(winner.graph(), shapes, machine=machine))
        answer = {"tried": tried, "gain": tuning.gain(times), "spread": tuning.spread(times)}
        answer["schedule"] = shown
        says = f"{shown}\n{_speed(times)}; {tried + 1} timed"
        if request.has("--write"):
            says += f"\n{_write(request.operands[0], source, text)}"
    screen.write_json(answer) if screen.json else screen.write(says + "\n")
    if interrupted:
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


def _searched(
    task: dict[str, Any],
    source: Source,
    component: Any,
    shapes: Any,
    seconds: float,
    screen: Screen,
) -> tuple[tuple[str, tuning.Times] | None, int, bool]:
    """The fastest text with its times, where one is faster; how many were timed; whether Ctrl-C ended it."""
    end, tried = time.monotonic() + seconds, 0
    best: tuple[str, tuning.Times] | None = None
    try:
        schedules = {
            text: words[-1][1]
            for words in tuning.candidates(component, shapes or (), task["target"])
            if (text := tuning.written(source, words)) is not None
        }
        for number, text in enumerate(tuning.compiled_ahead(task, iter(schedules))):
            if number and end < time.monotonic():
                break
            times = tuning.timed({**task, "texts": (source.text, text)}, EACH)
            if isinstance(times, str):
                screen.note(f"left out: {times}: {schedules[text]}")
                continue
            tried += 1
            if tuning.is_faster(times) and (
                best is None or tuning.gain(best[1]) < tuning.gain(times)
            ):
                best = text, times
                screen.note(f"{tried:4}  {_speed(times)}  {schedules[text]}")
        if best is not None:
            again = tuning.timed({**task, "texts": (source.text, best[0])}, 2 * EACH)
            if isinstance(again, str) or not tuning.is_faster(again):
                screen.note(ONCE_MORE)
                best = None
            else:
                best = best[0], again
    except KeyboardInterrupt:
        return best, tried, True
    return best, tried, False


def _speed(times: tuning.Times) -> str:
    return f"{tuning.gain(times):.2f} times as fast as the chosen schedule, spread {tuning.spread(times):.0%}"


def _write(operand: str, source: Source, text: str) -> str:
    """Write a program into its file; what was done."""
    from ilang.codegen.system.files import read_program_bytes, write_whole

    if not is_file(operand):
        return "there is no file to write it into"
    if read_program_bytes(operand).decode() != source.text:
        return f"{operand} has changed meanwhile, and is left as it is"
    write_whole(os.path.realpath(operand), lambda stream: stream.write(text.encode()))
    return f"written into {operand}"


COMMAND = Command(
    "tune",
    "Time the best tiles of contractions, and other orders of loops, and print the fastest schedule.",
    run,
    (CommandOperand("program", "TEXT|FILE|-", "program"),),
    (
        Option(("--def",), "NAME", "Tune this definition of a file", "definition"),
        SHAPE,
        Option(("--target",), "TARGET", "The machine to tune for", tuple(MACHINES)),
        EMULATE,
        Option(("--time",), "SECONDS", "How long to search; default: 60"),
        Option(("--write",), None, "Write the schedule into the file, if it is faster"),
        JSON,
    ),
)
