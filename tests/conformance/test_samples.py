"""Every lesson in `samples/` gives on every target what its comments say.

`# i run FILE ARRAY...` (or `# i explain FILE`) comes first and works as it stands; `# in NAME = ARRAY` gives the
inputs in order, `# out = ARRAY` or `# out N = ARRAY` what comes out. Arrays are written as on the command line.
"""

import re
import shlex
from pathlib import Path

import pytest

from ilang.core.notation.files.layout import format_module
from ilang.core.source import Source
from ilang.icli.literal import split_dtype
from ilang.icli.main import main

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "samples" / "README.md"
LESSONS = sorted((ROOT / "samples").glob("[0-9]*.i"))
TARGETS = ("numpy", "c")
LINES = 25
INPUT = re.compile(r"^# in \w+ = (.+)$", re.MULTILINE)

each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)


@pytest.mark.parametrize("target", TARGETS)
@each_lesson
def test_gives_what_it_says(
    lesson: Path, target: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    path = str(lesson.relative_to(ROOT))
    assert main(["test", path, "--target", target]) == 0
    assert capfd.readouterr().out.startswith(f"{path} ok: ")


@each_lesson
def test_first_comment_is_a_command_that_works(
    lesson: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    text = lesson.read_text("utf-8")
    program, command, path, *arrays = shlex.split(text.splitlines()[0].removeprefix("# "))
    assert program == "i"
    assert (ROOT / path).samefile(lesson)
    assert main([command, path, *arrays]) == 0
    shown = capfd.readouterr()
    assert shown.out
    assert not shown.err
    if command == "run":
        written = [split_dtype(word)[1] for word in INPUT.findall(text)]
        assert arrays == written


def test_commands_of_the_table_work(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    commands = re.findall(r"\| `i (.+)` \|$", TABLE.read_text("utf-8"), re.MULTILINE)
    assert len(commands) == len(LESSONS)
    for command in commands:
        assert main(shlex.split(command)) == 0, command
    assert not capfd.readouterr().err


@each_lesson
def test_is_short_and_tidy(lesson: Path) -> None:
    text = lesson.read_text("utf-8")
    assert len(text.splitlines()) <= LINES
    assert format_module(Source(lesson.name, text)) == text


def test_table_lists_every_lesson() -> None:
    listed = re.findall(r"\]\((\d\w+\.i)\)", TABLE.read_text("utf-8"))
    assert listed == [lesson.name for lesson in LESSONS]
