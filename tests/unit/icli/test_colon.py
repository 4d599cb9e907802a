"""Commands of the REPL that time, draw, save, edit and undo."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ilang.codegen.components import tuning
from ilang.codegen.system.npy import Array
from ilang.core.diagnostic import Error
from ilang.core.explain.explanation import Cost
from ilang.icli import timing
from ilang.icli.plot import plot_svg, plot_text
from ilang.icli.session import ReplSession
from ilang.icli.timing import duration, timing_text


@pytest.fixture
def session() -> ReplSession:
    session = ReplSession()
    for line in ("x = [[1, 2], [3, 4]]", "y = [0, 1, 4]", "sums = +ij~i"):
        session.feed(line)
    return session


def said(session: ReplSession, line: str) -> str:
    reply = session.feed(line)
    assert not reply.failed, reply.parts
    return "\n".join(str(part) for part in reply.parts)


def code(session: ReplSession, line: str) -> str:
    (part,) = session.feed(line).parts
    assert isinstance(part, Error)
    assert part.help
    return part.code


def test_tune(session: ReplSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedules of definitions are timed at the shapes of the arrays: here each is twice as fast as what is chosen."""
    tasks = list[dict[str, Any]]()

    def timed(task: dict[str, Any], _: float) -> tuning.Times:
        tasks.append(task)
        return [2.0] * 4, [1.0] * 4

    monkeypatch.setattr(tuning, "timed", timed)
    monkeypatch.setattr(tuning, "compiled_ahead", lambda _, texts: texts)
    session.feed("tuned = ik*kj~ijk >> +ijk~ij")
    session.feed("w = rand:40x30")
    session.feed("v = rand:30x50")
    assert "2.00 times as fast as the chosen schedule" in said(session, ":tune tuned w v")
    assert tasks[0]["shapes"] == [(40, 30), (30, 50)]
    assert tasks[0]["texts"][0].endswith("tuned2 = tuned\n")


@pytest.mark.usefixtures("compiled_quickly")
def test_what_is_timed_trains_nothing() -> None:
    session = ReplSession()
    update = "backprop(loss); for p in params(loss) { p =- 0.01 *. p.grad }; return loss"
    square = "d = net(x); loss = d *. d ++ '...|... => 0'".replace("'", '"')
    for line in (
        "x = [[1,2],[3,4]]",
        'op net(x) = "w" * x + "b" 1',
        f"cd step(x) {{ {square}; {update} }}",
        "step x",
        "before = net x",
        ":time step x",
        "after = net x",
    ):
        assert not session.feed(line).failed
    np.testing.assert_array_equal(session.arrays["before"], session.arrays["after"])


@pytest.mark.parametrize("line", [":time sums x", ":time +ij~i x", ":t -ij~ij x", ":time twice x"])
def test_time_says_how_much_of_the_machine(line: str, session: ReplSession) -> None:
    session.feed("op twice(x) = 2 *. x")
    speed = r"[\d.e+]+ [kMGT]?(B/s|FLOP/s)"
    form = rf"[\d.e+]+ (ns|µs|ms|s), ({speed}, \d+ % of this machine, )?limited by .+\(best of \d+ calls?\)"
    assert re.fullmatch(form, said(session, line).replace("   ", " "))


def test_why_shows_prices(session: ReplSession) -> None:
    assert "schedules compared" in said(session, ":why sums rand:300x300")


def test_durations() -> None:
    assert [duration(each) for each in (2.5, 0.207, 3.14e-6, 5e-9)] == [
        "2.5 s",
        "207 ms",
        "3.14 µs",
        "5 ns",
    ]


def test_a_vector_is_drawn_as_a_line(session: ReplSession) -> None:
    lines = said(session, ":plot y").splitlines()
    assert lines[0] == "y  3  0 to 4"
    assert lines[1].endswith("█")
    assert len(lines) == 7


def test_a_matrix_is_drawn_as_a_heat_map(session: ReplSession) -> None:
    assert said(session, ":plot x").splitlines() == ["x  2×2  1 to 4", "  ░░", "▓▓██"]
    colored = plot_text("x", np.array([[0.0, np.nan]]), 80, colored=True)
    assert "\x1b[48;5;17m  \x1b[0m? " in colored.replace("\n", " ")


