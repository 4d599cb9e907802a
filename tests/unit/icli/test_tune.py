"""``i tune``: what it prints, and what processes that measure survive."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ilang.codegen.components import tuning
from ilang.icli.commands.tune import EACH
from ilang.icli.main import main
from tests.unit.icli.front import i

pytestmark = pytest.mark.usefixtures("compiled_quickly")
PRODUCT = "ik*kj~ijk >> +ijk~ij"


def test_a_product_is_tuned(tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    text = f"# a product\nmm(a[40,30], b[30,50]) = {PRODUCT}  # of matrices\n"
    path.write_text(text)
    done = i("tune", str(path), "--shape", "40x30,30x50", "--time", "2", "--write")
    assert done.returncode == 0, done.stderr
    after = path.read_text()
    if "is the fastest of" in done.stdout:
        assert after == text
    else:
        assert f"written into {path}" in done.stdout
        assert after.startswith("# a product\n")
        assert after.endswith("  # of matrices\n")
        assert i("check", str(path)).returncode == 0


def test_nothing_to_tune() -> None:
    done = i("tune", "+i~.", "--shape", "3")
    assert (done.returncode, done.stdout[:15]) == (0, "nothing to tune")


WRITTEN = """# two programs
mm(a[40,30], b[30,50]) = (
    ik*kj~ijk   | i:4,j:8 | i j k i' j'  # the products
    >> +ijk~ij  | i:4,j:8 | i j k i' j' 0
)  # of matrices
sums(a) = +ij~i || i j  # other schedules stay
"""


def _tuned(
    monkeypatch: pytest.MonkeyPatch, path: Path, best: str, *words: str, ends: bool = False
) -> int:
    """``i tune`` of a file with written schedules, where a text that ``best`` is in takes half the time of others."""
    path.write_text(WRITTEN)

    def timed(task: Any, _: float) -> tuning.Times:
        if ends:
            raise KeyboardInterrupt
        first, second = ([0.5 if best in text else 1.0] * 7 for text in task["texts"])
        return first, second

    monkeypatch.setattr(tuning, "timed", timed)
    return main(["tune", str(path), "--def", "mm", *words])


def test_a_written_schedule_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The winner stands where the written one stood; blanks, comments and other definitions stay."""
    path = tmp_path / "m.i"
    assert _tuned(monkeypatch, path, "| i:6,j:32 |", "--write") == 0
    shown = capsys.readouterr().out
    assert "2.00 times as fast as the written schedule, spread 0%\n" in shown
    assert "2.00 times as fast as the chosen schedule, spread 0%; " in shown
    assert f"written into {path}" in shown
    loops = "| i:6,j:32 | {}i j k i' j'"
    first, second = "| i:4,j:8 | i j k i' j'  #", "| i:4,j:8 | i j k i' j' 0"
    replaced = WRITTEN.replace(first, f"{loops.format('1 ')}  #")
    assert path.read_text() == replaced.replace(second, f"{loops.format('')} 0")
    assert i("check", str(path)).returncode == 0


def test_a_written_schedule_is_taken_out_where_the_chosen_one_is_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.i"
    assert _tuned(monkeypatch, path, "ik*kj~ijk  # the products", "--write") == 0
    shown = capsys.readouterr().out
    assert "2.00 times as fast as the written schedule, spread 0%; it is what is chosen" in shown
    assert f"the schedule is taken out of {path}" in shown
    first, second = "   | i:4,j:8 | i j k i' j'  #", "  | i:4,j:8 | i j k i' j' 0"
    assert path.read_text() == WRITTEN.replace(first, "  #").replace(second, "")


def test_a_written_schedule_stays_where_it_is_fastest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.i"
    assert _tuned(monkeypatch, path, "| i:4,j:8 | i j k i' j' 0", "--write") == 0
    assert re.fullmatch(
        "the written schedule is the fastest of [0-9]+: 2.00 times as fast as the chosen schedule,"
        " spread 0%\n",
        capsys.readouterr().out,
    )
    assert path.read_text() == WRITTEN
    assert _tuned(monkeypatch, path, "| i:4,j:8 | i j k i' j' 0", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["gain"], answer["schedule"]) == (2, None)
    assert answer["written"] == {"gain": 1, "spread": 0}
    assert _tuned(monkeypatch, path, "", "--json", ends=True) == 130
    assert json.loads(capsys.readouterr().out)["gain"] is None


