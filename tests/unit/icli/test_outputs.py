"""Files that commands write: none is lost by them, whichever way it is named."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ilang import Error, load
from tests.unit.icli.front import i

MODEL = """
# a step of training
op net(x) = "w" * x + "b" 2 + file("bias.npy")

# its comment
cd step(x, t; lr = 0.01) {
  d = net(x) - t
  loss = d *. d ++ "...|... => 0"
  backprop(loss)
  for p in params(loss) { p =- lr *. p.grad }
  return loss
}
"""
TRAIN = ("train", "m.i", "--data", "d.npz", "--val", "v.npz", "--batch", "4")
RUN = ("run", "m.i", "--def", "net", "--load", "old.npz", "--shape", "x=4|3", "x.npy")
READ = {
    "train": ("m.i", "d.npz", "v.npz", "bias.npy"),
    "run": ("m.i", "bias.npy", "old.npz", "x.npy"),
}
OTHERS = {
    "--save": ("note.txt", "x.npy", "log", "curve.svg", "other.npz", "foreign.safetensors"),
    "--log": ("note.txt", "x.npy", "old.npz", "curve.svg", "other.i"),
    "--curve": ("note.txt", "x.npy", "old.npz", "log", "drawing.svg"),
    "-o": ("note.txt", "log", "old.npz", "curve.svg"),
}
"""Files of another kind, by the option that would replace them."""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with files of every kind that commands read and write."""
    (tmp_path / "m.i").write_text(MODEL, "utf-8")
    draw = np.random.default_rng(0)
    x, t = draw.standard_normal((8, 3), np.float32), draw.standard_normal((8, 2), np.float32)
    for name in ("d.npz", "v.npz", "other.npz"):
        np.savez(tmp_path / name, x=x, t=t)
    np.save(tmp_path / "x.npy", x[:4])
    np.save(tmp_path / "bias.npy", np.ones((4, 2), np.float32))
    (tmp_path / "note.txt").write_text("mine", "utf-8")
    (tmp_path / "other.i").write_text("f = +ij~i\n", "utf-8")
    (tmp_path / "drawing.svg").write_text("<svg><!-- mine --></svg>", "utf-8")
    header = b'{"__metadata__":{"format":"pt"}}'
    foreign = len(header).to_bytes(8, "little") + header
    (tmp_path / "foreign.safetensors").write_bytes(foreign)
    done = i(*TRAIN, "--save", "old.npz", "--log", "log", "--curve", "curve.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(here: Path, *tokens: str) -> None:
    before = contents(here)
    done = i(*tokens, cwd=here)
    assert done.returncode == 1, tokens
    assert "error[E0768]" in done.stderr, done.stderr
    assert "help: name another file" in done.stderr
    assert contents(here) == before


def test_no_output_replaces_what_is_read_or_another_output(here: Path) -> None:
    os.link(here / "m.i", here / "hard.i")
    (here / "soft.i").symlink_to("m.i")
    for option in ("--save", "--log", "--curve"):
        for place in (
            *READ["train"],
            "hard.i",
            "soft.i",
            f"../{here.name}/m.i",
            str(here / "d.npz"),
        ):
            refused(here, *TRAIN, option, place)
    for option, other in (("--save", "--log"), ("--log", "--curve"), ("--save", "--curve")):
        refused(here, *TRAIN, option, "new", other, "./new")
    for option in ("--log", "--curve"):
        refused(here, *TRAIN, "--resume", "old.npz", "--save", "new.npz", option, "old.npz")
    for place in READ["run"]:
        done = i(*RUN, "-o", place, cwd=here)
        assert done.returncode in (1, 2), "E0768, or E0812: no such ending"
    for place in ("x.npy", "./x.npy"):
        refused(here, "run", "+ij~i", "f32:x.npy", "-o", place)
    refused(here, "run", "+ij~i", "other.npz:x", "-o", "other.npz")


def test_no_output_replaces_a_file_of_another_kind(here: Path) -> None:
    for option, places in OTHERS.items():
        for place in places:
            if option != "-o":
                refused(here, *TRAIN, option, place)
            elif place.endswith(".npz"):
                refused(here, "run", "+ij~i", "x.npy", "-o", place)
    (here / "note.npy").write_text("mine", "utf-8")
    refused(here, "run", "+ij~i", "x.npy", "-o", "note.npy")


def test_an_end_that_says_no_form_is_refused_as_such(here: Path) -> None:
    before = contents(here)
    for place in ("note.txt", "new.txt"):
        assert "error[E0812]" in i("run", "+ij~i", "x.npy", "-o", place, cwd=here).stderr
    assert contents(here) == before


def test_a_page_goes_to_standard_output(tmp_path: Path) -> None:
    done = i("explain", "+ij~i", "--html", "-", cwd=tmp_path)
    assert done.stdout.startswith("<!DOCTYPE html>"), done.stderr
    assert not contents(tmp_path)


def test_an_output_replaces_one_of_its_kind(here: Path) -> None:
    own = ("--save", "old.npz", "--log", "log", "--curve", "curve.svg")
    (here / "empty").write_bytes(b"")
    for more in (own, ("--log", "empty"), ("--resume", "old.npz", "--epochs", "2", "--log", "log")):
        done = i(*TRAIN, *more, cwd=here)
        assert done.returncode == 0, done.stderr
    for _ in range(2):
        assert i("run", "+ij~i", "x.npy", "-o", "sums.npy", cwd=here).returncode == 0
        assert i("run", "+ij~i", "x.npy", "-o", "sums.npz", cwd=here).returncode == 0


def test_a_session_saves_over_checkpoints_alone(here: Path) -> None:
    session = load(here / "m.i").session("net", {"x": "4|3"})
    for name in ("m.i", "d.npz", "x.npy", "note.txt", "foreign.safetensors"):
        before = (here / name).read_bytes()
        with pytest.raises(Error, match="E0768"):
            session.save(here / name)
        assert (here / name).read_bytes() == before
    for name in ("old.npz", "new.safetensors", "new.safetensors"):
        session.save(here / name)
        session.load(here / name)


def test_the_repl_saves_over_what_it_has(here: Path) -> None:
    lines = "f = -i~i\n:save {0}\n"
    for name in ("m.i", "d.npz", "note.txt", "other.i"):
        before = (here / name).read_bytes()
        expected = 0 if name == "other.i" else 1  # its one definition is named f
        assert i("repl", cwd=here, input=lines.format(name)).returncode == expected
        assert ((here / name).read_bytes() == before) == bool(expected)
    loaded = ":load m.i\nf = -i~i\n:save m.i\n"
    assert "E0768" in i("repl", cwd=here, input=loaded).stderr, "its comments would be lost"
    loaded = ":load other.i\ng = -i~i\n:save other.i\n"
    assert i("repl", cwd=here, input=loaded).returncode == 0
    assert (here / "other.i").read_text("utf-8") == "f = -i~i\ng = -i~i\n"


def test_resuming_says_when_nothing_is_left(here: Path) -> None:
    before = contents(here)
    done = i(*TRAIN, "--resume", "old.npz", "--curve", "curve.svg", cwd=here)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "nothing is left to do: old.npz has 2 steps, and --epochs 1 asks for 2\n"
    )
    assert contents(here) == before
    done = i(*TRAIN, "--resume", "old.npz", "--save", "copy.npz", cwd=here)
    assert done.stdout == "2 steps; copy.npz\n"
    assert (here / "copy.npz").exists()
