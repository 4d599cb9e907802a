"""Every code of ``icli/errors.md``: its bad example ends with it, its good example succeeds, the product raises it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "icli" / "errors.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (E\d{4}) · .+$", re.MULTILINE)
RAISED = re.compile(r'"(E\d{4})"')
BUGS = {"E9900", "E9901", "E9902", "E9903", "E9904", "E9905"}
"""Our own bugs: no input leads there."""


def sections() -> dict[str, str]:
    parts = SECTION.split(PAGES)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def examples(text: str, kind: str) -> list[str]:
    return re.findall(rf"^{kind}: (.+)$", text, re.MULTILINE)


def python_examples(text: str, kind: str) -> list[str]:
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return [block for block in blocks if block.startswith(f"# {kind}\n")]


def files(text: str) -> dict[str, str]:
    return dict(re.findall(r"```i (\S+)\n(.*?)```", text, re.DOTALL))


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False
    )


def prepared(text: str, folder: Path) -> Path:
    for name, content in files(text).items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


@pytest.mark.parametrize("code", sorted(set(sections()) - BUGS))
def test_examples_of_a_code(code: str, tmp_path: Path) -> None:
    text = sections()[code]
    folder = prepared(text, tmp_path)
    bad, good = examples(text, "bad"), examples(text, "good")
    bad_code, good_code = python_examples(text, "bad"), python_examples(text, "good")
    assert bad or bad_code, "a section shows what is refused"
    assert good or good_code, "and what is not"
    for line in bad:
        done = run([sys.executable, "-m", "ilang", *shlex.split(line)[1:]], folder)
        assert f"error[{code}]" in done.stderr, (line, done.stderr)
        assert done.returncode in (1, 2, 3)
    for line in good:
        done = run([sys.executable, "-m", "ilang", *shlex.split(line)[1:]], folder)
        assert done.returncode == 0, (line, done.stderr)
    for block in bad_code:
        wrapped = f"from ilang import Error\ntry:\n{indented(block)}\nexcept Error as e:\n    print(e.code)\n"
        assert run([sys.executable, "-c", wrapped], folder).stdout.split()[-1:] == [code], block
    for block in good_code:
        done = run([sys.executable, "-c", block], folder)
        assert done.returncode == 0, (block, done.stderr)


def indented(block: str) -> str:
    return "".join(f"    {line}\n" for line in block.splitlines())


def test_every_code_that_is_raised_has_a_section() -> None:
    raised = set()
    for folder in ("core", "codegen", "icli"):
        for path in (ROOT / folder).rglob("*.py"):
            raised |= set(RAISED.findall(path.read_text(encoding="utf-8")))
    assert raised - BUGS == set(sections()) - BUGS


def test_sections_are_sorted() -> None:
    found = list(sections())
    assert found == sorted(found)
