"""Schedules of a program, timed beside the chosen one: each in a process of its own, which may crash or hang.

A process runs both programs on the same arrays, compares their results, and times them in turn; ``main`` is what it
runs. Arrays are positive, so that no sum cancels and results differ by rounding of the largest at most.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from ilang.codegen.call.target import DEVICES
from ilang.codegen.components.component import Component
from ilang.codegen.components.scheduled_text import Words
from ilang.core.diagnostic import Error
from ilang.core.dtype import NUMPY_NAMES
from ilang.core.ir.graph import UNNAMED
from ilang.core.source import Source

if TYPE_CHECKING:
    import numpy as np

Times = tuple[list[float], list[float]]
"""Seconds of the chosen schedule, and of another one."""

LIMIT = 60.0
"""Seconds after which a process is taken to hang."""
LEAST = 7
"""Times that are taken of each schedule at least."""
OF_DEVICE = 10
"""Calls of a device that are waited for together, so that the wait does not count."""
TOLERANCE = 2e-5
"""By which results of two schedules may differ, relative to the largest: each is within 1e-5 of the exact sums."""


def component(name: str, text: str, definition: str) -> Component:
    """The program of a text, or a definition of it. Raises: Error."""
    from ilang.codegen.components.component import from_text
    from ilang.codegen.components.library import library
    from ilang.core.notation.files.pieces import parse_with_pieces

    if definition in ("", UNNAMED):
        return from_text(text, name)
    return library(parse_with_pieces(Source(name, text)))[definition]


def timed(task: Mapping[str, Any], seconds: float) -> Times | str:
    """The times of two programs, or what is wrong with the second: it is refused, crashes, hangs, or gives others.

    Args:
        task: ``name`` of the file, ``definition``, ``target``, both ``texts`` and the ``shapes`` of the inputs.
        seconds: for the measurement itself.
    """
    answer = _asked({**task, "seconds": seconds})
    return answer if isinstance(answer, str) else (answer[0], answer[1])


def compiled_ahead(task: Mapping[str, Any], texts: Iterator[str]) -> Iterator[str]:
    """Some texts, each once it is compiled: as many at a time as there are cores.

    A text that does not compile is given as well, and is refused where it is timed. A compiler for a GPU takes seconds;
    one for C takes less than a measurement, which others would disturb.
    """
    if task["target"] == "c":
        yield from texts
        return
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        begun: deque[tuple[str, Future[Any]]] = deque()
        try:
            while len(begun) <= cores and (text := next(texts, None)) is not None:
                begun.append((text, pool.submit(_asked, {**task, "texts": (text,)})))
            while begun:
                text, done = begun.popleft()
                done.result()
                yield text
                if (other := next(texts, None)) is not None:
                    begun.append((other, pool.submit(_asked, {**task, "texts": (other,)})))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _asked(task: Mapping[str, Any]) -> Any:
    """The answer of a process of its own to a task, or what is wrong."""
    command = [sys.executable, "-m", "ilang.codegen.components.tuning"]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(task),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "it takes too long"
    if done.returncode:
        return f"its process ended with status {done.returncode}"
    return json.loads(done.stdout)


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
    """The times of both programs of a task, or what is wrong with the second; one program is compiled, and not run."""
    import numpy as np

    target, wait = task["target"], _nothing
    programs = [component(task["name"], text, task["definition"]) for text in task["texts"]]
    shapes = [tuple(shape) for shape in task["shapes"]]
    arrays: list[Any] = _arrays(programs[0], shapes)
    if target in DEVICES:
        from ilang.codegen.device.offload import device_of

        device = device_of(target)
        if len(programs) == 1:
            programs[0].program.fitting(arrays)[0].on(device)
            return ""
        arrays, wait = [device.array(array) for array in arrays], device.wait
    calls = [partial(program, target=target) for program in programs]
    try:
        results = [_results(call(*arrays)) for call in calls]
    except Error as error:
        return error.message
    for first, second in zip(*(map(_on_host, each) for each in results), strict=True):
        if first.shape != second.shape or first.dtype != second.dtype:
            return "its results have other shapes"
        if first.size and not np.allclose(
            first, second, rtol=0, atol=TOLERANCE * float(np.abs(first).max()), equal_nan=True
        ):
            return "its results are others"
    rounds = [
        partial(call, *arrays, out=outs if 1 < len(outs) else outs[0])
        for call, outs in zip(calls, results, strict=True)
    ]
    return _rounds(rounds, wait, task["seconds"])


def _nothing() -> None:
    """Wait for nothing: a call of a processor has ended when it returns."""


def _results(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def _on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array


def _arrays(program: Component, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray[Any, Any]]:
    """Positive arrays of the types and shapes of a program."""
    import numpy as np

    numbers = np.random.default_rng(0)
    shaped = program.shaped(shapes)
    types = [shaped.tensors[value].dtype for value in shaped.inputs]
    return [
        (0.5 + numbers.random(shape)).astype(NUMPY_NAMES[dtype])
        for shape, dtype in zip(shapes, types, strict=True)
    ]


def _rounds(calls: Sequence[Callable[[], Any]], wait: Callable[[], None], seconds: float) -> Times:
    """The times of two calls in turn, each long enough for a clock; calls of a device are waited for together."""

    def timed(call: Callable[[], Any], repeats: int) -> float:
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        wait()
        return (time.perf_counter() - begin) / repeats

    timed(calls[1], 1)
    repeats = 1 + int(2e-4 / max(timed(calls[0], 1), 1e-7))
    if wait is not _nothing:
        repeats *= OF_DEVICE
    times: Times = ([], [])
    end = time.perf_counter() + seconds
    while len(times[0]) < LEAST or time.perf_counter() < end:
        for call, each in zip(calls, times, strict=True):
            each.append(timed(call, repeats))
    return times


def candidates(
    program: Component, shapes: Sequence[tuple[int, ...]], target: str = "c"
) -> Iterator[Words]:
    """The other schedules of a program that prices compared, the best one by its price first."""
    from ilang.core.machine import CPU, GPU
    from ilang.core.pipeline import VIEWS, steps_below
    from ilang.core.schedule.compared import other_schedules
    from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule

    machine = GPU if target in DEVICES else CPU
    steps = steps_below(program.shaped(shapes), machine)
    viewed = next(value for step, value in steps if step.stage == VIEWS.stage)
    yield from other_schedules(shaped_to_schedule(viewed, machine))


if __name__ == "__main__":
    sys.exit(main())