def test_a_schedule_that_wins_by_less_than_the_spread_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The written one stays, and is not called the fastest; the time is over after one, which is said."""
    times = ([1.0, 1.0, 2.0, 2.0] * 2, [0.9, 0.9, 1.8, 1.8] * 2)
    monkeypatch.setattr(tuning, "timed", lambda *_: times)
    monkeypatch.setattr("time.monotonic", itertools.count(0, 1000).__next__)
    text = "ik*kj~ijk || i j k >> +ijk~ij || i j k 0"
    assert main(["tune", text, "--shape", "40x30,30x50"]) == 0
    assert re.fullmatch(
        "none of 1 is faster than the written schedule by more than the spread:"
        " 0.90 times as fast as the chosen schedule, spread 67%;"
        " [0-9]+ more were not timed: `i tune --time SECONDS` has longer\n",
        capsys.readouterr().out,
    )


def test_a_winner_has_to_beat_the_chosen_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where both beat the written one and neither the other, the program goes without a schedule."""
    path = tmp_path / "m.i"
    path.write_text(WRITTEN)

    def timed(task: Any, seconds: float) -> tuning.Times:
        times = {"| i:4,j:8 | i j k i' j' 0": 4.0, "| i:6,j:32 |": 2.0 if EACH < seconds else 1.0}
        first, second = (
            [next((time for words, time in times.items() if words in text), 2.0)] * 7
            for text in task["texts"]
        )
        return first, second

    monkeypatch.setattr(tuning, "timed", timed)
    assert main(["tune", str(path), "--def", "mm", "--write"]) == 0
    shown = capsys.readouterr()
    assert "timed beside the chosen schedule, it is not faster" in shown.err
    assert "2.00 times as fast as the written schedule, spread 0%; it is what" in shown.out
    assert "| i:4,j:8" not in path.read_text()


def test_an_illegal_written_schedule_is_refused() -> None:
    done = i("tune", "ij*ij~ij || i j >> +ij~i | j:8 | j i 0 j'", "--shape", "8x8,8x8")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[E0320]" in done.stderr


def test_components_of_the_library_are_timed() -> None:
    """A text that names them is read in the process that times it as the command reads it."""
    words = ("--shape", "30x40,40x50", "--time", "1")
    done = i("tune", "(relu | I) >> ik*kj~ijk >> +ijk~ij", *words)
    assert (done.returncode, "left out" in done.stderr) == (0, False)


