"""Sessions in C: projects that pass their own test, the same first values and steps as in Python, the same files."""

from __future__ import annotations

import ctypes
import functools
import json
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import load
from ilang.codegen.call.arguments import NUMPY_TYPES
from ilang.codegen.project.sessions import exported, solved
from ilang.codegen.session.model import rows_of
from ilang.codegen.targets.session import TITLES, EmittedSession
from ilang.icli.main import main

pytestmark = [
    pytest.mark.deep,
    pytest.mark.usefixtures("real_compiler", "shared_cache"),
    pytest.mark.skipif(
        shutil.which("make") is None or shutil.which("cc") is None, reason="needs make and cc"
    ),
]

SGD = """
cd sgd(p; lr, momentum = 0.0) {
  "delta" =: p.grad
  if momentum > 0 { "velocity" =: momentum *. velocity + delta; delta =: velocity }
  p =- lr *. delta
}
"""
STEP = f"""
op layer(x; hid) = ?/("w" * x + "b" hid)
op mlp(x; out = 2) = "v" * layer(layer(x; 6); 5) + "c" out
{SGD}
cd step(x, t; lr = 0.1) {{
  d = mlp(x) - t
  loss = 0.5 *. (d *. d ++ "...|... => 0")
  backprop(loss)
  for p in params(loss) {{ sgd(p; lr = lr, momentum = 0.5) }}
  return loss
}}
"""
LITERALS = 'op f(x; by = 3) = "a" [ (-4, 2.5, 1); (2, 0, 1) ] * (by *. x) + "b" 0.5 + [ 7; 8 ] *. [ 7; 8 ]\n'
WIDE = f"""{SGD}
cd f(x: f64) {{ y = "w" * x + "b" 2; backprop(y); sgd(w; 0.5); return y, w }}
"""
TOKENS = f"""{SGD}
row(n: i64[b], t[v,d]) = b@vd~bd
cd f(x: i64[b|]; lr = 0.5) {{
  h = tanh(row(x, "table" (7, 4)))
  loss = h *. h ++ "...|... => 0"
  backprop(loss)
  for p in params(loss) {{ sgd(p; lr) }}
  return loss
}}
"""
RANKS = f"""{SGD}
cd step(x; lr = 0.1) {{
  y = tanh("w" * x + "b" 2) ++ "...|... => 0"
  backprop(y)
  for p in params(y) {{ p.grad =+ p.grad.merge; p.grad =/ ranks; sgd(p; lr, momentum = 0.5) }}
  "all" =: y + y.merge
  "more" =: x + x.merge
  return all, more
}}
"""
"""Alone there is one, whatever is merged."""
PROGRAMS = {
    "momentum": (STEP, "step", {"x": "4|3", "t": "4|2"}),
    "forward": (STEP, "mlp", {"x": "4|3"}),
    "literals": (LITERALS, "f", {"x": "4|3"}),
    "wide": (WIDE, "f", {"x": "4|3"}),
    "counter": (
        'cd f(x) { "n" =: n + 1; "total" =+ x ++ "...|i => i"; return total }\n',
        "f",
        {"x": "4|3"},
    ),
    "tokens": (TOKENS, "f", {"x": "5|"}),
    "ranks": (RANKS, "step", {"x": "4|3"}),
    "kept": ('op f(x) { "m" 0.5 =: m + (x ++ "b|i => i"); "w" *. x - m }\n', "f", {"x": "4|2"}),
    "unread": ('op f(x, y) { _ = x + y; "w" 2 + x }\n', "f", {"x": "4|2", "y": "4|2"}),
}
"""Text, definition, shapes."""
NOISE = """
use nn, optim
cd f(t: i64[b, s|], y: i64[b, s|]; lr = 0.01) {
  loss = cross_entropy_sum_at(attention(layer_norm(embedding(t; 9, 8);); 2, 4, 5), y) /. 24
  backprop(loss)
  for p in params(loss) { adam(p; lr) }
  return loss
}
"""
PROJECTS = {**PROGRAMS, "noise": (NOISE, "f", {"t": "4,6|", "y": "4,6|"})}
"""With one that only its own test can judge: Adam makes of the gradient 0, of the bias of keys, what roundings give."""


