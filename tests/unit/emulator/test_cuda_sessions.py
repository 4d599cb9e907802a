"""Sessions in CUDA: a project whose test finds mistakes, and the numbers and files of Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import load as module_of
from ilang.codegen.call.native import Address, Native
from ilang.codegen.emulator.program import load
from ilang.codegen.project.sessions import exported, solved
from ilang.codegen.session.model import rows_of
from ilang.core.machine import GPU
from ilang.icli.main import main
from tests.unit.codegen.test_session_projects import CLASSES, MEANS, PROGRAMS, SGD, SHAPES, TOGETHER
from tests.unit.emulator.conftest import new_array, on_device
from tests.unit.emulator.test_nvcc import make

pytestmark = pytest.mark.deep

TABLES = f"""{SGD}
cd f(x: f64; lr = 0.1) {{
  y = "w" * x + "a" [ 1; 2 ] + "b" 0.25 + [ 7; 8 ] *. [ 7; 8 ]
  backprop(y)
  sgd(w; lr, momentum = 0.5)
  return y
}}
"""
"""All that arrays begin with: random numbers, numbers of the text as parameters and as constants, one number, zeros."""


def built(text: str, name: str, shapes: dict[str, str], folder: Path, *more: str) -> Path:
    """The folder of a project."""
    (folder / "model.i").write_text(text, "utf-8")
    words = [word for each, shape in shapes.items() for word in ("--shape", f"{each}={shape}")]
    command = ["build", str(folder / "model.i"), "--def", name, *words, *more, "--target", "cuda"]
    assert main([*command, "--prefix", "none", "-o", str(folder / "out")]) == 0
    return folder / "out"


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_project_passes_its_test_and_fails_it_where_it_is_wrong(tmp_path: Path) -> None:
    out = built(TABLES, "f", {"x": "4|3"}, tmp_path)
    done = make(out, "test", checked=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "f 3 runs: ok" in done.stdout
    assert done.stderr == ""
    assert not list(out.glob("*.safetensors*"))
    text = (out / "model.cu").read_text()
    assert ", 0.25, stream" in text
    (out / "model.cu").write_text(text.replace(", 0.25, stream", ", 0.375, stream"))
    done = make(out, "test", checked=False)
    assert done.returncode != 0
    assert "b[0] is 0.375, expected 0.25" in done.stdout


def test_sessions_of_the_same_parameters_have_one_struct(tmp_path: Path) -> None:
    shapes = {f"{name}.{x}": text for name in ("net", "step") for x, text in SHAPES[name].items()}
    out = built(TOGETHER, "step", shapes, tmp_path, "--def", "net")
    header, text = (out / "model.h").read_text(), (out / "model.cu").read_text()
    assert (
        "int net_run(step *model, const float *x, float *out, struct CUstream_st *stream);"
        in header
    )
    assert header.count("typedef struct step {") == 1
    assert not re.search(r"\bnet_(init|bytes)\b", header + text)


class OnDevice:
    """A session of a project, on the emulated device; every access of it is checked."""

    def __init__(self, out: Path, module: Any, name: str, shapes: dict[str, str]) -> None:
        rows = {each: rows_of(each, text, words=True) for each, text in shapes.items()}
        session = exported([solved(module.model, name, rows, {})], GPU)[1][0]
        include, header = '#include "model.h"', (out / "model.h").read_text()
        text = (out / "model.cu").read_text()
        assert include in text
        self.native: Native = load(text.replace(include, header), "model.cu", checked=True)
        self.name = name
        self.struct = np.zeros(1 << 10, np.uint8)
        self.settings = 8 * sum(
            each.role in ("parameter", "state", "gradient") for each in session.kept
        )
        size = self.native.call(f"{name}_bytes", gives="size")
        self.memory = new_array((size + 8,), np.uint8)

    def call(self, part: str, *words: Any) -> int:
        return int(self.native.call(f"{self.name}_{part}", self.struct, *words))

    def file(self, part: str, path: Path) -> int:
        return self.call(part, np.frombuffer(f"{path}\0".encode(), np.uint8), None)


def begun(folder: Path, seed: int) -> tuple[OnDevice, Any]:
    """A session of a program with state, and the same in Python."""
    text, name, shapes = PROGRAMS["momentum"]
    out = built(text, name, shapes, folder)
    module = module_of(folder / "model.i")
    ours = OnDevice(out, module, name, shapes)
    memory = Address(ours.memory.address + 8)
    assert ours.call("init", memory, np.uint64(seed), None) == 0
    return ours, module.session(name, shapes, seed=seed)


@pytest.mark.usefixtures("machine")
def test_first_values_runs_and_files_are_those_of_python(tmp_path: Path) -> None:
    ours, theirs = begun(tmp_path, 2**63 + 5)
    file, same, broken = (tmp_path / f"{name}.safetensors" for name in ("cuda", "python", "broken"))
    assert ours.file("save", file) == 0
    theirs.save(same)
    assert file.read_bytes() == same.read_bytes()

    x, t = np.linspace(-1, 1, 12, dtype=np.float32), np.linspace(0, 3, 8, dtype=np.float32)
    given, out = (on_device(x), on_device(t)), new_array((), np.float32)
    for lr in (0.1, 0.25):
        ours.struct[ours.settings :][:4] = np.frombuffer(np.float32(lr).tobytes(), np.uint8)
        theirs.config["lr"] = lr
        assert ours.call("run", *given, out, None) == 0
        np.testing.assert_allclose(out.get(), theirs(x.reshape(4, 3), t.reshape(4, 2)), 1e-5)
    assert ours.call("run", None, given[1], out, None) == 1
    assert ours.file("save", file) == 0
    kept = {path: array.copy() for path, array in {**theirs.parameters, **theirs.state}.items()}
    theirs.load(file)
    assert theirs.runs == 2
    for path, array in {**theirs.parameters, **theirs.state}.items():
        np.testing.assert_allclose(array, kept[path], 1e-5, 1e-6, err_msg=path)

    theirs(x.reshape(4, 3), t.reshape(4, 2))
    theirs.save(same)
    broken.write_bytes(same.read_bytes()[:-4])
    assert ours.file("load", broken) == 6
    assert ours.file("load", tmp_path / "none") == 5
    assert ours.file("load", same) == 0
    assert ours.file("save", file) == 0
    assert file.read_bytes() == same.read_bytes()


@pytest.mark.usefixtures("machine")
def test_a_number_of_no_class_is_told_by_the_status(tmp_path: Path) -> None:
    shapes = {"x": "2|4", "t": "2|"}
    ours = OnDevice(
        built(CLASSES, "step", shapes, tmp_path), module_of(tmp_path / "model.i"), "step", shapes
    )
    assert ours.call("init", Address(ours.memory.address + 8), np.uint64(3), None) == 0
    file, same = (tmp_path / f"{name}.safetensors" for name in ("before", "after"))
    assert ours.file("save", file) == 0
    x, loss = on_device(np.ones((2, 4), np.float32)), new_array((), np.float32)
    for wrong in (3, -1):
        assert ours.call("run", x, on_device(np.array([0, wrong])), loss, None) == 4
    assert ours.file("save", same) == 0
    assert file.read_bytes() == same.read_bytes()
    assert ours.call("run", x, on_device(np.array([0, 2])), loss, None) == 0


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_mean_is_over_as_many_examples_as_a_run_has(tmp_path: Path) -> None:
    out = built(MEANS, "step", {"x": "n|3", "t": "n|2"}, tmp_path)
    done = make(out, "test", checked=True)
    assert "step 3 runs: ok" in done.stdout, done.stdout + done.stderr


@pytest.mark.usefixtures("machine")
def test_sizes_may_come_with_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = {"x": "n|3", "t": "n|2"}
    out = built(TOGETHER, "step", shapes, tmp_path)
    done = make(out, "test", checked=True)
    assert "step 3 runs: ok" in done.stdout, done.stdout + done.stderr
    done = make(out, "example", checked=True)
    assert "step: 3 runs" in done.stdout, done.stdout + done.stderr
    monkeypatch.setenv("I_EMULATOR_DEVICES", "0")
    alone = subprocess.run([out / "model_example"], capture_output=True, text=True, check=False)
    assert (alone.returncode, alone.stderr) == (1, "no CUDA-capable device is detected\n")
    monkeypatch.delenv("I_EMULATOR_DEVICES")
    module = module_of(tmp_path / "model.i")
    ours = OnDevice(out, module, "step", shapes)
    assert ours.call("init", Address(ours.memory.address + 8), np.uint64(3), None) == 0
    draw, file = np.random.default_rng(1), tmp_path / "last.safetensors"
    size: Any = None
    theirs: Any = None
    given: Any = None
    loss = new_array((), np.float32)
    for count in (4, 1, 7):
        given = [draw.standard_normal((count, n), np.float32) for n in (3, 2)]
        size = np.array([count], np.int64)
        work = new_array((ours.native.call("step_work", size, gives="size"),), np.uint8)
        last, theirs = (
            theirs,
            module.session("step", {"x": f"{count}|3", "t": f"{count}|2"}, seed=3),
        )
        if last is not None:
            last.save(file)
            theirs.load(file)
        assert ours.call("run", size, *map(on_device, given), loss, work, None) == 0
        np.testing.assert_allclose(loss.get(), theirs(*given), 1e-5)
    host: Any = np.zeros((), np.float32)
    assert ours.call("run_host", size, *given, host) == 0
    np.testing.assert_allclose(host, theirs(*given), 1e-5)
    for wrong in (-1, 2**62):
        assert ours.call("run_host", np.array([wrong], np.int64), *given, host) == 3
