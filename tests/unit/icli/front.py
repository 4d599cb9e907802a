"""The command line as its tests run it: a process of its own."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests import forked

ENTRY = "import sys; from ilang.icli.main import main; sys.exit(main())"
ROOT = Path(__file__).resolve().parents[3]
DROPPED = ("NO_COLOR", "FORCE_COLOR", "I_DEBUG", "PYTHONIOENCODING", "COLUMNS")


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in DROPPED}
    return kept | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "TERM": "dumb"} | more


def i(*tokens: str | bytes, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run one command; ``env`` adds variables, everything else goes to ``subprocess.run``.

    Where nothing is asked of how a process starts, or of its streams, it is a fork.
    """
    started = any(name.startswith(("PYTHON", "LC_")) for name in more.get("env", {}))
    if forked.SERVES and not started and more.keys() <= {"env", "cwd", "input"}:
        variables = environment(**more.get("env", {}))
        return forked.run(tokens, variables, more.get("cwd"), more.get("input") or "")
    options: dict[str, Any] = {
        "capture_output": True,
        "encoding": "utf-8",
        "errors": "backslashreplace",
        "timeout": 300,
    }
    options |= more | {"env": environment(**more.pop("env", {}))}
    if options.get("input") is None:
        options.setdefault("stdin", subprocess.DEVNULL)
    if "stdout" in options or "stderr" in options:
        del options["capture_output"]
    return subprocess.run([sys.executable, "-c", ENTRY, *tokens], check=False, **options)


def wait_until_computing(pid: int) -> None:
    """Until a process has computed for a second: longer than reading, compiling and the like take."""
    start = _computed(pid)
    while _computed(pid) - start < 1:
        time.sleep(0.02)


def _computed(pid: int) -> float:
    """The processor time of a process, but not that of its children, in seconds."""
    words = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
