"""What is a file, what is a program, and what is written where."""

import stat
from pathlib import Path

import pytest

from ilang.codegen.system.files import write_whole
from ilang.icli.programs import is_file
from tests.unit.icli.front import i

ATTENTION = """\
scores = ik*jk~ijk >> +ijk~ij
norm   = (I & +ij~i) >> ij/i~ij
weights(q[m,d], k[n,d]) = scores >> norm
total = +ij~i
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.i"
    path.write_text(ATTENTION, "utf-8")
    return path


def test_what_is_a_file(model: Path) -> None:
    assert is_file(str(model))
    assert is_file("nofile.i")
    assert not is_file("+ij~i")
    assert not is_file("a~.i")
    assert not is_file("nofile")
    assert not is_file("nul\0")


def test_all_exports_are_explained_in_order(model: Path) -> None:
    shown = i("explain", str(model)).stdout
    assert shown.index("weights(q[m,d], k[n,d]) -> [m,n]") < shown.index("total(in0[i,j]) -> [i]")
    assert i("explain", str(model), "--def", "scores").stdout.startswith("scores(")
    assert "did you mean total" in i("explain", str(model), "--def", "totl").stderr


def test_standard_input_holds_a_program_or_a_module(model: Path) -> None:
    assert i("explain", "-", input="+ij~i\n").stdout == i("explain", "+ij~i").stdout
    assert i("explain", "-", input=ATTENTION).stdout == i("explain", str(model)).stdout
    assert i("check", "-", input="i==j~ij\n").returncode == 0
    assert " --> <stdin>:1:" in i("explain", "-", input="ij~\n").stderr
    assert i("explain", "-", input="").returncode == 1


def test_check_prints_a_line_for_each_definition(model: Path) -> None:
    done = i("check", str(model))
    assert done.returncode == 0
    assert [line.partition("(")[0] for line in done.stdout.splitlines()] == [
        "scores",
        "norm",
        "weights",
        "total",
    ]


def test_check_goes_on_after_an_error(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(
        "a = ij+jk~ijk\nb(x[n]) = +ij~i\nc = -i~i\npart = I\nd = part >> c\n", "utf-8"
    )
    done = i("check", "m.i", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("error[") == 1
    assert "c(in0[i]) -> [i]" in done.stdout
    assert "part(in0) of any rank" in done.stdout


def test_fmt_rewrites_in_place(tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text("a   =  ij ~ i # note\n", "utf-8")
    path.chmod(0o640)
    (tmp_path / "link.i").symlink_to("m.i")
    assert i("fmt", "--check", "m.i", cwd=tmp_path).returncode == 1
    assert i("fmt", "link.i", cwd=tmp_path).stdout == "link.i\n"
    assert path.read_text("utf-8") == "a = ij~i  # note\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (tmp_path / "link.i").is_symlink()
    again = i("fmt", "m.i", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "")
    assert i("fmt", "--check", "m.i", cwd=tmp_path).returncode == 0
    assert i("fmt", "-", input="a   = ij~i\n").stdout == "a = ij~i\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.i", "m.i"]


def test_fmt_leaves_a_wrong_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text("a   =  ij ~ \n", "utf-8")
    assert i("fmt", "m.i", cwd=tmp_path).returncode == 1
    assert path.read_text("utf-8") == "a   =  ij ~ \n"


def test_run_prints_and_saves(tmp_path: Path) -> None:
    shown = i("run", "ik*kj~ijk >> +ijk~ij", "[[1,2],[3,4]]", "[[1,0],[0,1]]", "--target", "numpy")
    assert shown.stdout == "out  2×2  f32\n[[1. 2.]\n [3. 4.]]\n"
    saved = i("run", "+ij~i", "[[1,2],[3,4]]", "-o", "y.npy", "--target", "numpy", cwd=tmp_path)
    assert (saved.returncode, saved.stdout) == (0, "")
    again = i("run", "+i~.", "y.npy", "--target", "numpy", cwd=tmp_path)
    assert again.stdout == "out  .  f32\n10.\n"
    several = i("run", "+ij~i & >ij~i", "[[1,2],[3,4]]", "-o", "z.npz", cwd=tmp_path)
    assert several.returncode == 0
    assert i("run", "+i~.", "z.npz:out1", cwd=tmp_path).stdout == "out  .  f32\n6.\n"
    assert i("run", "+ij~i & >ij~i", "[[1,2],[3,4]]", "-o", "z.npy").returncode == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["y.npy", "z.npz"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def fails(_stream: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(f"{tmp_path}/x", fails)
    assert list(tmp_path.iterdir()) == []


def test_a_repl_in_a_pipe(model: Path) -> None:
    done = i("repl", str(model), input="total [[1,2],[3,4]]\nx = (\n[1,2]\n\n:quit\n")
    assert "out  2  f32\n[3. 7.]" in done.stdout
    good = i("repl", input="+i~. >>\n-.~. [1,2]\n")
    assert (good.returncode, good.stdout) == (0, "out  .  f32\n-3.\n")
    assert i("repl", input="ij~\n+i~. [1,2]\n").returncode == 1
    assert i("repl", "nofile.i").returncode == 1
