"""`i train`: what it trains, writes, logs and draws; interrupted, resumed, shared by ranks."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ilang import Error, LossWarning, load
from ilang.codegen.session.batches import Batches
from ilang.codegen.session.checkpoint import read
from ilang.codegen.session.mpi import FAILURE, MARK, relayed
from ilang.codegen.session.not_finite import first_not_finite, not_finite
from ilang.icli.curve import curve_svg, curve_text
from ilang.icli.definitions import NOTHING_RETURNED
from tests.unit.icli.front import ENTRY, environment, i

MODEL = """
op net(x) = "v" * ?/("w" * x + "b" 8) + "c" 2
cd sgd(p; lr) {
  "velocity" =: 0.9 *. velocity + p.grad
  p =- lr *. velocity
}
cd step(x, t; lr = 0.01, batch = 16) {
  d = net(x) - t
  part = (d *. d ++ "...|... => 0") /. batch
  backprop(part)
  "loss" =: part
  loss =+ loss.merge
  for p in params(part) {
    p.grad =+ p.grad.merge
    sgd(p; lr)
  }
  return loss
}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "m.i").write_text(MODEL, encoding="utf-8")
    draw = np.random.default_rng(0)
    x = draw.standard_normal((100, 3)).astype(np.float32)
    t = np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2]], axis=1).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x, t=t)
    np.savez(tmp_path / "v.npz", x=x[:40], t=t[:40])
    return tmp_path


def train(here: Path, *tokens: str) -> str:
    done = i("train", "m.i", "--data", "d.npz", "--batch", "16", *tokens, cwd=here)
    assert done.returncode == 0, done.stderr
    return done.stdout


def same(one: Path, other: Path) -> bool:
    first, second = read(str(one)).arrays, read(str(other)).arrays
    return sorted(first) == sorted(second) and all((first[n] == second[n]).all() for n in first)


def test_what_is_printed_logged_and_drawn(here: Path) -> None:
    options = ("--val", "v.npz", "--log", "l.jsonl", "--curve", "c.svg", "--seed", "3")
    text = train(here, "--epochs", "4", *options)
    lines = [line for line in text.splitlines() if line.startswith("epoch")]
    assert [line.split("   ")[0] for line in lines] == [f"epoch {n} of 4" for n in range(1, 5)]
    assert text.endswith("24 steps; m.safetensors\n")
    log = [json.loads(line) for line in (here / "l.jsonl").read_text("utf-8").splitlines()]
    steps = [entry for entry in log if "step" in entry]
    epochs = [entry for entry in log if "seconds" in entry]
    assert [entry["step"] for entry in steps] == list(range(1, 25))
    for number, entry in enumerate(epochs):
        mean = np.mean([each["loss"] for each in steps if each["epoch"] == number + 1])
        assert entry["loss"] == pytest.approx(mean)
        assert f"loss {entry['loss']:.6g}   validation {entry['held_back']:.6g}" in lines[number]
    assert epochs[-1]["loss"] < epochs[0]["loss"]
    assert epochs[-1]["held_back"] < epochs[0]["held_back"]
    drawing = ElementTree.fromstring((here / "c.svg").read_text("utf-8"))
    curves = [each.get("points", "") for each in drawing.iter() if each.tag.endswith("polyline")]
    assert [len(points.split()) for points in curves] == [24, 4]
    assert read(str(here / "m.safetensors")).notes["steps"] == "24"


def test_resumed_runs_are_equal_bit_by_bit(here: Path) -> None:
    train(here, "--epochs", "5", "--save", "whole.safetensors")
    train(here, "--epochs", "2", "--save", "part.npz")
    text = train(here, "--epochs", "5", "--resume", "part.npz")
    assert "epoch 3 of 5" in text
    assert "epoch 2 of 5" not in text
    train(here, "--epochs", "5", "--save", "other.safetensors", "--no-shuffle")
    assert same(here / "whole.safetensors", here / "part.npz")
    assert not same(here / "whole.safetensors", here / "other.safetensors")


