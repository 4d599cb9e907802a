"""Every lesson in `samples/` gives on every target what its comments say.

`# i run FILE ARRAY...` (or `# i explain FILE`) comes first and works as it stands; `# in NAME = ARRAY` gives the
inputs in order, `# out = ARRAY` or `# out N = ARRAY` what comes out. Arrays are written as on the command line.
"""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from ilang import load
from ilang.core.notation.layout import format_module
from ilang.core.notation.module import exports, parse_module
from ilang.core.source import Source
from ilang.icli.arrays import array_of
from ilang.icli.literal import split_dtype
from ilang.icli.main import main

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "samples" / "README.md"
LESSONS = sorted((ROOT / "samples").glob("[0-9]*.i"))
TARGETS = ("numpy", "c")
TOLERANCE = 1e-5  # relative
LINES = 25
INPUT = re.compile(r"^# in \w+ = (.+)$", re.MULTILINE)
OUTPUT = re.compile(r"^# out(?: \d+)? = (.+)$", re.MULTILINE)

each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)


def exported(lesson: Path) -> str:
    """The name of the one definition that nothing else in the file uses."""
    (definition,) = exports(parse_module(Source(lesson.name, lesson.read_text("utf-8"))))
    return definition.name


@pytest.mark.parametrize("target", TARGETS)
@each_lesson
def test_gives_what_it_says(lesson: Path, target: str) -> None:
    text = lesson.read_text("utf-8")
    inputs = [array_of(word, None, n) for n, word in enumerate(INPUT.findall(text))]
    expected = [array_of(word) for word in OUTPUT.findall(text)]
    assert expected, "a lesson says what comes out"
    result = load(lesson)[exported(lesson)](*inputs, target=target)
    results = result if isinstance(result, tuple) else (result,)
    assert len(results) == len(expected)
    for got, wanted in zip(results, expected, strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=TOLERANCE)
        assert got.shape == wanted.shape


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
