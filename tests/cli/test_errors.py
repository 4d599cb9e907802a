"""Every code of ``icli/errors.md``: its bad example ends with it, its good example succeeds, the product raises it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "icli" / "errors.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (E\d{4}) · .+$", re.MULTILINE)
RAISED = re.compile(r'"(E\d{4})"')
BUGS = {"E9900", "E9901", "E9902", "E9903", "E9904", "E9905", "E9906", "E9910"}
"""Our own bugs: no input leads there."""


def sections() -> dict[str, str]:
    parts = SECTION.split(PAGES)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


STEP = re.compile(
    r"^```i (?P<name>\S+)\n(?P<file>.*?)^```$|^(?P<kind>bad|good): (?P<line>[^\n]+)$"
    r"|^```python\n# (?P<python>bad|good)\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
"""A section in order: a file, a command line, a piece of Python."""


def environment(folder: Path) -> dict[str, str]:
    """A PATH on which ``i`` is this product."""
    launcher = folder / ".bin" / "i"
    launcher.parent.mkdir(exist_ok=True)
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ilang "$@"\n', encoding="utf-8")
    launcher.chmod(0o755)
    return {**os.environ, "PATH": f"{launcher.parent}{os.pathsep}{os.environ['PATH']}"}


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=180,
        stdin=subprocess.DEVNULL,
        env=environment(folder),
        check=False,
    )


@pytest.mark.parametrize("code", sorted(set(sections()) - BUGS))
def test_examples_of_a_code(code: str, tmp_path: Path) -> None:
    seen = set()
    for step in STEP.finditer(sections()[code]):
        if step["name"]:
            (tmp_path / step["name"]).write_text(step["file"], encoding="utf-8")
        elif step["kind"]:
            seen.add(step["kind"])
            command(step["line"], code if step["kind"] == "bad" else None, tmp_path)
        else:
            seen.add(step["python"])
            python(step["code"], code if step["python"] == "bad" else None, tmp_path)
    assert seen == {"bad", "good"}, "a section shows what is refused and what is not"


def command(line: str, code: str | None, folder: Path) -> None:
    done = run(["bash", "-c", line], folder)
    if code is None:
        assert done.returncode == 0, (line, done.stderr)
    else:
        assert f"error[{code}]" in done.stderr, (line, done.stderr)
        assert done.returncode in (1, 2, 3)


def python(block: str, code: str | None, folder: Path) -> None:
    if code is not None:
        block = f"from ilang import Error\ntry:\n{indented(block)}\nexcept Error as e:\n    print(e.code)\n"
    done = run([sys.executable, "-c", block], folder)
    assert done.returncode == 0, (block, done.stderr)
    assert code is None or done.stdout.split()[-1:] == [code], block


def indented(block: str) -> str:
    return "".join(f"    {line}\n" for line in block.splitlines())


def test_every_code_that_is_raised_has_a_section() -> None:
    raised = set()
    for folder in ("core", "codegen", "icli", "ilang"):
        for path in (ROOT / folder).rglob("*.py"):
            raised |= set(RAISED.findall(path.read_text(encoding="utf-8")))
    assert raised - BUGS == set(sections()) - BUGS


def test_sections_are_sorted() -> None:
    found = list(sections())
    assert found == sorted(found)