def test_ctrl_c_leaves_a_checkpoint_to_go_on_from(here: Path) -> None:
    command = [sys.executable, "-c", ENTRY, "train", "m.i", "--data", "d.npz", "--batch", "16"]
    log = here / "l.jsonl"
    with subprocess.Popen(
        [*command, "--epochs", "1000000", "--log", str(log)],
        cwd=here, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        while not log.exists() or not log.stat().st_size:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    steps = int(read(str(here / "m.safetensors")).notes["steps"])
    assert f"interrupted after step {steps}, which m.safetensors has" in said
    epochs = str(steps // 6 + 1)
    train(here, "--epochs", epochs, "--resume", "m.safetensors")
    train(here, "--epochs", epochs, "--save", "whole.safetensors")
    assert same(here / "m.safetensors", here / "whole.safetensors")


def test_a_loss_that_is_no_number_keeps_the_checkpoint(here: Path) -> None:
    train(here)
    before = (here / "m.safetensors").read_bytes()
    tokens = ("train", "m.i", "--data", "d.npz", "--batch", "16", "--config", "lr=1e30")
    operands = "op net.x.*; there `v` is from [^`]*, `[^`]*` is from "
    for more, shown in (((), "--debug-nan"), (("--debug-nan",), operands)):
        done = i(*tokens, *more, cwd=here)
        assert done.returncode == 1
        assert "E0763" in done.stderr
        assert "at step 2" in done.stderr
        assert re.search(shown, done.stderr, re.DOTALL)
    assert (here / "m.safetensors").read_bytes() == before


def test_the_operands_of_the_first_nan_are_told(tmp_path: Path) -> None:
    text = 'cd step(x) {\n  loss = log(x - 2) ++ "...|... => 0"\n  return loss\n}'
    (tmp_path / "f.i").write_text(text, encoding="utf-8")
    session = load(tmp_path / "f.i").session("step", {"x": "3|"})
    x = np.array([3, 1.5, 4], np.float32)
    cause = first_not_finite(session, {"x": x}, {}, {})
    assert cause is not None
    count = "and 1 of its 3 elements is nan or inf"
    assert cause[1] == f"nan at [1,0], {count}; there `x - 2` is -0.5"


def test_data_that_is_no_number_is_told(here: Path) -> None:
    data = dict(np.load(here / "d.npz"))
    x = data["x"].astype(np.float32)
    x[3, -1], x[5] = np.nan, np.inf
    np.savez(here / "bad.npz", **{**data, "x": x})
    tokens = ("train", "m.i", "--data", "bad.npz", "--batch", "16", "--no-shuffle")
    for more in ((), ("--debug-nan",)):
        done = i(*tokens, *more, cwd=here)
        assert done.returncode == 1
        place, count = f"[3,{x.shape[1] - 1}]", x.shape[1] + 1
        says = f"x is nan at {place}, and {count} of its {x.size} elements are nan or inf"
        assert says in done.stderr
        assert "help: mend the data" in done.stderr


def test_the_element_that_is_no_number_is_told() -> None:
    assert not not_finite(np.arange(3))
    assert not not_finite(np.ones((2, 2)))
    assert not_finite(np.array([[1, 2], [np.inf, 3]])) == (
        "inf at [1,0], and 1 of its 4 elements is nan or inf"
    )
    assert not_finite(np.array(np.nan)) == "nan, and its one element is nan or inf"


def test_every_example_is_seen_once_an_epoch() -> None:
    arrays = {"x": np.arange(50), "y": np.arange(50) * 2.0}
    whole = Batches(arrays, 12, seed=3)
    assert (whole.count, whole.dropped) == (4, 2)
    orders = [whole.order(epoch).tolist() for epoch in range(3)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert orders[1] == Batches(arrays, 12, seed=3).order(1).tolist()
    assert orders[1] != Batches(arrays, 12, seed=4).order(1).tolist()
    seen = np.concatenate([batch["x"] for batch in whole.epoch(1)])
    assert seen.tolist() == orders[1][:48]
    shares = [Batches(arrays, 12, seed=3, share=(rank, 3)).epoch(1) for rank in range(3)]
    for batch, *parts in zip(whole.epoch(1), *shares, strict=True):
        assert np.concatenate([part["y"] for part in parts]).tolist() == batch["y"].tolist()
    rest = [batch["x"].tolist() for batch in whole.epoch(1, start=2)]
    assert rest == [batch["x"].tolist() for batch in whole.epoch(1)][2:]


@pytest.mark.parametrize("array", [np.ones(()), np.ones((0, 2))])
def test_data_without_examples_is_refused(array: Any) -> None:
    with pytest.raises(Error, match="axis 0 has the examples"):
        Batches({"x": array}, 1, seed=0)


def test_curves() -> None:
    assert curve_text([1.0]) == ""
    text = curve_text([4, 3, 2, 1], rows=2)
    assert text == "4 █▃\n1 ██▆▁\n" or text.splitlines()[0].startswith("4 █")
    assert len(curve_text(list(range(1000))).splitlines()) == 6
    assert max(map(len, curve_text([float(n) for n in range(1000)]).splitlines())) < 70
    ElementTree.fromstring(curve_svg([], []))
    ElementTree.fromstring(curve_svg([(1, 2.0), (2, float("nan"))], [(2, 2.0)]))


@pytest.fixture(scope="module")
def mpi() -> None:
    """Skip where MPI is not installed, or cannot start processes."""
    program = shutil.which("mpirun", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if importlib.util.find_spec("mpi4py") is None or program is None:
        pytest.skip("ranks need MPI: pip install 'ilang[mpi]'")
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    tried = subprocess.run(
        [program, *as_root, "--oversubscribe", "-n", "2", sys.executable, "-c", "from mpi4py import MPI"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if tried.returncode:
        pytest.skip(f"mpirun cannot start processes here: {tried.stderr[-300:]}")


def with_ranks(here: Path, count: int, *tokens: str) -> Any:
    """``python -m ilang`` with ranks, which start the same command again."""
    command = [sys.executable, "-m", "ilang", "train", "m.i", "--data", "d.npz", "--batch", "16"]
    return subprocess.run(
        [*command, "--ranks", str(count), *tokens],
        cwd=here, env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.deep
@pytest.mark.usefixtures("mpi")
@pytest.mark.parametrize("count", [2, 4])
def test_ranks_train_as_one_process_does(count: int, here: Path) -> None:
    alone = train(here, "--epochs", "3", "--log", "1.jsonl", "--save", "1.npz")
    done = with_ranks(here, count, "--epochs", "3", "--log", "n.jsonl", "--save", "n.npz")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == alone.splitlines()[-1].replace("1.npz", "n.npz")
    losses = [
        [json.loads(line)["loss"] for line in (here / name).read_text("utf-8").splitlines()]
        for name in ("1.jsonl", "n.jsonl")
    ]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    one, many = (read(str(here / name)).arrays for name in ("1.npz", "n.npz"))
    for name, values in one.items():
        np.testing.assert_allclose(many[name], values, rtol=1e-3, atol=1e-5)


@pytest.mark.deep
@pytest.mark.usefixtures("mpi")
def test_a_rank_tells_the_element_of_the_data_that_gives_no_number(tmp_path: Path) -> None:
    x = np.ones((32, 2), np.float32)
    x[5, 1] = -4
    t = np.arange(32) % 3
    t[17] = 7
    np.savez(tmp_path / "d.npz", x=x, t=t)
    step = "backprop(loss); for p in params(loss) { p.grad =+ p.grad.merge; p =- p.grad }; return loss }\n"
    for loss, says in (
        ("cross_entropy_at(linear(x; 3), t)", "t[17] of --data is 7, which is no index"),
        (
            '"w" *. log(x) *. (t > 9) ++ "...|... => 0"',
            "in the data x[5,1] is -4.0, and `log(x)` is nan",
        ),
    ):
        (tmp_path / "m.i").write_text(f"use nn\ncd step(x, t: i64[b|]) {{ loss = {loss}; {step}")
        done = with_ranks(tmp_path, 2)
        assert done.returncode == 1
        assert says in done.stderr


def test_of_several_ranks_one_is_heard_and_the_first_that_fails() -> None:
    said = io.StringIO(
        f"{MARK}0 note\n{MARK}1 note\nMPI says more{FAILURE}1 error\n{FAILURE}0 error\n"
        f"{FAILURE}1 help\n\n{MARK}0 more\n"
    )
    heard: list[str] = []
    assert relayed(said, heard.append) == []
    assert heard == ["note", "error", "help", "more"]


def test_what_mpi_says_is_kept_where_no_rank_says_anything() -> None:
    heard: list[str] = []
    assert relayed(io.StringIO("no room\n\nfor ranks\n"), heard.append) == [
        "no room",
        "",
        "for ranks",
    ]
    assert not heard


@pytest.mark.deep
@pytest.mark.usefixtures("mpi")
def test_a_rank_that_fails_ends_all_of_them(here: Path) -> None:
    train(here)
    before = (here / "m.safetensors").read_bytes()
    done = with_ranks(here, 2, "--config", "lr=1e30")
    assert done.returncode == 1
    assert done.stderr.count("E0763") == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("a rank ended with status 1, and the others with it; m.safetensors has")
    assert (here / "m.safetensors").read_bytes() == before
    (here / "m.i").write_text(MODEL.replace("p.grad =+ p.grad.merge", ""), encoding="utf-8")
    done = with_ranks(here, 2)
    assert done.stderr.count("E0285") == 1


SILENT = """
use nn, optim
op net(x) = mlp(x; [4], 3)
cd step(x, t; lr = 0.01) {
  d = net(x) - t
  loss = LOSS
  backprop(loss)
  for p in params(loss) { sgd(p; lr) }
  RETURN
}
"""


def silent(here: Path, loss: str, t: Any, last: str = "return loss") -> Any:
    text = SILENT.replace("LOSS", loss).replace("RETURN", last)
    (here / "s.i").write_text(
        text if loss.startswith("d") else text.replace("  d = net(x) - t\n", "")
    )
    np.savez(here / "s.npz", x=np.ones((8, 2), np.float32), t=t)
    return i("train", "s.i", "--data", "s.npz", "--batch", "8", cwd=here)


def test_a_sum_of_losses_is_told_once(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`i run` and the REPL say it on standard error, Python warns at the line of the run."""
    (here / "s.i").write_text(SILENT.replace("LOSS", "d").replace("RETURN", "return loss"))
    lines = "x = rand:8x2\nt = rand:8x3\nstep x t\nstep x t\nq = step(x, t; lr = 0.1)\n"
    done = i("repl", "s.i", cwd=here, input=lines)
    run = i("run", "s.i", "rand:8x2", "rand:8x3", cwd=here)
    for each in (done, run):
        assert each.returncode == 0
        assert each.stderr.count("note[E0288]: the loss has 24 elements") == 1
        assert "  backprop(loss)" in each.stderr
        assert "E0288" not in each.stdout
    monkeypatch.chdir(here)
    model = load("s.i")
    session = model.session("step")
    x, t = np.ones((8, 2), np.float32), np.ones((8, 3), np.float32)
    with pytest.warns(LossWarning, match="24 elements") as caught:
        session(x=x, t=t)
    with warnings.catch_warnings(action="error"):
        session(x=x, t=t)
        model.session("step", seed=1)(x=x[:4], t=t[:4])
    assert [each.filename for each in caught] == [__file__]


def test_a_loss_of_several_elements_is_refused(here: Path) -> None:
    """It was summed, and fell below 0 without end."""
    squares = "loss = d *. d"
    for loss, count, written in (
        ("d", 24, "error = loss *. loss"),
        ("d *. d", 24, squares),
        ("d **. 2", 24, squares),
        ("d * d", 72, squares),
        ('d *. d ++ "b|c => b|0"', 8, "error = loss *. loss"),
    ):
        done = silent(here, loss, np.ones((8, 3), np.float32))
        assert done.returncode == 1
        assert f"error[E0288]: the loss has {count} elements" in done.stderr
        assert " --> s.i:7:3\n" in done.stderr
        assert f'help: give `backprop` one number: `{written} ++ "...|... => 0"`' in done.stderr
    assert silent(here, 'd *. d ++ "...|... => 0"', np.ones((8, 3), np.float32)).returncode == 0


def test_a_routine_that_returns_nothing_says_so(here: Path) -> None:
    done = silent(here, 'd *. d ++ "...|... => 0"', np.ones((8, 3), np.float32), "")
    assert done.returncode == 0
    assert NOTHING_RETURNED in done.stderr


def test_a_routine_that_changes_no_parameter_says_so(here: Path) -> None:
    (here / "still.i").write_text(
        'cd step(x) { loss = "w" * x + "b" 2 ++ "...|... => 0"; return loss }\n'
    )
    np.save(here / "a.npy", np.ones((8, 3), np.float32))
    done = i("train", "still.i", "--data", "x=a.npy", "--batch", "4", "--epochs", "1", cwd=here)
    assert "no step changes a parameter" in done.stderr


def test_numbers_of_no_class_are_refused(here: Path) -> None:
    """They counted as right: a loss of 0 was the result of numbers that are no classes."""
    good = np.arange(8) % 3
    for numbers, code in (
        (good, ""),
        (good.astype(np.float32), ""),
        (good + 1, "E0746"),
        (good - 1, "E0746"),
        (good + np.float32(0.5), "E0758"),
    ):
        done = silent(here, "cross_entropy_at(net(x), t)", numbers)
        assert code in done.stderr
        assert done.returncode == int(bool(code))


@pytest.mark.parametrize("command", ["check", "explain"])
def test_class_numbers_that_a_head_declares(tmp_path: Path, command: str) -> None:
    """The rows of a head are enough to say so: no shape is given."""
    text = "use nn\nop f(x, t: i64[b|]) = cross_entropy(linear(x; 3), t)\n"
    (tmp_path / "m.i").write_text(text)
    done = i(command, "m.i", cwd=tmp_path)
    assert "error[E0512]: `cross_entropy` takes a share of each class" in done.stderr
    assert "for class numbers, `cross_entropy_at(linear(x; 3), t)`" in done.stderr


@pytest.mark.parametrize("kind", [np.int64, np.float32])
@pytest.mark.parametrize("shape", [(8,), (8, 1)])
def test_class_numbers_in_the_place_of_shares(here: Path, kind: Any, shape: Any) -> None:
    numbers = (np.arange(8) % 3).astype(kind).reshape(shape)
    for loss in ("cross_entropy", "cross_entropy_sum"):
        done = silent(here, f"{loss}(net(x), t)", numbers)
        assert done.returncode == 1
        assert "\n --> s.i:5:10\n" in done.stderr, "the user's line is the first"
        assert done.stderr.index("s.i:5:10") < done.stderr.index("nn.i:")
        assert f"for class numbers, `{loss}_at(net(x), t)`" in done.stderr
    done = silent(here, "cross_entropy_at(net(x), t)", numbers)
    assert done.returncode == int(shape != (8,)), done.stderr
    assert done.returncode == 0 or "t has one class number for each example" in done.stderr


def test_targets_of_a_squared_error_lack_the_axis_of_the_result(here: Path) -> None:
    done = silent(here, "squared_error(net(x), t)", np.ones(8, np.float32))
    assert done.returncode == 1
    assert "takes a row of numbers for each example, and t has no output axis" in done.stderr
    assert " - t is [8|]\n" in done.stderr
    assert "for one number an example, t.reshape(-1, 1)" in done.stderr


def test_what_is_wrong_in_a_library_is_told_where_it_is_called(here: Path) -> None:
    done = silent(here, "squared_error(net(x), t)", np.ones((8, 2), np.float32))
    assert done.returncode == 1
    first, second = done.stderr.index(" --> s.i:5:10"), done.stderr.index(" --> nn.i:")
    assert first < second
    assert "c is 3 in y (`net(x)`, [8|3]) and 2 in t ([8|2])" in done.stderr
    assert "^^^^^^^^^^^^^^ called here" in done.stderr


def test_validation_has_the_parameters_of_training(tmp_path: Path) -> None:
    """With a size that follows from `training`, parameters of one shape were read as of another."""
    np.save(tmp_path / "x.npy", np.ones((8, 2), np.float32))
    for width, says in (("3", ""), ("10 - 8 *. training", "w has shape (10, 2) with training = 0")):
        (tmp_path / "m.i").write_text(
            f"use nn\ncd step(x; training = 1) {{ y = linear(x; {width}) + training\n"
            'loss = y *. y ++ "...|... => 0"; backprop(loss)\n'
            "for p in params(loss) { p =- 0.1 *. p.grad }\nreturn loss }\n"
        )
        given = ("--data", "x=x.npy", "--val", "x=x.npy", "--batch", "4")
        done = i("train", "m.i", *given, cwd=tmp_path)
        assert done.returncode == int(bool(says)), done.stderr
        assert says in done.stderr
        assert bool(done.stdout) is not bool(says), "it is told before the first epoch"


def test_an_element_of_the_data_that_gives_no_number_is_told(tmp_path: Path) -> None:
    x = np.linspace(1, 12, 12, dtype=np.float32).reshape(6, 2)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "t.npy", np.array([0, 1, 2, 2, 7, 1]))
    x[3, 1] = -4
    np.save(tmp_path / "y.npy", x)
    step = "backprop(loss); for p in params(loss) { p =- 0.1 *. p.grad }; return loss }\n"
    net = "use nn\nop net(x) = linear(x; 3)\ncd step(x, t: i64[b|]) { loss = cross_entropy_at(net(x), t); "
    (tmp_path / "c.i").write_text(net + step, encoding="utf-8")
    logs = 'cd step(x) { loss = "w" *. log(x) ++ "...|... => 0"; '
    (tmp_path / "l.i").write_text(logs + step, encoding="utf-8")
    cases = (
        (
            "c.i",
            "x=x.npy,t=t.npy",
            "t[4] of --data is 7, which is no index of axis class of extent 3",
        ),
        ("l.i", "x=y.npy", "in the data x[3,1] is -4.0, and `log(x)` is nan there"),
    )
    np.save(tmp_path / "u.npy", np.array([0, 1, 2, 2, 1, 1]))
    for other, says in (
        ("x=x.npy,t=t.npy", "t[4] of --val is 7, which is no index of axis class of extent 3"),
        ("x=w.npy,t=u.npy", "an example of x is 3 in --val and 2 in --data"),
        ("x=u.npy,t=u.npy", "an example of x is . in --val and 2 in --data"),
    ):
        np.save(tmp_path / "w.npy", np.ones((6, 3), np.float32))
        given = ("--data", "x=x.npy,t=u.npy", "--val", other, "--batch", "3", "--epochs", "1")
        done = i("train", "c.i", *given, cwd=tmp_path)
        assert done.returncode in (1, 2)
        assert says in done.stderr
    for file, data, says in cases:
        for more in ((), ("--debug-nan",)):
            done = i("train", file, "--data", data, "--batch", "3", *more, cwd=tmp_path)
            assert done.returncode == 1
            assert says in done.stderr
            assert (
                "help: mend the data" in done.stderr or "help: an index is at least" in done.stderr
            )


def test_data_of_other_axes_than_a_head_writes_is_refused(tmp_path: Path) -> None:
    """Not told of a batch, which the user has not cut."""
    text = MODEL.replace("cd step(x, t;", "cd step(x[b|i], t[b|o];")
    (tmp_path / "m.i").write_text(text, encoding="utf-8")
    np.save(tmp_path / "x.npy", np.ones(32, np.float32))
    np.save(tmp_path / "t.npy", np.ones((32, 2), np.float32))
    for data, code, words in (
        ("x=x.npy,t=t.npy", "E0762", "x of --data has 1 axis, 32, and step takes 2 axes, x[b|i]"),
        ("x=,t=t.npy", "E0824", "--data names no file for the input x"),
    ):
        done = i("train", "m.i", "--data", data, cwd=tmp_path)
        assert done.returncode in (1, 2)
        assert f"{code}]: {words}" in done.stderr
