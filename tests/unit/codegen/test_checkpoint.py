"""Checkpoints: what a session saves, what it loads, and what files are refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import Error, load
from ilang.codegen.session import checkpoint

pytestmark = pytest.mark.usefixtures("shared_cache")

STEP = """
op mlp(x) = "v" * ?/("w" * x + "b" 6) + "c" 2
cd sgd(p; lr) {
  "velocity" =: 0.5 *. velocity + p.grad
  p =- lr *. velocity
}
cd step(x, t; lr = 0.1) {
  d = mlp(x) - t
  loss = 0.5 *. (d *. d ++ "...|... => 0")
  backprop(loss)
  for p in params(loss) { sgd(p; lr = lr) }
  return loss
}
"""
DRAW = np.random.default_rng(3)
X, T = DRAW.standard_normal((4, 3), np.float32), DRAW.standard_normal((4, 2), np.float32)


@pytest.fixture
def module(tmp_path: Path) -> Any:
    (tmp_path / "model.i").write_text(STEP, encoding="utf-8")
    return load(tmp_path / "model.i")


def session(module: Any, seed: int = 0) -> Any:
    return module.session("step", {"x": "4|3", "t": "4|2"}, seed=seed)


@pytest.mark.parametrize("name", ["run.safetensors", "run.npz"])
def test_training_goes_on_bit_by_bit(name: str, module: Any, tmp_path: Path) -> None:
    one, other = session(module), session(module, seed=9)
    for _ in range(3):
        one(x=X, t=T)
    one.save(tmp_path / name, {"epoch": "3"})
    notes = other.load(tmp_path / name)
    assert notes == {"definition": "step", "runs": "3", "seed": "0", "epoch": "3"}
    assert other.runs == 3
    for _ in range(3):
        assert (one(x=X, t=T) == other(x=X, t=T)).all()
    for arrays, same in ((one.parameters, other.parameters), (one.state, other.state)):
        assert len(arrays) == 4
        assert all((arrays[path] == same[path]).all() for path in arrays)
    files = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert files == ["model.i", name], "nothing half-written is left"


@pytest.mark.parametrize("name", ["run.safetensors", "run.npz"])
def test_a_part_loads_what_the_whole_has_saved(name: str, module: Any, tmp_path: Path) -> None:
    step = session(module)
    step(x=X, t=T)
    step.save(tmp_path / name)
    predict = module.session("mlp", {"x": "4|3"})
    assert list(predict.parameters) != list(step.parameters)
    predict.load(tmp_path / name)
    assert (predict.parameters["w"] == step.parameters["mlp.w"]).all()
    predict.save(tmp_path / f"parameters_{name}")
    step.load(tmp_path / f"parameters_{name}")
    assert not any(values.any() for values in step.state.values()), "no state in the file: zeros"


def test_a_file_is_safetensors_as_others_read_it(module: Any, tmp_path: Path) -> None:
    s = session(module)
    s.save(tmp_path / "run.safetensors")
    data = (tmp_path / "run.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0
    header = json.loads(data[8 : 8 + length])
    entry = header["mlp.w"]
    begin, end = (8 + length + at for at in entry["data_offsets"])
    values = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    assert entry["dtype"] == "F32"
    assert (values == s.parameters["mlp.w"]).all()


def damaged(data: bytes) -> dict[str, bytes]:
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])

    def with_header(**entries: Any) -> bytes:
        text = json.dumps({**header, **entries}).encode()
        return struct.pack("<Q", len(text)) + text + data[8 + length :]

    first = header["mlp.w"]
    begin, end = first["data_offsets"]
    return {
        "empty": b"",
        "short": data[:5],
        "header cut": data[:40],
        "elements cut": data[:-1],
        "elements too many": data + b"\0",
        "no header": struct.pack("<Q", 2**60) + data[8:],
        "no JSON": data[:8] + b"x" * length + data[8 + length :],
        "a list": struct.pack("<Q", 2) + b"[]",
        "half floats": with_header(**{"mlp.w": {**first, "dtype": "F16"}}),
        "a shape of texts": with_header(**{"mlp.w": {**first, "shape": ["a"]}}),
        "a negative extent": with_header(**{"mlp.w": {**first, "shape": [-6, -3]}}),
        "another shape": with_header(**{"mlp.w": {**first, "shape": [6, 4]}}),
        "overlap": with_header(**{"mlp.w": {**first, "data_offsets": [begin + 4, end + 4]}}),
        "no places": with_header(**{"mlp.w": {"dtype": "F32", "shape": [6, 3]}}),
        "notes of numbers": with_header(__metadata__={"runs": 3}),
    }


def refusal(path: Path) -> str | None:
    """The code that says what is wrong with a file, None where nothing is."""
    try:
        checkpoint.read(str(path))
    except Error as error:
        return error.code
    return None


def test_broken_files_are_refused_and_change_nothing(module: Any, tmp_path: Path) -> None:
    s = session(module)
    path = tmp_path / "run.safetensors"
    s.save(path)
    data = path.read_bytes()
    before = {name: values.copy() for name, values in s.parameters.items()}
    for what, text in damaged(data).items():
        path.write_bytes(text)
        with pytest.raises(Error) as caught:
            s.load(path)
        assert caught.value.code == "E0761", what
    draw = np.random.default_rng(0)
    for _ in range(300):
        flawed = bytearray(data[: draw.integers(len(data) + 1)])
        for at in draw.integers(0, max(1, len(flawed)), 3):
            flawed[at : at + 1] = bytes([draw.integers(256)])
        path.write_bytes(flawed)
        assert refusal(path) in (None, "E0761")
    assert all((before[name] == values).all() for name, values in s.parameters.items())


def test_what_does_not_fit_is_refused(module: Any, tmp_path: Path) -> None:
    s = session(module)
    good = {path: values.copy() for path, values in s.parameters.items()}
    cases = {
        "E0760": {name: good[name] for name in list(good)[1:]},
        "E0754": {**good, "mlp.w": np.zeros((6, 4), np.float32)},
        "E0758": {**good, "mlp.w": good["mlp.w"].astype(np.float64)},
    }
    for code, arrays in cases.items():
        checkpoint.write(str(tmp_path / "x.safetensors"), arrays, {"definition": "mlp"})
        with pytest.raises(Error) as caught:
            s.load(tmp_path / "x.safetensors")
        assert caught.value.code == code
    with pytest.raises(Error) as caught:
        s.load(tmp_path / "absent.safetensors")
    assert caught.value.code == "E0725"
    with pytest.raises(Error) as caught:
        s.save(tmp_path / "nowhere" / "x.safetensors")
    assert caught.value.code == "E0731"
    assert all((good[name] == values).all() for name, values in s.parameters.items())
