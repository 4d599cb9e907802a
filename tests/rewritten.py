"""Files that a test compares with what the program does now, and rewrites on `--update`."""

import difflib
from pathlib import Path

import pytest


def settle(path: Path, fresh: str, update: bool) -> None:
    """Fail with a diff if a file no longer reads as it should, or make it so."""
    written = path.read_text("utf-8") if path.exists() else ""
    if fresh == written:
        return
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(fresh, "utf-8")
        return
    diff = difflib.unified_diff(
        written.splitlines(), fresh.splitlines(), "written", "now", lineterm="", n=4
    )
    pytest.fail("\n".join([*diff, "", "rewrite with `pytest --update`"]), pytrace=False)
