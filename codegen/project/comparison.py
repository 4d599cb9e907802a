"""A scheduled program against what it means: the self-test of a project, compiled with sanitizers, and run.

The results it is compared with are those of the reference evaluator, which knows no schedules.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from ilang.codegen.compile.cache import no_folder
from ilang.codegen.compile.toolchain import build_test
from ilang.codegen.project.extents import extents_of
from ilang.codegen.project.render import render
from ilang.codegen.system.files import reason_of
from ilang.codegen.system.folders import temporary_folder
from ilang.codegen.targets.session import ExportedFunction
from ilang.core.diagnostic import DataError, InternalError
from ilang.core.dtype import BYTES
from ilang.core.ir.shaped import Shaped
from ilang.core.pipeline import lower
from ilang.core.record import replace

SECONDS = 120
"""A test that has not ended by then is taken to hang."""

NAME = "scheduled"

NO_MEMORY = (
    *("out of memory", "out-of-memory", "failed to allocate", "cannot allocate memory"),
    *("allocation-size-too-big", "reserveshadowmemory", "insufficient memory"),
)
"""By what the test itself, a sanitizer, the system and the loader say that memory has run out, in small letters."""


def compare(shaped: Shaped) -> tuple[int, bool]:
    """Run a program on data of several extents: small ones, each 0, all 1, and more than its tiles.

    Returns:
        How many extents these were, and whether it ran under sanitizers.

    Raises:
        InternalError: E9905 (a result is not that of the reference evaluator, or memory is misused).
        ScheduleError: E0320 to E0329.
        DataError: E0713 (there is too little memory to run it).
        ToolError: E09 (no compiler, or it fails).
    """
    renamed = replace(shaped, name=NAME)
    function = ExportedFunction(renamed, lower(renamed))
    runs = extents_of(function)[0]
    with _folder() as folder:
        files = render([function], "", NAME)
        for ending in (".h", "_support.h", ".c", "_test.c"):
            name = f"{NAME}{ending}"
            (folder / name).write_text(files[name], "utf-8")
        sources = f"{NAME}.c", f"{NAME}_test.c"
        sanitized = build_test(folder, sources)
        trouble = _trouble(folder)
        if sanitized and _is_out_of_memory(trouble):  # sanitizers take several times as much
            sanitized = build_test(folder, sources, sanitize=False)
            trouble = _trouble(folder)
    if _is_out_of_memory(trouble):
        raise _no_memory(function, runs, shaped.name, trouble)
    if trouble:
        raise InternalError(
            "E9905",
            f"{shaped.name}, scheduled, does not give what it means: {trouble}",
            help="this is a bug in i: run the program without the schedule, and report it",
        )
    return len(runs), sanitized


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A temporary folder to compile and run in. Raises ToolError E0907."""
    try:
        with temporary_folder() as folder:
            yield folder
    except OSError as error:
        raise no_folder(reason_of(error)) from None


def _is_out_of_memory(trouble: str) -> bool:
    return any(words in trouble.lower() for words in NO_MEMORY)


def _no_memory(
    function: ExportedFunction, runs: Sequence[tuple[int, ...]], name: str, trouble: str
) -> DataError:
    """The error for a test that memory was too little for, with the extents and bytes of its largest run."""
    shaped = function.shaped

    def needed(extents: Sequence[int]) -> int:
        return sum(
            function.count(value, extents) * BYTES[shaped.tensors[value].dtype]
            for value in (*shaped.inputs, *shaped.outputs)
        )

    extents = max(runs, key=needed, default=tuple(size.fixed or 0 for size in shaped.sizes))
    listed = function.arguments_text(extents)
    place = f"its arrays take {needed(extents):,} bytes{' at ' if listed else ''}{listed}"
    return DataError(
        "E0713",
        f"there is not enough memory to run {name}, scheduled: {place}, and its workspace comes on top ({trouble})",
        help="give the check more memory (`ulimit -v`), or fix smaller extents",
    )


def _trouble(folder: Path) -> str:
    """The failure that the test reports, in its words; empty if there is none."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    try:
        done = subprocess.run(
            [str(folder / "test")],
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {SECONDS} seconds"
    except OSError as error:
        return f"it cannot be started: {reason_of(error)}"
    if done.returncode == 0:
        return ""
    if done.returncode in (-signal.SIGKILL, -signal.SIGBUS):
        return f"out of memory: ended by {signal.Signals(-done.returncode).name}"
    lines = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
    wrong = [line for line in lines if _is_out_of_memory(line)]
    wrong += [line for line in lines if "ERROR" in line or "runtime error" in line]
    wrong += [line for line in lines if ", expected " in line or "wrote" in line]
    return (wrong or lines or [f"exit status {done.returncode}"])[0].strip()
