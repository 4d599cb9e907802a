"""What the compiler writes of many programs is what it was."""

from __future__ import annotations

import pytest

from tests.replay import replay, subjects
from tests.replay.subjects import DEEP, Subject

LONG = ("definitions", "derivatives", "files", "projects", "random")
"""Groups of `replay.py` that are deep, too: `goldens` and `notations` have programs of their kinds."""

GROUPS = [
    pytest.param(name, marks=pytest.mark.deep if name.startswith(DEEP) or name in LONG else ())
    for name in subjects.group_names()
]


@pytest.mark.early
@pytest.mark.parametrize("group", GROUPS)
def test_the_same_texts(group: str, update: bool) -> None:
    path, fresh, says = replay.replayed(group)
    if update:
        path.write_text(fresh, "utf-8")
    elif says:
        help_line = "python tests/replay/replay.py --against CHECKOUT shows texts; pytest --update"
        pytest.fail(f"{says}\n\n{help_line}", pytrace=False)
    assert fresh == path.read_text("utf-8")


def test_every_kind_of_program_is_there() -> None:
    quick = subjects.subjects()
    assert 400 <= len(quick)
    assert {each.kind for each in quick} == {*subjects.KINDS}
    assert all(Subject.read(each.line()) == each for each in quick)


def test_hashes_are_read_as_they_are_written() -> None:
    rows = [{"graph": "000001", "c/host": "000002"}, {"graph": "000003"}] * 20
    assert replay.read(replay.written(rows), len(rows)) == rows


def test_a_difference_is_told_from_where_on() -> None:
    before = [{"graph": "1", "c/lanes": "2", "c/host": "3"}] * 3
    now = [before[0], {**before[0], "c/lanes": "4", "c/host": "5"}, {"graph": "1", "c/host": "3"}]
    assert replay.report(["one", "two", "three"], before, now).splitlines() == [
        "2 of 3 programs differ; where they begin to:",
        "  c/lanes: 2",
        "program 2, from c/lanes on: two",
        "program 3, from c/lanes on: three",
    ]


def test_another_checkout(capsys: pytest.CaptureFixture[str]) -> None:
    lines = subjects.lines_of("files")[:2]
    assert replay.against(replay.ROOT, lines) == 0
    assert "2 programs, and nothing differs" in capsys.readouterr().out
    compared = replay._compared(lines[0], {"graph": "a\nb\n"}, {"graph": "a\nc\n"})
    assert [text for text in compared if text[0] in "+-"][3:] == ["-b", "+c"]
