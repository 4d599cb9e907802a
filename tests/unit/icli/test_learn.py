"""The lessons: their solutions are right, and other answers are not; at a keyboard, and from a pipe."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ilang.icli.learning import LessonSession
from ilang.icli.lessons import Lesson, lessons
from ilang.icli.replies import Reply
from tests.unit.icli.front import i
from tests.unit.icli.test_terminal import Terminal

LESSONS = {lesson.key[3:]: (number, lesson) for number, lesson in enumerate(lessons(), 1)}
WRONG = {
    "elements": ["i+i~i", "+i~.", "1", "I", "(i-i~i | 2)", "i-i~i >> -i~i", "i-i"],
    "reductions": [">ij~i", "+ij~j", "<ij~j", ">ij~.", "ij~ij"],
    "products": ["ik*kj~ijk >> +ijk~ij", "ik*jk~ijk >> +ijk~ji", "ik*jk~ijk"],
    "combinators": ["(I & +ij~i) >> ij-i~ij", "(I & >ij~j) >> ij-j~ij", ">ij~i"],
    "names": ["centered(x[m,n]) = (I & +ij~i) >> ij-i~ij", "centered(x[m,n]) = ij~ij", "other(x) = -ij~ij"],
    "kernels": ['elementwise("f: x -> max(x)")', ">i~i", 'elementwise("f: x -> 0.1 * x")'],
    "einsum": ['einsum("nik,nkj->ij")', 'einsum("ik,kj->ij")', 'einsum("nik,nkj->nji")'],
    "einx": ['einx.sum("a (b [2])")', 'einx.mean("a ([2] b)")', 'einx.mean("a [b]")'],
    "gradients": [
        'cd slope(x, t) { d = "w" 0.5 *. x - t; loss = sum(d *. d); backprop(loss); return loss }',
        'cd slope(x, t) { d = "w" 0.5 *. x + t; loss = sum(d *. d); backprop(loss); return w.grad }',
        'op slope(x, t) = "w" 0.5 *. x - t',
    ],
    "schedules": ["+ij~i", "+ij~i | j:4 | j i j'", "+ij~i | j:2 | i j j'", "+ij~j | j:4 | i j j'"],
    "build": ["i check sums.i", "i build sums.i -o elsewhere", "sums(x[m,n]) = +ij~i", "i run sums.i"],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def alone(lesson: tuple[int, Lesson]) -> LessonSession:
    return LessonSession([lesson])


def told(reply: Reply) -> str:
    return "\n".join(map(str, reply.parts))


def test_every_lesson_has_wrong_answers() -> None:
    assert WRONG.keys() == LESSONS.keys()
    assert 10 <= len(LESSONS)
    assert all(lesson.hints and lesson.task for _, lesson in LESSONS.values())


@pytest.mark.parametrize("name", LESSONS)
def test_the_solution_is_right(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    number, lesson = LESSONS[name]
    session = alone(LESSONS[name])
    with session.folder:
        shown = told(session.feed("solution"))
        assert not session.solved
        text = "\n".join(lesson.solution)
        reply = Reply(())
        for entry in [text] if "{" in text else lesson.solution:
            reply = session.feed(entry)
        assert told(reply) == f"Right. Lesson {number} is done."
        assert reply.leaves
    assert shown == text
    capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "answer"), [(name, answer) for name in WRONG for answer in WRONG[name]]
)
def test_another_answer_is_not(name: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    session = alone(LESSONS[name])
    with session.folder:
        reply = session.feed(answer)
        assert not session.solved
        assert not reply.leaves
        assert "internal error" not in told(reply)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("elements", "(I | -i~i) >> i+i~i"),
        ("elements", "i-i~i x y"),
        ("elements", "minus(x, y) = (i-i~i)(x, y)"),
        ("einsum", "nik*nkj~nijk >> +nijk~nij"),
        ("names", "centered(x[m,n]) = { d = (ij/:j~ij)(x); (ij-i~ij)(x, (+ij~i)(d)) }"),
    ],
)
def test_any_program_that_gives_the_result_is_right(name: str, answer: str) -> None:
    session = alone(LESSONS[name])
    with session.folder:
        assert session.feed(answer).leaves


def test_words_of_lessons() -> None:
    session = LessonSession([LESSONS["reductions"], LESSONS["products"]])
    with session.folder:
        assert "`hint` again says more" in told(session.feed("hint"))
        assert "`>ij~`" in told(session.feed("?"))
        assert "Task  Find the largest number of each column" in told(session.feed("task"))
        assert "j goes along" not in told(session.feed("+ij~i x"))
        assert "Lesson 3  A matrix product" in told(session.feed("skip"))
        assert "y" in session.arrays
        assert session.feed("skip").leaves


def test_from_a_pipe(tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path)}
    ran = i("learn", "3", input="ik*kj~ijk >> +ijk~ij\nhint\nik*jk~ijk >> +ijk~ij\n", env=state)
    assert ran.returncode == 0
    assert ran.stdout.startswith("Lesson 3  A matrix product\n")
    assert "Both inputs have k" in ran.stdout
    assert ran.stdout.endswith("Right. Lesson 3 is done.\n")
    assert "ik*kj" not in ran.stderr or "error[" in ran.stderr
    assert i("learn", "2", input="+ij~i\n", env=state).returncode == 1
    assert i("learn", "2", input="", env=state).returncode == 0
    listed = i("learn", "--list", env=state).stdout.splitlines()
    assert listed[2] == "  3  done  A matrix product"
    assert listed[0] == "  1        Element by element"
    ran = i("learn", input="i-i~i\n>ij~j\nskip\nskip\n", env=state)
    assert ran.returncode == 0
    assert "Lesson 4  Programs out of programs" in ran.stdout
    assert "Lesson 5  Names and shapes" in ran.stdout
    assert i("learn", "--list", env=state).stdout.count("done") == 3
    ran = i("learn", "99", env=state)
    assert ran.returncode == 2
    assert "error[E0825]: there is no lesson 99\nhelp: a number from 1 to 11" in ran.stderr


def test_all_lessons_in_a_row(tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path)}
    answers = "".join("\n".join(lesson.solution) + "\n" for _, lesson in LESSONS.values())
    ran = i("learn", input=answers, env=state)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("Right. ") == len(LESSONS)
    assert "All lessons are done" in i("learn", env=state).stdout


def test_progress_that_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    state = {"XDG_STATE_HOME": str(tmp_path / "file")}
    assert i("learn", "1", input="i-i~i\n", env=state).returncode == 0
    assert "done" not in i("learn", "--list", env=state).stdout


def test_at_the_keyboard(tmp_path: Path) -> None:
    terminal = Terminal("learn", "1", home=tmp_path, columns=60)
    terminal.until(b"Task  Subtract y from x")
    terminal.prompt()
    terminal.send(b"i+i~i\r")
    terminal.until(b"and the task asks for")
    terminal.prompt()
    terminal.send(b"hint\r")
    terminal.until(b"stands between the letters")
    terminal.prompt()
    terminal.send(b"i-i~i")
    terminal.until("out[i] = in0[i] − in1[i]".encode())
    terminal.send(b"\r")
    terminal.until(b"Right. Lesson 1 is done.")
    assert terminal.status() == 0
    os.close(terminal.end)
    assert (tmp_path / ".local/state/i/lessons").read_text("utf-8") == "01-elements\n"