@pytest.mark.parametrize(
    ("line", "message", "advice"),
    [
        (":plot z", "there is no array named `z`", ":names lists all"),
        (
            ":plot sums",
            "`sums` is a definition, and :plot draws an array",
            "y = sums x, then :plot y",
        ),
        (":edit", ":edit needs a definition", ":edit sums"),
        (
            ":edit x",
            "`x` is an array, and :edit changes a definition",
            "bind it anew: x = [[1,2],[3,4]]",
        ),
        (":edit smus", "no definition is named smus", "did you mean sums?"),
        (":drop", ":drop needs a name", ":names lists all"),
        (":drop smus", "nothing is named smus", "did you mean :drop sums?"),
        (":whoos", "there is no command :whoos", "did you mean :whos?"),
        (":frob", "there is no command :frob", "there are :explain, :loops,"),
        (":time", ":time needs a program and its arrays", ":time +ij~i x"),
        (":time sums", ":time needs a program and its arrays", ":time sums x"),
        (
            ":undo x",
            "`x` is one too many: :undo takes nothing",
            "`:undo` takes back what the last line did",
        ),
        (
            ":names x y",
            "`x y` is one too many: :names takes nothing",
            "a name alone shows what it is",
        ),
        (":tune", ":tune needs a component and its arrays", ":tune +ij~i x"),
        (
            ":explain matmul x",
            "the program takes 2 arrays, and 1 array is given",
            "its inputs are ",
        ),
        (":loops +ij~i x x", "the program takes 1 array, and 2 arrays are given", "its input"),
        (":time +ij~i x x", "the program takes 1 array, and 2 arrays are given", "its input"),
        (":tune +ij~i x x", "the program takes 1 array, and 2 arrays are given", "its input"),
        (":tune sums", ":tune needs a component and its arrays", ":tune sums x"),
    ],
)
def test_refused_commands(line: str, message: str, advice: str, session: ReplSession) -> None:
    (part,) = session.feed(line).parts
    assert isinstance(part, Error)
    assert part.message == message
    assert part.help.startswith(advice)


def test_large_arrays_are_joined() -> None:
    lines = plot_text("x", np.random.default_rng(1).random((1000, 3000)), 60, False).splitlines()
    assert len(lines) == 25
    assert max(map(len, lines[1:])) <= 60
    stripes = np.tile(np.repeat([0.0, 1.0], 500), (48, 1))
    assert set(plot_text("x", stripes, 21, False).splitlines()[1:]) == {" " * 10 + "█" * 10}


@pytest.mark.parametrize(
    "array", [np.arange(5), np.eye(3), np.full((2, 2), np.nan), np.ones((300, 400)), np.ones(1)]
)
def test_pictures_are_whole(array: Array) -> None:
    ElementTree.fromstring(plot_svg("x", array))
    assert plot_text("x", array, 80, False)


def test_a_picture_goes_into_a_file(session: ReplSession, tmp_path: Path) -> None:
    place = tmp_path / "x.svg"
    assert said(session, f":plot x {place}") == f"x drawn in {place}"
    assert said(session, f":plot y {place}") == f"y drawn in {place}"
    assert "position" in place.read_text("utf-8")
    place.write_text("mine", "utf-8")
    assert code(session, f":plot x {place}") == "E0768"
    assert code(session, f":plot x {tmp_path}/x.png") == "E0812"
    assert code(session, ":plot") == "E0819"
    assert code(session, ":plot sums") == "E0820"
    assert code(session, ":plot rand:2x2x2") == "E0779"
    session.feed("sums x")
    assert said(session, ":plot").startswith("_  2  3 to 7")


def test_arrays_are_saved(session: ReplSession, tmp_path: Path) -> None:
    assert said(session, f":save {tmp_path}/x.npy x") == f"x saved to {tmp_path}/x.npy"
    said(session, f":save {tmp_path}/x.npz x y")
    said(session, f":save {tmp_path}/x.csv x")
    assert np.load(tmp_path / "x.npy").tolist() == [[1, 2], [3, 4]]
    assert sorted(np.load(tmp_path / "x.npz")) == ["x", "y"]
    assert (tmp_path / "x.csv").read_text("utf-8") == "1,2\n3,4\n"
    assert code(session, f":save {tmp_path}/x.npy") == "E0819"
    assert code(session, f":save {tmp_path}/x.npy x y") == "E0812"
    assert code(session, f":save {tmp_path}/x.npy z") == "E0820"
    assert code(session, f":save {tmp_path}/m.i x") == "E0812"
    assert said(session, f":save {tmp_path}/m.i") == f"1 definition saved to {tmp_path}/m.i"


@pytest.mark.parametrize(
    ("line", "help_line"),
    [
        (":save y", ":save y.npy y"),
        (":save y.npy", ":save y.npy y"),
        (":save out.txt y", ":save out.npy y"),
        (":save out.txt sums", ":save out.i sums"),
        (":save out.pt x y", ":save out.npz x y"),
        (":save out", ":save out.i"),
        (":save m.i y", ":save y.npy y"),
        (":save m.i sumz", "did you mean sums?"),
        (":save y.npy sums", ":save sums.i sums"),
        (":save sums", ":save sums.i sums"),
        (":save y y.npy", ":save y.npy y"),
        (":save my model.i", ':save "my model.i"'),
        (":save 'my", ":save 'my.i"),
        (":save", ":save model.i"),
    ],
)
def test_files_that_nothing_is_saved_to(session: ReplSession, line: str, help_line: str) -> None:
    (part,) = session.feed(line).parts
    assert isinstance(part, Error)
    assert part.help == help_line


