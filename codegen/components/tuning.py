"""Schedules of a program, timed beside the chosen one: each in a process of its own, which may crash or hang.

A process runs both programs on the same arrays, compares their results, and times them in turn; ``main`` is what it
runs. Arrays are positive, so that no sum cancels and results differ by rounding of the largest at most.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from ilang.codegen.components.component import Component
from ilang.core.diagnostic import Error
from ilang.core.source import Source, Span

if TYPE_CHECKING:
    import numpy as np

Words = Sequence[tuple[Span, str]]
"""The schedules that stand after expressions, each with its expression."""
Times = tuple[list[float], list[float]]
"""Seconds of the chosen schedule, and of another one."""

LIMIT = 60.0
"""Seconds after which a process is taken to hang."""
LEAST = 7
"""Times that are taken of each schedule at least."""
TOLERANCE = 2e-5
"""By which results of two schedules may differ, relative to the largest: each is within 1e-5 of the exact sums."""


def written(source: Source, words: Words) -> str | None:
    """The text of a program with schedules after its expressions; None where an expression stands in another file."""
    text = source.text
    if any(span.source.name != source.name for span, _ in words):
        return None
    for span, schedule in sorted(words, key=lambda word: -word[0].end):
        text = f"{text[: span.end]} {schedule}{text[span.end :]}"
    return text


def component(name: str, text: str, definition: str) -> Component:
    """The program of a text, or a definition of it. Raises: Error."""
    from ilang.codegen.components.component import from_text
    from ilang.codegen.components.library import library
    from ilang.core.notation.files.module import parse_module

    if not definition:
        return from_text(text)
    return library(parse_module(Source(name, text)))[definition]


def timed(task: Mapping[str, Any], seconds: float) -> Times | str:
    """The times of two programs, or what is wrong with the second: it is refused, crashes, hangs, or gives others.

    Args:
        task: ``name`` of the file, ``definition``, both ``texts`` and the ``shapes`` of the inputs.
        seconds: for the measurement itself.
    """
    command = [sys.executable, "-m", "ilang.codegen.components.tuning"]
    given = json.dumps({**task, "seconds": seconds})
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return "it takes too long"
    if done.returncode:
        return f"its process ended with status {done.returncode}"
    answer = json.loads(done.stdout)
    return answer if isinstance(answer, str) else (answer[0], answer[1])


def gain(times: Times) -> float:
    """The speed of the second schedule relative to the first, by medians."""
    return median(times[0]) / median(times[1])


def spread(times: Times) -> float:
    """The larger of the quartile ranges of both, relative to the median."""
    return max(
        (each[3 * len(each) // 4] - each[len(each) // 4]) / median(each)
        for each in map(sorted, times)
    )


def is_faster(times: Times) -> bool:
    """Whether the second schedule is faster by more than the spread."""
    return 1 + spread(times) < gain(times)


def main() -> int:
    """Time the task on standard input; the answer is JSON on standard output."""
    task = json.loads(sys.stdin.read())
    sys.stdout.write(json.dumps(_answer(task)) + "\n")
    return 0


def _answer(task: Mapping[str, Any]) -> Times | str:
    """The times of both programs of a task, or what is wrong with the second."""
    import numpy as np

    programs = [component(task["name"], text, task["definition"]) for text in task["texts"]]
    shapes = [tuple(shape) for shape in task["shapes"]]
    arrays = _arrays(programs[0], shapes)
    try:
        results = [_run(program, arrays) for program in programs]
    except Error as error:
        return error.message
    for first, second in zip(*results, strict=True):
        if first.shape != second.shape or first.dtype != second.dtype:
            return "its results have other shapes"
        if first.size and not np.allclose(
            first, second, rtol=0, atol=TOLERANCE * float(np.abs(first).max()), equal_nan=True
        ):
            return "its results are others"
    calls = [_call(program, arrays, outs) for program, outs in zip(programs, results, strict=True)]
    return _rounds(calls, task["seconds"])


def _arrays(program: Component, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray[Any, Any]]:
    """Positive arrays of the types and shapes of a program."""
    import numpy as np

    numbers = np.random.default_rng(0)
    shaped = program.shaped(shapes)
    types = [shaped.tensors[value].dtype for value in shaped.inputs]
    names = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "bool": "bool"}
    return [
        (0.5 + numbers.random(shape)).astype(names[dtype])
        for shape, dtype in zip(shapes, types, strict=True)
    ]


def _run(program: Component, arrays: Sequence[Any]) -> tuple[Any, ...]:
    answer = program(*arrays)
    return answer if isinstance(answer, tuple) else (answer,)


def _call(program: Component, arrays: Sequence[Any], outs: tuple[Any, ...]) -> Callable[[], Any]:
    out = outs if 1 < len(outs) else outs[0]
    return lambda: program(*arrays, out=out)


def _rounds(calls: Sequence[Callable[[], Any]], seconds: float) -> Times:
    """The times of two calls in turn, each long enough for a clock."""
    start = time.perf_counter()
    calls[0]()
    repeats = 1 + int(2e-4 / max(time.perf_counter() - start, 1e-7))
    times: Times = ([], [])
    end = start + seconds
    while len(times[0]) < LEAST or time.perf_counter() < end:
        for call, each in zip(calls, times, strict=True):
            begin = time.perf_counter()
            for _ in range(repeats):
                call()
            each.append((time.perf_counter() - begin) / repeats)
    return times


def candidates(program: Component, shapes: Sequence[tuple[int, ...]]) -> Iterator[Words]:
    """The other schedules of a program that prices compared, the best one by its price first."""
    from ilang.core.machine import CPU
    from ilang.core.pipeline import VIEWS, steps_below
    from ilang.core.schedule.compared import other_schedules
    from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule

    steps = steps_below(program.shaped(shapes), CPU)
    viewed = next(value for step, value in steps if step.stage == VIEWS.stage)
    yield from other_schedules(shaped_to_schedule(viewed))


if __name__ == "__main__":
    sys.exit(main())