def built(name: str, folder: Path) -> Path:
    """The folder of a project."""
    text, definition, shapes = PROJECTS[name]
    (folder / "model.i").write_text(text, encoding="utf-8")
    words = [word for each, shape in shapes.items() for word in ("--shape", f"{each}={shape}")]
    out = folder / "out"
    command = ["build", str(folder / "model.i"), "--prefix", "none"]
    assert main([*command, "--def", definition, *words, "-o", str(out)]) == 0
    return out


def made(folder: Path, *words: str) -> str:
    """What make prints."""
    done = subprocess.run(["make", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = [line for line in done.stderr.splitlines() if not line.startswith("the functions are ")]
    assert not told  # a compiler that warns
    return done.stdout


def test_a_project_begins_with_a_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own test compares what it begins with; state is there where the file has it."""
    text, definition, shapes = PROGRAMS["momentum"]
    file, values = tmp_path / "model.i", tmp_path / "trained.safetensors"
    file.write_text(text, encoding="utf-8")
    session = load(file).session(definition, shapes, seed=4)
    draw = np.random.default_rng(0)
    for _ in range(3):
        session(draw.standard_normal((4, 3), np.float32), draw.standard_normal((4, 2), np.float32))
    session.save(values)
    words = [word for each, shape in shapes.items() for word in ("--shape", f"{each}={shape}")]
    command = ["build", str(file), "--def", definition, *words, "-o", str(tmp_path / "out")]
    assert main([*command, "--load", str(values)]) == 0
    source = (tmp_path / "out/model.c").read_text("ascii")
    arrays = [*session.parameters.values(), *session.state.values()]
    tables = re.findall(r"_values_of_\w+\[\] = \{(.*?)\};", source, re.DOTALL)
    stored = [[float(word.strip(" \nf")) for word in table.split(",")] for table in tables]
    assert sorted(stored) == sorted(array.reshape(-1).tolist() for array in arrays)
    assert "3 runs: ok" in made(tmp_path / "out", "test", "CFLAGS=-O1")
    capsys.readouterr()
    other = [each.replace("|3", "|5") for each in command]
    assert main([*other, "--load", str(values)]) == 1
    assert "E0754" in capsys.readouterr().err


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_passes_its_test_without_a_warning(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = built(name, tmp_path)
    files = [Path(line).name for line in capsys.readouterr().out.split()]
    sources = ["model.h", "model.c", "model_support.h", "model_example.c"]
    assert files == [
        *sources, "Makefile", "CMakeLists.txt", "model_test.c", "model.pc", "README.md"
    ]  # fmt: skip
    said = made(out, "test", "CFLAGS=-O1 -std=c99 -Wall -Wextra -Werror")
    assert f"{PROJECTS[name][1]} 3 runs: ok" in said
    assert not list(out.glob("*.safetensors*")), "the test leaves no file"
    assert ": 3 runs\n" in made(out, "example", "CFLAGS=-O1 -std=c99 -Wall -Wextra -Werror")


@pytest.mark.parametrize("name", ["momentum", "wide", "counter"])
def test_a_project_runs_clean_under_sanitizers(name: str, tmp_path: Path) -> None:
    made(
        built(name, tmp_path),
        "test",
        "CFLAGS=-O0 -g -fsanitize=address,undefined -fno-sanitize-recover",
    )


def test_what_nothing_sums_is_for_one_rank(tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "MPI=1", "-n"], cwd=built("counter", tmp_path), capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode != 0
    assert "nothing in model is summed over ranks" in done.stderr


@pytest.mark.parametrize("change", ["0.5f + 0.001f", "seed + 1"])
def test_the_test_finds_what_is_wrong(change: str, tmp_path: Path) -> None:
    out = built("literals" if "f" in change else "momentum", tmp_path)
    text = (out / "model.c").read_text()
    changed = text.replace("= 0.5f;", f"= {change};").replace(", seed, ", f", {change}, ")
    assert changed != text
    (out / "model.c").write_text(changed)
    done = subprocess.run(
        ["make", "test", "CFLAGS=-O0"], cwd=out, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "expected" in done.stdout


class InC:
    """A session of a project, called through a shared library."""

    def __init__(self, out: Path, one: EmittedSession, host: InC | None = None) -> None:
        self.session = session = one
        self.library = ctypes.CDLL(str(out / "libmodel.so"))
        self.model: Any = None if host is None else host.model
        if host is not None:
            return
        fields: list[tuple[str, Any]] = []
        for role in TITLES:
            for each in session.struct.kept:
                if each.role == role and role != "constant":
                    kind = np.ctypeslib.as_ctypes_type(NUMPY_TYPES[each.dtype])
                    fields.append((each.name, kind if each.is_field() else ctypes.c_void_p))
        fields += [(name, ctypes.c_uint64) for name in ("seed", *session.struct.counters)]
        fields += [(each.next, ctypes.c_void_p) for each in session.struct.kept if each.next]
        between = [each.name for each in session.struct.kept if each.role == "between"]
        fields += [(name, ctypes.c_void_p) for name in between]
        self.model = type(
            "Model", (ctypes.Structure,), {"_fields_": [*fields, ("work", ctypes.c_void_p)]}
        )()
        size = getattr(self.library, f"{session.name}_bytes")
        size.restype = ctypes.c_size_t
        self.memory = ctypes.create_string_buffer(size())

    def call(self, part: str, *words: Any) -> int:
        function = getattr(self.library, f"{self.session.name}_{part}")
        return int(function(ctypes.byref(self.model), *words))

    def init(self, seed: int) -> None:
        assert self.call("init", self.memory, ctypes.c_uint64(seed)) == 0

    def run(self, **arrays: Any) -> list[Any]:
        tensors = [self.session.tensors[name] for name in self.session.outputs]
        outs: list[Any] = [np.zeros(dims, NUMPY_TYPES[dtype]) for dtype, dims in tensors]
        given = [np.ascontiguousarray(arrays[name]) for name in self.session.inputs]
        assert self.call("run", *(ctypes.c_void_p(a.ctypes.data) for a in (*given, *outs))) == 0
        return outs

    def values(self, role: str) -> dict[str, Any]:
        found = {}
        for each in self.session.kept:
            if each.role == role:
                place = getattr(self.model, each.name)
                data = ctypes.string_at(place, each.bytes()) if each.bytes() else b""
                found[each.path] = np.frombuffer(data, NUMPY_TYPES[each.dtype]).reshape(each.dims)
        return found


Pair = tuple[InC, Any, dict[str, Any]]
Pairing = Callable[[str, int], Pair]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Any]]:
    """The folder of a program's project, whose library is there, and the module of the program."""

    @functools.cache
    def library(name: str) -> tuple[Path, Any]:
        folder = tmp_path_factory.mktemp(name)
        out = built(name, folder)
        made(out, "all", "CFLAGS=-O0")
        return out, load(folder / "model.i")

    return library


@pytest.fixture
def pair(libraries: Callable[[str], tuple[Path, Any]]) -> Pairing:
    """A session in C, the same in Python, and arrays for both, by the name of a program and a seed."""

    def paired(name: str, seed: int) -> Pair:
        out, module = libraries(name)
        _, definition, shapes = PROGRAMS[name]
        rows = {each: rows_of(each, text) for each, text in shapes.items()}
        in_c = InC(out, exported([solved(module.model, definition, rows, {})])[1][0])
        in_c.init(seed)
        draw = np.random.default_rng(1)
        session = module.session(definition, shapes, seed=seed)
        arrays = {
            path: np.abs(draw.standard_normal(tensor.shape.memory())).astype(
                NUMPY_TYPES[tensor.dtype]
            )
            for path, tensor in session.inputs.items()
        }
        return in_c, session, arrays

    return paired


@pytest.mark.parametrize("seed", [0, 5, 2**64 - 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_first_values_and_steps_are_those_of_python(name: str, seed: int, pair: Pairing) -> None:
    in_c, session, arrays = pair(name, seed)
    for path, values in in_c.values("parameter").items():
        assert session.parameters[path].tobytes() == values.tobytes(), path
    for _ in range(4):
        returned = session(**arrays)
        expected = list(returned) if isinstance(returned, tuple) else [returned]
        for ours, theirs in zip(in_c.run(**arrays), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6)
    assert in_c.model.runs == 4
    kept = {**in_c.values("parameter"), **in_c.values("state"), **in_c.values("gradient")}
    for path, values in kept.items():
        np.testing.assert_allclose(values, session.value(path), 1e-5, 1e-6, err_msg=path)


def test_configuration_is_a_field(pair: Pairing) -> None:
    in_c, session, arrays = pair("momentum", 1)
    in_c.model.lr = session.config["lr"] = 0.25
    in_c.run(**arrays)
    session(**arrays)
    for path, values in in_c.values("parameter").items():
        np.testing.assert_allclose(values, session.parameters[path], 1e-5, 1e-6, err_msg=path)


@pytest.mark.parametrize("name", PROGRAMS)
def test_files_are_those_of_python(name: str, pair: Pairing, tmp_path: Path) -> None:
    in_c, session, arrays = pair(name, 2**63)
    in_c.run(**arrays)
    ours, theirs = tmp_path / "c.safetensors", tmp_path / "python.safetensors"
    assert in_c.call("save", str(ours).encode()) == 0
    session.load(ours)
    assert session.runs == 1
    for role, values in (("parameter", session.parameters), ("state", session.state)):
        for path, array in in_c.values(role).items():
            assert values[path].tobytes() == array.tobytes()
    session.save(theirs)
    assert ours.read_bytes() == theirs.read_bytes()
    session(**arrays)
    session.save(theirs, {"note": 'with "quotes" and \u00e9'})
    assert in_c.call("load", str(theirs).encode()) == 0
    assert in_c.model.runs == 2
    for role, values in (("parameter", session.parameters), ("state", session.state)):
        for path, array in in_c.values(role).items():
            assert values[path].tobytes() == array.tobytes()


def test_a_part_loads_what_the_whole_has_saved(pair: Pairing, tmp_path: Path) -> None:
    whole, _, arrays = pair("momentum", 3)
    part, _, _ = pair("forward", 4)
    whole.run(**arrays)
    file = str(tmp_path / "run.safetensors").encode()
    assert whole.call("save", file) == 0
    assert part.call("load", file) == 0
    for path, array in part.values("parameter").items():
        assert whole.values("parameter")[f"mlp.{path}"].tobytes() == array.tobytes()
    assert part.call("save", file) == 0
    whole.run(**arrays)
    assert any(values.any() for values in whole.values("state").values())
    assert whole.call("load", file) == 0
    for path, array in part.values("parameter").items():
        assert whole.values("parameter")[f"mlp.{path}"].tobytes() == array.tobytes()
    assert not any(values.any() for values in whole.values("state").values())


TOGETHER = f"""
op layer(x; hid) = ?/("w" * x + "b" hid)
op net(x) = "v" * layer(layer(x; 6); 5) + "c" 2
op other(x) = "v" * x + "c" 2
op loss_of(x, t) {{ d = net(x) - t; 0.5 *. (d *. d ++ "...|... => 0") }}
{SGD}
cd step(x, t; lr = 0.1) {{
  loss = loss_of(x, t)
  backprop(loss)
  for p in params(loss) {{ sgd(p; lr, momentum = 0.5) }}
  return loss
}}
cd held(x, t; lr = 2) {{ loss = loss_of(x, t) *. lr; "total" =+ loss; return total }}
cd scaled(x; lr = 0.5) {{ y = net(x) ++ "...|... => 0"; backprop(y); for p in params(y) {{ p =* lr }} }}
"""
SHAPES = {
    "net": {"x": "1|3"},
    "held": {"x": "2|3", "t": "2|2"},
    "step": {"x": "4|3", "t": "4|2"},
    "scaled": {"x": "3|3"},
    "other": {"x": "4|5"},
}


def test_sessions_of_the_same_parameters_have_one_struct(tmp_path: Path) -> None:
    """What one trains others compute with: as sessions of Python do that are made with its parameters."""
    (tmp_path / "model.i").write_text(TOGETHER)
    words = [f"--shape={name}.{x}={text}" for name in SHAPES for x, text in SHAPES[name].items()]
    words += ["--prefix=none", *(f"--def={name}" for name in SHAPES)]
    out = tmp_path / "out"
    assert main(["build", str(tmp_path / "model.i"), *words, "-o", str(out)]) == 0
    said = made(out, "all", "test", "CFLAGS=-O1 -Wall -Wextra -Werror")
    assert "model: all 10 tests passed" in said
    module = load(tmp_path / "model.i")
    rows = {name: {x: rows_of(x, text) for x, text in SHAPES[name].items()} for name in SHAPES}
    _, every = exported([solved(module.model, name, rows[name], {}) for name in SHAPES])
    assert [each.struct.name for each in every] == [*["step"] * 4, "other"]
    host = InC(out, every[0])
    host.init(3)
    in_c = {each.name: InC(out, each, host) for each in every[:4]}
    python: dict[str, Any] = {"step": module.session("step", SHAPES["step"], seed=3)}
    for name in ("net", "held", "scaled"):
        python[name] = module.session(name, SHAPES[name], parameters=python["step"])
    draw = np.random.default_rng(1)
    for name in ("step", "net", "held", "step", "scaled", "net", "held", "step", "net"):
        arrays = {
            path: draw.standard_normal(tensor.shape.memory()).astype(np.float32)
            for path, tensor in python[name].inputs.items()
        }
        expected = python[name](**arrays)
        for got, want in zip(
            in_c[name].run(**arrays), [expected] * (expected is not None), strict=True
        ):
            np.testing.assert_allclose(got, want, 1e-5, 1e-6)
    counts = [getattr(host.model, each) for each in host.session.struct.counters]
    assert counts == [python[name].runs for name in in_c]
    for name, one in in_c.items():
        ours, theirs = str(tmp_path / "c"), tmp_path / "python.safetensors"
        assert one.call("save", ours.encode()) == 0
        loaded = module.session(name, SHAPES[name])
        assert loaded.load(ours)["definition"] == name
        python[name].save(theirs)
        for path, values in python[name].parameters.items():
            np.testing.assert_allclose(loaded.parameters[path], values, 1e-5, 1e-6)
        assert one.call("load", str(theirs).encode()) == 0


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_arrays_stand_in_the_order_of_the_head(target: str, tmp_path: Path) -> None:
    """In whatever order the text reads them, with parameters and without."""
    file, out = tmp_path / "model.i", tmp_path / "out"
    file.write_text('op f(x, y) = y -. x *. 2\ncd g(a, b, c) { l = c *. b + "w" + a; return l }\n')
    shapes = [f"--shape={name}=3" for name in "xyabc"]
    assert main(["build", str(file), *shapes, "--target", target, "-o", str(out)]) == 0
    header = " ".join((out / "model.h").read_text().split())
    assert re.search(
        r"int model_f\( ?const model_f_sizes \*sizes, const float \*x, const float \*y, ", header
    )
    assert re.search(
        r"int model_g_run\([^)]*const float \*a, const float \*b, const float \*c, ", header
    )
    if target == "c":
        assert "all 3 tests passed" in made(out, "all", "test", "CFLAGS=-O1 -Wall -Wextra -Werror")


def test_an_input_may_only_be_compared(tmp_path: Path) -> None:
    """Its extents come with a run, and no program that computes something has them."""
    file, out = tmp_path / "m.i", tmp_path / "out"
    file.write_text('op net(x, k) { _ = k + 1; "w" * x + "b" 3 }\n')
    shapes = ["--shape=x=n|4", "--shape=k=m|2"]
    assert main(["build", str(file), *shapes, "-o", str(out)]) == 0
    assert "net 3 runs: ok" in made(out, "all", "test", "CFLAGS=-O1 -Wall -Wextra -Werror")


def test_sizes_may_come_with_a_run(tmp_path: Path) -> None:
    """Of what one example may be trained with, and any number predicted, in one struct."""
    (tmp_path / "model.i").write_text(TOGETHER)
    words = [
        "--def=net",
        "--def=step",
        "--shape=net.x=n|3",
        "--shape=step.x=b|3",
        "--shape=step.t=b|2",
    ]
    out = tmp_path / "out"
    assert main(["build", str(tmp_path / "model.i"), *words, "-o", str(out)]) == 0
    header = (out / "model.h").read_text()
    assert (
        "int model_net_run(model_step *model, const model_net_sizes *sizes, const float *x, float *out, void *work);"
        in " ".join(header.split()).replace("( ", "(")
    )
    assert "int64_t n;" in header
    assert "int64_t b;" in header
    assert "net 3 runs: ok" in made(out, "all", "test", "CFLAGS=-O1 -Wall -Wextra -Werror")
    module = load(tmp_path / "model.i")
    rows = {"net": {"x": rows_of("x", "n|3", words=True)}}
    rows["step"] = {x: rows_of(x, text, words=True) for x, text in (("x", "b|3"), ("t", "b|2"))}
    definitions = [solved(module.model, name, rows[name], {}) for name in rows]
    _, every = exported(definitions, prefix="model")
    host = InC(out, every[0])
    host.init(3)
    part = InC(out, every[1], host)
    draw = np.random.default_rng(1)
    python: Any = None
    other: Any = None
    got: Any = None
    for count in (4, 1, 7):
        x, t = (
            draw.standard_normal((count, 3), np.float32),
            draw.standard_normal((count, 2), np.float32),
        )
        last, shapes = python, {"x": f"{count}|3", "t": f"{count}|2"}
        python = module.session("step", shapes, seed=3)
        if last is not None:
            last.save(tmp_path / "last.safetensors")
            python.load(tmp_path / "last.safetensors")
        assert np.allclose(
            sized(host, count, x, t, out=np.zeros(1, np.float32)), python(x, t), 1e-5
        )
        other = draw.standard_normal((count + 2, 3), np.float32)
        net = module.session("net", {"x": f"{count + 2}|3"}, parameters=python)
        got = sized(part, count + 2, other, out=np.zeros((count + 2, 2), np.float32))
        np.testing.assert_allclose(got, net(other), 1e-4, 1e-5)
    assert sized(part, -1, other, out=got, status=3) is got


CLASSES = """
use nn
cd step(x, t: i64[b|]; lr = 0.1) {
  loss = cross_entropy_at(linear(x; 3), t)
  backprop(loss)
  for p in params(loss) { p =- lr *. p.grad }
  return loss
}
"""


def test_a_number_of_no_class_is_told_by_the_status(tmp_path: Path) -> None:
    (tmp_path / "model.i").write_text(CLASSES)
    words = ["--shape=x=2|4", "--shape=t=2|", "--prefix=none", "-o", str(tmp_path / "out")]
    assert main(["build", str(tmp_path / "model.i"), *words]) == 0
    made(tmp_path / "out", "all", "CFLAGS=-O0")
    module = load(tmp_path / "model.i")
    rows = {"x": rows_of("x", "2|4"), "t": rows_of("t", "2|")}
    one = InC(tmp_path / "out", exported([solved(module.model, "step", rows, {})])[1][0])
    one.init(3)
    before = {path: values.copy() for path, values in one.values("parameter").items()}
    x, loss = np.ones((2, 4), np.float32), np.full(1, 7, np.float32)
    for wrong in (3, -1):
        t = np.array([0, wrong], np.int64)
        assert one.call("run", *(ctypes.c_void_p(a.ctypes.data) for a in (x, t, loss))) == 4
    assert one.model.runs == 0
    assert loss.item() == 7
    for path, values in one.values("parameter").items():
        assert before[path].tobytes() == values.tobytes(), path
    one.run(x=x, t=np.array([0, 2]))


MEANS = """
use nn
op net(x[b|i]) = linear(x /. dim(x, "i"); 2)
cd step(x, t; lr = 0.1) {
  loss = squared_error(net(x), t) + (x ++ "...|... => 0") /. (dim(x, "b") + 1)
  backprop(loss)
  for p in params(loss) { p =- lr *. p.grad }
  return loss
}
"""
"""Extents that a run computes with: one is a number, the other comes with the run."""


def test_a_mean_is_over_as_many_examples_as_a_run_has(tmp_path: Path) -> None:
    (tmp_path / "model.i").write_text(MEANS)
    words = ["--shape=x=n|3", "--shape=t=n|2", "--prefix=none", "-o", str(tmp_path / "out")]
    assert main(["build", str(tmp_path / "model.i"), "--def=step", *words]) == 0
    said = made(tmp_path / "out", "all", "test", "CFLAGS=-O1 -Wall -Wextra -Werror")
    assert "step 3 runs: ok" in said
    module = load(tmp_path / "model.i")
    rows = {name: rows_of(name, text, words=True) for name, text in (("x", "n|3"), ("t", "n|2"))}
    one = InC(tmp_path / "out", exported([solved(module.model, "step", rows, {})])[1][0])
    one.init(3)
    session, draw = module.session("step", seed=3), np.random.default_rng(1)
    for count in (4, 1, 7):
        x, t = (draw.standard_normal((count, n), np.float32) for n in (3, 2))
        loss = sized(one, count, x, t, out=np.zeros(1, np.float32))
        np.testing.assert_allclose(loss, session(x, t), 1e-4)


def test_sizes_come_with_a_run_of_several_parts(tmp_path: Path) -> None:
    (tmp_path / "model.i").write_text("""
cd f(x) {
  "mean" =:+ x ~logic:"b,i => i"
  mean =+ mean.merge
  d = x - mean
  "var" =:+ d * d ~logic:"b,i; b,i => i"
  var =+ var.merge
  return d, var
}
""")
    out = tmp_path / "out"
    assert main(["build", str(tmp_path / "model.i"), "--shape=x=n,3", "-o", str(out)]) == 0
    said = made(out, "all", "test", "CFLAGS=-O1 -Wall -Wextra -Werror -fsanitize=address,undefined")
    assert "f 3 runs: ok" in said


def sized(one: InC, count: int, *arrays: Any, out: Any, status: int = 0) -> Any:
    """What a run of one size gives, its workspace as large as it says."""
    size, measured = ctypes.c_int64(count), getattr(one.library, f"{one.session.name}_work")
    measured.restype = ctypes.c_size_t
    room = measured(ctypes.byref(size))
    work = ctypes.create_string_buffer(1 if room == 2**64 - 1 else room + 1)
    given = [ctypes.c_void_p(each.ctypes.data) for each in (*arrays, out)]
    assert one.call("run", ctypes.byref(size), *given, work) == status
    return out


FIXED = {
    'cd f(x) { "s" =+ x; return s }': ("n|2", "s would have a size that comes at run time"),
    'op f(x) = "w" * x + "b" 2': ("n", "w would have a size that comes at run time"),
    'op f(x[b|n]) { _ = x; "w" 2 /. dim(x, "b") }': ("n|2", "the size of b comes at run time"),
    'cd f(x) { "z" =: x + x.merge; "w" =+ 1; return z }': ("n|2", "x.merge would have a size"),
}


@pytest.mark.parametrize("text", FIXED)
def test_sizes_of_what_lasts_are_fixed(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape, says = FIXED[text]
    (tmp_path / "model.i").write_text(text)
    command = [
        "build",
        str(tmp_path / "model.i"),
        f"--shape=x={shape}",
        "-o",
        str(tmp_path / "out"),
    ]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert "E0766" in said
    assert says in said


def changed(data: bytes, change: Any, more: str = "") -> bytes:
    """A file with another object, and more after it."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    text = (json.dumps(change(header)) + more).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def doubled(header: dict[str, Any]) -> dict[str, Any]:
    return {**header, "again": header["mlp.v"]}


def without(name: str) -> Any:
    return lambda header: {each: value for each, value in header.items() if each != name}


def renamed(name: str) -> Any:
    return lambda header: {f"{k}_" if k == name else k: v for k, v in header.items()}


def instead(name: str, **values: Any) -> Any:
    return lambda header: {**header, name: {**header[name], **values}}


BROKEN: dict[str, tuple[int, Any]] = {
    "empty": (6, lambda data: data[:0]),
    "short": (6, lambda data: data[:40]),
    "long header": (6, lambda data: b"\xff" * 8 + data[8:]),
    "no object": (6, lambda data: data[:8] + b"[" + data[9:]),
    "elements missing": (6, lambda data: data[:-4]),
    "a parameter missing": (7, lambda data: changed(data, renamed("mlp.v"))),
    "a state missing": (7, lambda data: changed(data, renamed("state.mlp.v.velocity"))),
    "bytes of no array": (6, lambda data: changed(data, without("mlp.v"))),
    "another shape": (7, lambda data: changed(data, instead("mlp.v", shape=[5, 2]))),
    "another type": (7, lambda data: changed(data, instead("mlp.v", dtype="I32"))),
    "places past the end": (
        6,
        lambda data: changed(data, instead("mlp.v", data_offsets=[0, 1 << 40])),
    ),
    "two objects": (6, lambda data: changed(data, lambda header: header, "{}")),
    "two arrays in one place": (6, lambda data: changed(data, doubled)),
    "no place": (6, lambda data: changed(data, instead("mlp.v", data_offsets=[-4, 36]))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_does_not_fit_changes_nothing(name: str, pair: Pairing, tmp_path: Path) -> None:
    in_c, session, arrays = pair("momentum", 0)
    session(**arrays)
    file = tmp_path / "run.safetensors"
    session.save(file)
    status, change = BROKEN[name]
    file.write_bytes(change(file.read_bytes()))
    before = {path: array.tobytes() for path, array in in_c.values("parameter").items()}
    assert in_c.call("load", str(file).encode()) == status
    assert before == {path: array.tobytes() for path, array in in_c.values("parameter").items()}
    assert in_c.model.runs == 0


def test_a_file_that_others_have_written(pair: Pairing, tmp_path: Path) -> None:
    """Blanks, another order, no notes."""
    in_c, session, arrays = pair("momentum", 0)
    session(**arrays)
    file = tmp_path / "run.safetensors"
    session.save(file)
    data = file.read_bytes()
    file.write_bytes(
        changed(
            data, lambda header: dict(sorted(without("__metadata__")(header).items(), reverse=True))
        )
    )
    assert in_c.call("load", str(file).encode()) == 0
    assert in_c.model.runs == 0
    for path, array in in_c.values("parameter").items():
        assert session.parameters[path].tobytes() == array.tobytes()


def test_nothing_half_written_is_left(pair: Pairing, tmp_path: Path) -> None:
    in_c, _, _ = pair("momentum", 0)
    assert in_c.call("save", str(tmp_path / "no" / "folder").encode()) == 5
    assert in_c.call("save", b"x" * 5000) == 5
    (tmp_path / "taken").mkdir()
    assert in_c.call("save", str(tmp_path / "taken").encode()) == 5
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.early
def test_a_transformer_learns_from_a_text(tmp_path: Path) -> None:
    """The sample that needs nothing but make, smaller: what it has learned is less than at first to be told."""
    chars = Path(__file__).resolve().parents[3] / "samples" / "training" / "chars"
    shutil.copytree(chars, tmp_path / "chars", ignore=shutil.ignore_patterns("project", "train"))
    folder = tmp_path / "chars"
    model = (folder / "chars.i").read_text()
    for large, small in (
        ("d = 48", "d = 16"),
        ("layers = 2", "layers = 1"),
        ("heads = 3", "heads = 1"),
    ):
        assert large in model
        model = model.replace(large, small)
    (folder / "chars.i").write_text(model)
    (folder / "data.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 50)
    command = f"{sys.executable} -m ilang"
    flags = "CFLAGS=-Og -Dalways_inline="  # quick to compile, and quick enough to train
    made(folder, f"I={command}", f"{flags} -Wall -Wextra -Werror")
    assert "step 3 runs: ok" in made(folder, "test", f"I={command}", flags)
    said = [trained(folder, "200"), trained(folder, "200")]
    first, last = (
        float(re.findall(r"loss (\S+)", text)[n]) for text, n in zip(said, (0, -1), strict=True)
    )
    assert last < first / 3
    assert "going on after step 200" in said[1]
    assert "step 400 " in said[1]
    assert "quick" in said[1].split("a step")[-1]


def trained(folder: Path, steps: str) -> str:
    done = subprocess.run(
        ["./train", "data.txt", steps], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_nothing_uses_is_built(tmp_path: Path) -> None:
    (tmp_path / "both.i").write_text(
        "use nn\nminus(x[i]) = -i~i\nop cell(x, s) = lstm_cell(x, s; 4)\nop net(x, s) = cell(2 *. x, s)\n"
    )
    shapes = ["--shape", "net.x=2|3", "--shape", "s=2|2,4"]
    assert main(["build", str(tmp_path / "both.i"), *shapes, "-o", str(tmp_path / "out")]) == 0
    header = (tmp_path / "out" / "both.h").read_text()
    assert "int both_minus(" in header
    assert "int both_net_run(" in header
    assert not re.search(r"\b(both_cell_run|both_pair_of)\b", header), (
        "what others use, and a library"
    )