def test_definitions_are_saved_with_what_they_use(session: ReplSession, tmp_path: Path) -> None:
    for line in ("use std", "norm(x[m,n]) = (I & sums) >> ij/i~ij", "other = >ij~i"):
        session.feed(line)
    place = f"{tmp_path}/my norm.i"
    assert (
        said(session, f':save "{place}" norm') == f"norm saved to {place}, and sums, which it uses"
    )
    other = ReplSession()
    assert said(other, f':load "{place}"') == "2 definitions: sums, norm"
    assert (tmp_path / "my norm.i").read_text("utf-8").startswith("use std\n")
    assert code(session, f':save "{place}" sums') == "E0768"
    assert said(session, f':save "{place}" norm').endswith(", in place of norm, sums")
    assert said(session, f":save {tmp_path}/x.npy x").endswith("x.npy")
    again = said(session, f":save {tmp_path}/x.npy y")
    assert again.endswith("x.npy, in place of the arrays that it had")
    assert np.load(tmp_path / "x.npy").tolist() == session.arrays["y"].tolist()


def test_undo(session: ReplSession) -> None:
    session.feed("x = [5]")
    session.feed("+i~. x")
    session.feed("sums = >ij~i")
    session.feed("nonsense")
    session.feed(":drop y")
    assert said(session, ":undo") == "undone: y"
    assert session.arrays["y"].tolist() == [0, 1, 4]
    assert said(session, ":undo") == "undone: sums"
    assert session.texts["sums"] == "sums = +ij~i"
    assert said(session, ":undo") == "undone: x"
    assert said(session, "sums x").endswith("[3. 7.]\n")
    for _ in range(3):
        said(session, ":undo")
    assert not session.names() - {"_"}
    assert code(session, ":undo") == "E0819"


def test_edit(session: ReplSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "sed -i 's/+/>/'")
    monkeypatch.delenv("VISUAL", raising=False)
    assert said(session, ":edit sums") == "sums(in0[i,j]) -> [i]"
    assert session.texts["sums"] == "sums = >ij~i"
    assert said(session, ":undo") == "undone: sums"
    monkeypatch.setenv("EDITOR", "true")
    assert said(session, ":edit sums") == "sums is as it was"
    monkeypatch.setenv("EDITOR", "false")
    assert code(session, ":edit sums") == "E0831"
    assert code(session, ":edit x") == "E0819"


def test_help_fits_80_columns(session: ReplSession) -> None:
    assert [line for line in said(session, ":help").splitlines() if 80 < len(line)] == []


def test_help_on_words(session: ReplSession) -> None:
    """Commands, names, pieces of `std`, codes and signs have some; others have none, and are no missing names."""
    for word in (
        "time",
        ":time",
        "sums",
        "x",
        "softmax",
        "E0103",
        ">",
        "sum",
        "numpy",
        "bank conflict",
        "words",
    ):
        assert said(session, f":help {word}")
    for word, advice in (
        ("nonsense", ":help"),
        ("sofmax", "did you mean `:help softmax`?"),
        ("bank conflicst", "did you mean `:help bank conflict`?"),
        ("sumsz", "sums"),
    ):
        assert code(session, f":help {word}") == "E0817"
        (part,) = session.feed(f":help {word}").parts
        assert isinstance(part, Error)
        assert advice in part.help


@pytest.mark.parametrize(
    ("line", "found", "advice"),
    [
        ("del x", "E0821", "`:drop x`"),
        ("z = zeros:2x2", "E0720", "write `zeros(2, 2)`"),
        ("z = zeros:30x4", "E0720", "write `zeros(30, 4)`"),
    ],
)
def test_spellings_of_other_systems(
    line: str, found: str, advice: str, session: ReplSession
) -> None:
    assert code(session, line) == found
    (part,) = session.feed(line).parts
    assert isinstance(part, Error)
    assert advice in part.help


def test_gradients(session: ReplSession) -> None:
    assert "din0 = (ij*ij~ij)(dout, in1)" in said(session, ":grad ij*ij~ij")
    assert said(session, ":grad").startswith("f(in0[i,j], in1[i,j], dout[i,j]) = {")
    assert "din0[i,j] = dout[i]" in said(session, ":grad sums x")
    session.feed("op twice(x) = x + x")
    assert code(session, ":grad twice") == "E0819"


def test_c_is_that_of_the_kernels(session: ReplSession) -> None:
    text = said(session, ":c sums x")
    assert "static void sums_k0(" in text
    assert "il_measure" not in text
    assert len(text.splitlines()) < 20
    assert "in_registers" in said(session, ":c ik*kj~ijk >> +ijk~ij")  # no shapes of x and y fit


def test_a_short_call_is_limited_by_calling_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean of 1,000 numbers was said to use 100 % of the machine."""
    monkeypatch.setattr(timing, "call_seconds", lambda: 2e-6)
    monkeypatch.setattr(timing, "peak_flops", lambda _dtype: 1e9)
    monkeypatch.setattr(timing, "peak_bytes", lambda _size: 1e9)
    cost = Cost(1000, 4000, "no intermediate storage")
    assert (
        timing_text(2.5e-6, 9, cost, "f32") == "2.5 µs, limited by calling it   (best of 9 calls)"
    )
    assert timing_text(8e-6, 1, cost, "f32").startswith("8 µs, 500 MB/s, 50 % of this machine, lim")
