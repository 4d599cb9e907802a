"""Wheels of compiled definitions: what is in them, and what they do where pip has installed them without `ilang`."""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import load
from ilang.codegen.project.wheel import distribution, write_wheel
from ilang.codegen.project.wheel_module import python_names
from ilang.core.diagnostic import CommandError, ToolError
from tests.unit.codegen.test_session_projects import PROGRAMS
from tests.unit.icli.front import i

pytestmark = [
    pytest.mark.usefixtures("shared_cache", "compiled_quickly"),
    pytest.mark.skipif(
        shutil.which("make") is None or shutil.which("cc") is None, reason="needs make and cc"
    ),
]

MODEL = """
matmul(a[m,k], b[k,n]) = ik*kj~ijk >> +ijk~ij
smooth(x[n,c], k[u]) = (y+u-1)c*u~ycu >> +ycu~yc
truth(a: bool[n], b: bool[n]) = i&&i~i
both(x: f64[n]) = +i~. & -i~i
four = 4
lambda(in[n], from[n]) = i*i~i
embed(ids: i64[b], table[v,d]) = b@vd~bd
"""
RNG = np.random.default_rng(5)
A, B, C = (RNG.standard_normal(shape, np.float32) for shape in ((3, 4), (4, 5), (7, 2)))
IDS = np.array([3, 0, 3])
CALLS: dict[str, tuple[Any, ...]] = {
    "matmul": (A, B),
    "smooth": (C, A[0]),
    "truth": (A[0] > 0, B[:, 0] > 0),
    "both": (A[0].astype(np.float64),),
    "four": (),
    "lambda": (A[0], A[1]),
    "embed": (IDS, B),
}
REFUSED: dict[str, tuple[str, tuple[Any, ...], type[Exception], str]] = {
    "shared extent": (
        "matmul", (A, B[:3]), ValueError,
        "matmul: b has shape (3, 5), and float32[k, n] is taken, where k = 4, n = 5",
    ),
    "rank": ("matmul", (A[0], B), ValueError, "matmul: a has shape (4,), and float32[m, k] is taken"),
    "type": (
        "matmul", (A.astype(float), B), TypeError,
        "matmul: a is an array of float64, and float32 is taken: a.astype('float32')",
    ),
    "fraction": (
        "embed", ([0, 0.5], B), TypeError, "embed: ids has 0.5, and int64 is taken",
    ),
    "text": (
        "matmul", (A, [["a", 2]]), TypeError,
        "matmul: b is no array of numbers, and float32[k, n] is taken: [['a', 2]]",
    ),
    "rows of several lengths": (
        "matmul", ([[1, 2], [3]], B), TypeError,
        "matmul: a is no array of numbers, and float32[m, k] is taken: [[1, 2], [3]]",
    ),
    "none": (
        "smooth", (C, None), TypeError,
        "smooth: k is no array of numbers, and float32[u] is taken: None",
    ),
    "window": (
        "smooth", (C[:2], np.ones(9, np.float32)), ValueError,
        "smooth: these extents do not fit: n = 2, c = 2, u = 9",
    ),
    "index": (
        "embed", (IDS + 1, B), IndexError, "embed: an index read from an array is out of range"
    ),
}  # fmt: skip
Built = Callable[..., Path]
"""Builds a wheel of a text: named, with further words of the command; the file."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    def build(text: str, named: str, *words: str) -> Path:
        folder = tmp_path_factory.mktemp("wheel")
        (folder / "model.i").write_text(text, encoding="utf-8")
        command = ("build", "model.i", "--wheel", named, *words, "-o", "dist")
        done = i(*command, cwd=folder, env={"CFLAGS": "-O1"})
        notes = [line for line in done.stderr.splitlines() if not line.startswith("the function")]
        assert (done.returncode, notes) == (0, [])
        return folder / done.stdout.strip()

    return build


@pytest.fixture(scope="module")
def wheel(built: Built) -> Path:
    return built(MODEL, "made-by-i==1.2rc3")


def installed(wheel: Path) -> Path:
    """The folder where pip has put a wheel, beside it."""
    folder = wheel.parent / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    if not folder.exists():
        subprocess.run([*command, "--target", str(folder), str(wheel)], check=True)
    return folder


@pytest.fixture
def package(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(installed(wheel)))
    return importlib.import_module("made_by_i")


def test_the_file_is_a_wheel_for_this_machine(wheel: Path) -> None:
    tag = f"py3-none-{re.sub('[-.]', '_', sysconfig.get_platform())}"
    assert wheel.name == f"made_by_i-1.2rc3-{tag}.whl"
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    info = "made_by_i-1.2rc3.dist-info"
    module = {"__init__.py", "_calls.py", "libmade_by_i.so", "py.typed"}
    assert {*files} == {
        *(f"made_by_i/{name}" for name in module),
        *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD")),
    }
    metadata = files[f"{info}/METADATA"].decode()
    assert "\nName: made-by-i\nVersion: 1.2rc3\n" in metadata
    assert re.findall("^Requires-Dist: (.*)$", metadata, re.MULTILINE) == ["numpy>=1.26"]
    assert f"\nTag: {tag}\n" in files[f"{info}/WHEEL"].decode()
    for line in files.pop(f"{info}/RECORD").decode().splitlines()[:-1]:
        name, digest, size = line.split(",")
        expected = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=")
        assert (digest, int(size)) == (f"sha256={expected.decode()}", len(files[name]))


def test_a_wheel_is_the_same_again(wheel: Path, built: Built) -> None:
    assert built(MODEL, "made-by-i==1.2rc3").read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize("tool", ["twine", "check_wheel_contents"])
def test_tools_find_no_fault(tool: str, wheel: Path) -> None:
    pytest.importorskip(tool, reason=f"{tool} is not installed")
    command = [sys.executable, "-m", tool, *(["check", "--strict"] if tool == "twine" else [])]
    done = subprocess.run([*command, str(wheel)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", CALLS)
def test_values_are_those_of_a_component(name: str, package: Any, tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(MODEL, encoding="utf-8")
    expected = load(tmp_path / "m.i")[name](*CALLS[name])
    given = getattr(package, python_names([name])[name])(*CALLS[name])
    several = isinstance(expected, tuple)
    assert isinstance(given, tuple) is several
    pairs = zip(given, expected, strict=True) if several else [(given, expected)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-6)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case: str, package: Any) -> None:
    name, arrays, kind, message = REFUSED[case]
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        getattr(package, name)(*arrays)


def test_lists_and_strided_arrays_are_taken(package: Any) -> None:
    np.testing.assert_array_equal(package.lambda_([1, 2], [3, 4]), [3, 8])
    product = package.matmul(A[:, ::2], B[::2])
    np.testing.assert_allclose(product, A[:, ::2] @ B[::2], rtol=1e-5)
    assert package.matmul(A[:0], B).shape == (0, 5)


def test_a_function_says_what_it_does(package: Any) -> None:
    assert package.__version__ == "1.2rc3"
    assert package.__all__ == ["matmul", "smooth", "truth", "both", "four", "lambda_", "embed"]
    assert package.matmul.__doc__.splitlines()[0] == "matmul: out[i,j] = sum_k a[i,k]*b[k,j]"
    assert package.embed.__annotations__["ids"] == "_NDArray[_np.int64]"


def test_a_wheel_needs_numpy_alone(wheel: Path, tmp_path: Path) -> None:
    text = (
        "import sys, numpy, made_by_i\n"
        "before = {*sys.modules}\n"
        "print(made_by_i.lambda_([1, 2], [3, 4]))\n"
        "print([name for name in {*sys.modules} if name.partition('.')[0] in ('ilang', 'cffi')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": str(installed(wheel))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[3. 8.]\n[]\n", "")


@pytest.mark.deep
def test_type_checkers_know_functions(wheel: Path, tmp_path: Path) -> None:
    text = "import made_by_i\nreveal_type(made_by_i.both)\nmade_by_i.matmul(1)\n"
    (tmp_path / "use.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "use.py"],
        env={**os.environ, "MYPYPATH": str(installed(wheel))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    float64 = r"numpy\.ndarray\[[^\n]*float64\]\]"
    assert re.search(rf"def \(x: {float64}\) -> tuple\[{float64}, {float64}\]", done.stdout)
    assert 'Missing positional argument "b"' in done.stdout
    assert "made_by_i/" not in done.stdout, "the package itself has no fault"


class TestSessions:
    """Definitions that keep parameters and state."""

    @pytest.fixture
    def of(self, built: Built, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
        def imported(name: str) -> Any:
            text, definition, shapes = PROGRAMS[name]
            words = [w for each, rows in shapes.items() for w in ("--shape", f"{each}={rows}")]
            wheel = built(text, f"of_{name}", "--def", definition, *words)
            monkeypatch.syspath_prepend(str(installed(wheel)))
            return getattr(importlib.import_module(f"of_{name}"), definition)

        return imported

    @pytest.mark.parametrize(
        "name", ["momentum", *(pytest.param(each, marks=pytest.mark.deep) for each in PROGRAMS)]
    )
    def test_runs_are_those_of_python(
        self, name: str, of: Callable[..., Any], tmp_path: Path
    ) -> None:
        text, definition, shapes = PROGRAMS[name]
        (tmp_path / "m.i").write_text(text, encoding="utf-8")
        other = load(tmp_path / "m.i").session(definition, shapes=shapes, seed=4)
        one = of(name)(4)
        rng = np.random.default_rng(1)
        arrays = [
            rng.integers(0, 5, p.dims) if p.dtype == "int64" else rng.random(p.dims).astype(p.dtype)
            for p in one.table.ports.inputs
        ]
        for _ in range(3):
            given, expected = one(*arrays), other(*arrays)
            several = isinstance(expected, tuple)
            for a, b in zip(given, expected, strict=True) if several else [(given, expected)]:
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
        assert one.runs == other.runs == 3
        for mine, its in ((one.parameters, other.parameters), (one.state, other.state)):
            assert [*mine] == [*its]
            for path in mine:
                np.testing.assert_allclose(mine[path], its[path], rtol=1e-4, atol=1e-6)

    def test_a_session_is_changed_saved_and_shared(
        self, built: Built, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        text = PROGRAMS["momentum"][0]
        words = ("--def", "step", "--def", "mlp", "--shape", "step.x=4|3,step.t=4|2,mlp.x=n|3")
        monkeypatch.syspath_prepend(str(installed(built(text, "shared", *words))))
        shared = importlib.import_module("shared")
        x, t = np.ones((4, 3), np.float32), np.ones((4, 2), np.float32)
        step = shared.step(seed=2)
        assert step.config["lr"] == np.float32(0.1)
        step.config["lr"] = 0.0
        before = dict(step.parameters)
        step(x, t)
        for path, array in before.items():
            np.testing.assert_array_equal(step.parameters[path], array)
        step.config["lr"] = 0.1
        step(x, t)
        net = shared.mlp(parameters=step)
        step.parameters["mlp.c"] = [5, 7]
        np.testing.assert_array_equal(net.parameters["c"], [5, 7])
        assert net(x[:2]).shape == (2, 2)
        step.save(tmp_path / "step.safetensors")
        alone = shared.mlp(seed=9)
        alone.load(tmp_path / "step.safetensors")
        np.testing.assert_array_equal(alone(x), net(x))
        with pytest.raises(
            OSError, match=r"mlp\.load\('.*none'\): a file cannot be written or read"
        ):
            alone.load(tmp_path / "none")
        with pytest.raises(ValueError, match=r"mlp\.c has shape \(2,\), and the array \(3,\)"):
            step.parameters["mlp.c"] = [1, 2, 3]
        with pytest.raises(KeyError, match=r"mlp\.d is none of .*mlp\.c"):
            step.parameters["mlp.d"] = 1
        assert "mlp.c: float32[2]" in repr(step.parameters)
        for seed in (-1, 2**64):
            with pytest.raises(ValueError, match="a seed is a whole number"):
                shared.mlp(seed=seed)
        with pytest.raises(ValueError, match=r"step: x has shape \(5, 3\)"):
            step(np.ones((5, 3), np.float32), t)


@pytest.mark.parametrize(
    ("text", "message", "help_line"),
    [
        ("", "(empty) cannot be", "--wheel model==1"),
        ("1st", "1st cannot be", "--wheel model_1st==1"),
        ("json", "json cannot be", "--wheel model_json==1"),
        ("numpy==2", "numpy cannot be", "--wheel model_numpy==2"),
        ("my model", "my model cannot be", "--wheel my_model==1"),
        ("zoë==2", "zoë cannot be", "--wheel zo==2"),
        ("digits==one", "one is no version", "--wheel digits==1.0"),
        ("digits=1", "digits=1 cannot be", "--wheel digits_1==1"),
    ],
)
def test_names_that_are_refused(text: str, message: str, help_line: str) -> None:
    with pytest.raises(CommandError) as caught:
        distribution(text)
    assert caught.value.code == "E0832"
    assert message in caught.value.message
    assert help_line in (caught.value.help or "")


def test_a_file_where_the_folder_belongs_is_kept(tmp_path: Path) -> None:
    place = tmp_path / "dist"
    place.write_text("notes")
    with pytest.raises(ToolError, match="E0911"):
        write_wheel([], place, "", ("digits", "1"))
    assert place.read_text() == "notes"


def test_names_that_are_taken() -> None:
    assert distribution("my-model==2024.1.post1") == ("my-model", "2024.1.post1")
    assert distribution("digits") == ("digits", "1")


def test_a_compiler_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(MODEL, encoding="utf-8")
    done = i("build", "m.i", "--wheel", "w", cwd=tmp_path, env={"CC": "false"})
    assert done.returncode == 3
    assert "error[E0903]: the library of a wheel does not compile" in done.stderr
    assert not (tmp_path / "out").exists()
