"""``i diff``."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.unit.icli.front import i

PLAIN, TILED = "ik*kj~ijk >> +ijk~ij", "ik*kj~ijk | i:2 | i i' k j >> +ijk~ij | i:2 | i i' k j 0"


def test_statuses_are_those_of_diff() -> None:
    same = i("diff", PLAIN, PLAIN)
    assert (same.returncode, same.stdout, same.stderr) == (0, "", "")
    other = i("diff", PLAIN, TILED)
    assert (other.returncode, other.stderr) == (1, "")
    for tokens in (
        [PLAIN, "ij~"],
        [PLAIN],
        [PLAIN, "no.i"],
        [PLAIN, PLAIN, "--emit", "tiles", "--target", "cuda"],
    ):
        wrong = i("diff", *tokens)
        assert wrong.returncode == 2
        assert wrong.stderr.startswith("error[E")


def test_parts_that_are_equal_are_left_out() -> None:
    lines = i("diff", PLAIN, TILED).stdout.split("\n")
    heads = [line.rsplit(" ", 1)[1] for line in lines if line.startswith("--- ")]
    assert heads == ["work", "schedule", "loops"]
    assert next(line for line in lines if line.startswith("+++ ")) == f"+++ {TILED} work"


def test_a_difference_is_a_patch(tmp_path: Path) -> None:
    texts = [i("explain", each, "--emit", "loops").stdout for each in (PLAIN, TILED)]
    patch = i("diff", PLAIN, TILED, "--emit", "loops").stdout
    (tmp_path / "loops").write_text(texts[0])
    done = subprocess.run(
        ["patch", "loops"], input=patch, cwd=tmp_path, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0
    assert (tmp_path / "loops").read_text() == texts[1]


def test_the_order_of_factors_does_not_count(tmp_path: Path) -> None:
    texts = {
        "a": "f(x[i,k], y[k,j]) = { p = (ik*kj~ijk)(x, y); (+ijk~ij)(p) }",
        "b": "f(x[i,k], y[k,j]) = { p = (kj*ik~ijk)(y, x); (+ijk~ij)(p) }",
        "c": "f(x[i,k], y[k,j]) = { p = (kj+ik~ijk)(y, x); (+ijk~ij)(p) }",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.i").write_text(f"{text}\n", encoding="utf-8")
    same = i("diff", "a.i", "b.i", cwd=tmp_path)
    assert (same.returncode, same.stdout) == (0, "the same program\n")
    assert i("diff", "b.i", "c.i", cwd=tmp_path).returncode == 1
    stage = i("diff", "a.i", "b.i", "--emit", "graph", cwd=tmp_path)
    assert "+n2 = n1[k,j] * n0[i,k]   for i j k   called p" in stage.stdout.split("\n")


@pytest.mark.parametrize(
    ("tokens", "line"),
    [
        ([TILED, "--unscheduled", "--schedule"], "+ik*kj~ijk  | i:6,j:64,k:512 | j 1 i k k' i' j'"),
        ([PLAIN, "--shape", "2x3,3x4", "--to-shape", "2x3,3x5", "--emit", "shapes"], "+in1      f32[3, 5]     input"),
        (["+ij~i", "--to-target", "cuda", "--emit", "schedule"], "+out  +ij~i  | j:1024 | i j j' | i:p,j:p,j':t"),
        (["+ij~i", ">ij~i", "--emit", "formula"], "+out[i] = max_j in0[i,j]"),
        (["+ij~i", "+ji~i", "--emit", "graph"], "+n1 = fold + over j: n0[j,i]   for i"),
    ],
)  # fmt: skip
def test_one_program_under_other_options(tokens: list[str], line: str) -> None:
    done = i("diff", *tokens)
    assert done.returncode == 1
    assert line in done.stdout.split("\n")


def test_definitions_are_compared_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.i").write_text("f(a[n]) = -i~i\ng(a[n]) = ^i~i\n")
    (tmp_path / "b.i").write_text("f(a[n]) = -i~i\nh(a[n]) = ^i~i\n")
    done = i("diff", "a.i", "b.i", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "Only in a.i: g\nOnly in b.i: h\n")
    named = i("diff", "a.i", "b.i", "--def", "g", "--to-def", "h", cwd=tmp_path)
    assert (named.returncode, named.stdout) == (0, "")


def test_tensor_functions(tmp_path: Path) -> None:
    (tmp_path / "a.i").write_text('op net(x) = relu("w" * x + "b" 3)\n')
    (tmp_path / "b.i").write_text('op net(x) = tanh("w" * x + "b" 3)\n')
    done = i("diff", "a.i", "b.i", "--shape", "x=4|2", "--emit", "formula", cwd=tmp_path)
    assert done.returncode == 1
    assert "tanh" in done.stdout


def test_colors_and_json() -> None:
    painted = i("diff", "+ij~i", ">ij~i", "--emit", "formula", "--color", "always").stdout
    assert "\x1b[31m-out[i] = Σ_j in0[i,j]\x1b[0m" in painted
    answer = json.loads(i("diff", "+ij~i", ">ij~i", "--emit", "formula", "--json").stdout)
    assert not answer["same"]
    assert answer["differences"][0]["stage"] == "formula"
    assert json.loads(i("diff", "+ij~i", "+ij~i", "--json").stdout)["same"]