def test_a_gain_that_does_not_last_is_taken_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fastest is timed once more; where it is no longer faster, a line says so."""

    def timed(_: Any, seconds: float) -> tuning.Times:
        return [1.0] * 7, [1.0 if EACH < seconds else 0.5] * 7

    monkeypatch.setattr(tuning, "timed", timed)
    assert main(["tune", PRODUCT, "--shape", "40x30,30x50"]) == 0
    shown = capsys.readouterr()
    assert "2.00 times as fast" in shown.err
    assert "timed once more, it is not faster" in shown.err
    assert "the chosen schedule is the fastest of" in shown.out


def test_extents_are_asked_for(tmp_path: Path) -> None:
    """Schedules are timed on arrays: a program that leaves extents open says no shapes for them."""
    done = i("tune", "+ij~i")
    assert (done.returncode, "--shape gives none for in0" in done.stderr) == (2, True)
    (tmp_path / "f.i").write_text("f(x[8,3]) = +ij~i\n", "utf-8")
    assert i("tune", str(tmp_path / "f.i"), "--time", "1").returncode == 0


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")
def test_blocks_of_a_gpu_are_timed() -> None:
    """Emulated, where times mean nothing: that other blocks are compiled, run, and give the same results."""
    words = ("--shape", "20x30,30x17", "--target", "cuda", "--emulate", "--time", "1")
    done = i("tune", PRODUCT, *words)
    assert done.returncode == 0, done.stderr
    assert "left out" not in done.stderr
    assert "is the fastest of" in done.stdout or "| i:" in done.stdout
    loops = "| i:8,j:8 | i j i' j' k"
    done = i("tune", f"ik*kj~ijk {loops} >> +ijk~ij {loops} 0", *words)
    assert (done.returncode, "left out" in done.stderr) == (0, False), done.stderr


def test_a_gpu_that_is_not_there() -> None:
    words = ("--shape", "20x30,30x17", "--target", "cuda")
    done = i("tune", PRODUCT, *words, env={"CUDA_VISIBLE_DEVICES": ""})
    assert (done.returncode, done.stdout) == (3, "")
    assert "error[E0923]" in done.stderr


@pytest.mark.deep
def test_other_orders_of_loops_are_timed() -> None:
    words = ("--shape", "30x40x50", "--time", "3")
    done = i("tune", "+abc~b", *words)
    assert done.returncode == 0, done.stderr
    assert "is the fastest of" in done.stdout or "|| " in done.stdout
    done = i("tune", "+abc~b || b c a", *words)
    assert "the written schedule is the fastest of" in done.stdout or "|| " in done.stdout


@pytest.mark.parametrize("is_again", [False, True])
def test_ctrl_c_keeps_the_fastest_so_far(
    is_again: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C comes while another schedule is timed, or while the fastest is timed once more."""
    path = tmp_path / "m.i"
    path.write_text(f"mm(a[40,30], b[30,50]) = {PRODUCT}\n")
    tried: list[str] = []

    def timed(task: Any, seconds: float) -> tuning.Times | str:
        if 2 == len(tried) or EACH < seconds:
            raise KeyboardInterrupt
        tried.append(task["texts"][1])
        return [1.0] * 7, [0.5 / len(tried)] * 7

    monkeypatch.setattr(tuning, "timed", timed)
    if is_again:
        found = [*tuning.candidates(tuning.component(str(path), path.read_text(), "mm"), ())][:2]
        monkeypatch.setattr(tuning, "candidates", lambda *_: iter(found))
    status = main(["tune", str(path), "--write"])
    told = capsys.readouterr()
    assert (status, len(tried)) == (130, 2), told.err
    assert "4.00 times as fast" in told.out
    assert told.err.endswith("interrupted\n")
    assert path.read_text() == tried[-1]
    assert i("check", str(path)).returncode == 0


def test_ctrl_c_ends_what_is_timed(tmp_path: Path) -> None:
    """A terminal sends it to the process that measures as well."""
    path = tmp_path / "m.i"
    path.write_text(f"mm(a[400,300], b[300,500]) = {PRODUCT}\n")
    words = [sys.executable, "-m", "ilang", "tune", str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as tuned:
        children = Path(f"/proc/{tuned.pid}/task/{tuned.pid}/children")
        while not children.read_text():
            time.sleep(0.02)
        os.killpg(tuned.pid, signal.SIGINT)
        out, err = tuned.communicate(timeout=60)
    assert (tuned.returncode, "Traceback" in out + err) == (130, False)
    assert err.endswith("interrupted\n")


def test_bad_arguments() -> None:
    assert "E0825" in i("tune", PRODUCT, "--time", "0").stderr
    assert "E0811" in i("tune", PRODUCT, "--shape", "3x4").stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ik*kj~ijk >> >ijk~ij", "its results are others"),
        ("ik*kj~ij", "its process ended with status 1"),
    ],
)
def test_what_is_no_schedule_of_the_program(text: str, says: str) -> None:
    task = {
        "name": "<text>",
        "definition": "",
        "target": "c",
        "shapes": [[4, 3], [3, 5]],
        "texts": (PRODUCT, text),
    }
    answer = tuning.timed(task, 0.01)
    assert isinstance(answer, str)
    assert says in answer


def test_faster_is_more_than_the_spread() -> None:
    assert tuning.is_faster(([2.0] * 8, [1.0] * 8))
    assert not tuning.is_faster(([1.0] * 8, [1.0] * 8))
    assert not tuning.is_faster(([1.0, 1.0, 2.0, 2.0] * 2, [0.9, 0.9, 1.8, 1.8] * 2))
