"""The targets of the Makefile, and what the demo says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("command", [["make"], ["make", "help"]])
def test_make_lists_every_target(command: list[str]) -> None:
    done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    listed = re.findall(r"^make ([a-z-]+) ", done.stdout, re.MULTILINE)
    assert sorted(listed) == sorted(phony.split())


def test_the_demo_times_what_it_builds() -> None:
    done = subprocess.run(
        [sys.executable, "samples/digits/demo.py"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    *_, result = done.stdout.partition("5  The result")
    assert "98.00%, 441 of 450" in result
    assert re.search(r"C +[0-9.]+ ms for the 450 images: NumPy / C = ", result)
