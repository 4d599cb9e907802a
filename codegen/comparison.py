"""A scheduled program against what it means: the self-test of a project, compiled with sanitizers, and run.

The results it is compared with are those of the reference evaluator, which knows no schedules.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from ilang.codegen.project import render
from ilang.codegen.selftest import Function, extents_of
from ilang.codegen.toolchain import build_program
from ilang.core.diagnostic import InternalError
from ilang.core.ir.shaped import Shaped
from ilang.core.pipeline import lower
from ilang.core.record import record, replace

SECONDS = 120
"""A test that has not ended by then is taken to hang."""

NAME = "scheduled"


@record
class Comparison:
    """At how many sets of extents a program was run, and whether under sanitizers."""

    runs: int
    sanitized: bool


def compare(shaped: Shaped) -> Comparison:
    """Run a program on data of several extents: small ones, each 0, all 1, and more than its tiles.

    Raises:
        InternalError: E9905 (a result is not that of the reference evaluator, or memory is misused).
        ScheduleError: E0320 to E0329.
        ToolError: E09 (no compiler, or it fails).
    """
    renamed = replace(shaped, name=NAME)
    function = Function(renamed, lower(renamed))
    runs = extents_of(function)[0]
    with tempfile.TemporaryDirectory(prefix="ilang-check-") as where:
        folder = Path(where)
        files = render([function], "", NAME)
        for name in (f"{NAME}.h", f"{NAME}.c", f"{NAME}_test.c"):
            (folder / name).write_text(files[name], "utf-8")
        sanitized = build_program(folder, (f"{NAME}.c", f"{NAME}_test.c"), "test")
        trouble = _trouble(folder)
    if trouble:
        raise InternalError(
            "E9905",
            f"{shaped.name}, scheduled, does not give what it means: {trouble}",
            help="the schedule is legal and the code is wrong; run it without the schedule, and report it",
        )
    return Comparison(len(runs), sanitized)


def _trouble(folder: Path) -> str:
    """What the test found wrong, in its words; nothing if all is right."""
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
    if done.returncode == 0:
        return ""
    said = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
    wrong = [line for line in said if "ERROR" in line or "runtime error" in line]
    wrong += [line for line in said if ", expected " in line or "wrote" in line]
    return (wrong or said or [f"exit status {done.returncode}"])[0].strip()
