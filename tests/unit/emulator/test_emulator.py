"""The emulator itself: translation, profile, device, fibers of both kinds; and nvcc on the same text."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ilang.codegen.call.native import Native
from ilang.codegen.compile import cache
from ilang.codegen.emulator.program import emulated, load
from ilang.codegen.emulator.recipes import identity, object_recipe, runtime_recipe
from ilang.codegen.emulator.runtime import DEFAULTS, Emulator
from ilang.codegen.emulator.translate import translate
from ilang.core.diagnostic import DataError, ToolError
from tests.property.growth import PROPORTIONAL, times_as_long
from tests.unit.emulator.conftest import HERE, new_array, on_device, program


def body(text: str) -> str:
    """What a text is translated to, without the line that names its file."""
    return translate(text, "x.cu").partition("\n")[2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k<<<1, 32>>>();", '::cuda_emulator::Configured("k", 1, 32)(k);'),
        (
            "ns::k<a, 2><<<dim3(1, 2), f(x), 0, s>>>(p, g(1, 2));",
            '::cuda_emulator::Configured("ns::k<a, 2>", dim3(1, 2), f(x), 0, s)(ns::k<a, 2>, p, g(1, 2));',
        ),
        ("k<<<1,\n    2>>>(\n  x);", '::cuda_emulator::Configured("k", 1,\n    2)(k, \n  x);'),
        ("__shared__ float a[2][N + 1];", "auto& a = ::cuda_emulator::shared<float[2][N+1], 0>();"),
        (
            "static __shared__ unsigned int n;",
            "auto& n = ::cuda_emulator::shared<unsigned int, 0>();",
        ),
        (
            "extern __shared__ __align__(16) float a[];",
            "float* const a = (float*)::cuda_emulator::dynamic_shared();",
        ),
        ("// k<<<1, 2>>>(x)\n", "// k<<<1, 2>>>(x)\n"),
        ('f("__shared__ a<<<b>>>;");', 'f("__shared__ a<<<b>>>;");'),
        ('R"(<<<)"; x = 1\'000;', 'R"(<<<)"; x = 1\'000;'),
        ("#define L k<<<1, 2>>>()\n", "#define L k<<<1, 2>>>()\n"),
    ],
)
def test_translation(text: str, expected: str) -> None:
    assert body(text) == expected


def test_long_texts_are_translated_as_quickly_as_they_are_long() -> None:
    """No launch looks through all that stands before it."""

    def translated(launches: int) -> None:
        text = "void f() { k<<<1, 32>>>(x, y); }\nint some_name, another;\n" * launches
        assert body(text).count("Configured") == launches

    assert times_as_long(translated, 5000) < PROPORTIONAL


def test_lines_stay_where_they_are() -> None:
    for name in ("kernels.cu", "bugs.cu"):
        text = (HERE / name).read_text("utf-8")
        lines, translated = text.splitlines(), body(text).splitlines()
        assert len(lines) == len(translated)
        kept = [line for line in lines if "<<<" not in line and "__shared__" not in line]
        assert set(kept) <= set(translated)


@pytest.mark.parametrize(
    "text",
    [
        "__shared__ float a[2], b[3];",
        "__shared__ float a = 1;",
        "__shared__ float (*a)[3];",
        "k<<<1, 2>>>;",
        "(*k)<<<1, 2>>>(x);",
        "k<<<1, 2(x);",
    ],
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ToolError, match="E0920") as refusal:
        translate(f"void f() {{\n  {text}\n}}", "x.cu")
    assert "--> x.cu:2:" in str(refusal.value)


@pytest.mark.usefixtures("machine")
def test_what_is_no_cuda_is_an_error_of_the_compiler() -> None:
    with pytest.raises(ToolError, match="E0903"):
        load("__global__ void k() { undeclared(); }")


def test_profile(machine: Emulator) -> None:
    """Sectors and cycles of banks of three transposes: strided writes, an unpadded tile, a padded one."""
    kernels = program("kernels.cu", checked=True)
    x, y = on_device(np.zeros((64, 64), np.float32)), new_array((64, 64), np.float32)
    worst = []
    for kind in range(3):
        with machine.settings(profile=1):
            assert kernels.call("transpose", x, y, 64, 64, kind) == 0
        traffic = machine.take_profile()
        assert {t.file for t in traffic} == {"kernels.cu"}
        assert {t.lanes / t.requests for t in traffic} == {32}
        worst.append(
            tuple(
                max([t.ratio() for t in traffic if t.space == space], default=0)
                for space in ("global", "shared")
            )
        )
    assert worst == [(8, 0), (1, 32), (1, 1)]
    assert machine.take_profile() == ()


def test_settings_are_those_of_the_runtime() -> None:
    table = (HERE.parents[2] / "codegen/emulator/cpp/settings.cpp").read_text("utf-8")
    assert sorted(re.findall(r'{"(\w+)", "I_EMULATOR', table)) == sorted(DEFAULTS)


def test_device_memory(machine: Emulator) -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    moved = on_device(x[:, ::-1])
    assert (moved.get() == x[:, ::-1]).all()
    interface = moved.__cuda_array_interface__
    assert interface["shape"] == (2, 3)
    assert interface["typestr"] == "<i4"
    assert interface["data"] == (moved.address, False)
    assert emulated().holds(moved.address + 23)
    assert not emulated().holds(moved.address + 24)
    assert not emulated().holds(x.ctypes.data)
    assert repr(moved) == "<DeviceArray int32[2, 3] on the emulated GPU>"
    assert on_device(np.zeros((0, 3))).get().shape == (0, 3)
    with machine.settings(memory=1000), pytest.raises(DataError, match="E0713"):
        new_array((1001,), np.bool_)


def test_fibers_of_the_system() -> None:
    """Where no switch is written in assembly, fibers are those of the C library: they run as the others do."""
    text = f"// {identity()}\n{(HERE / 'fibers.cpp').read_text('utf-8')}"
    for ucontext in (False, True):
        compiled = cache.library(text, object_recipe(ucontext), cache.content_of)
        linked = f"// {identity()}, fibers of the C library: {ucontext}\n"
        library = cache.library(linked, runtime_recipe(compiled), Native)
        assert library.call("run_fibers") == 0


@pytest.mark.skipif(not hasattr(os, "RTLD_DEEPBIND"), reason="loads no library alone")
def test_functions_of_another_runtime_are_not_called(tmp_path: Path) -> None:
    """PyTorch makes a runtime of CUDA known to the whole process, which finds no GPU where there is none."""
    names = ("cudaMalloc", "cudaMemcpy", "cudaMemcpyAsync", "cudaGetLastError", "cudaGetDevice")
    text = "".join(f"int {name}(void) {{ return 35; }}\n" for name in names)
    (tmp_path / "other.c").write_text(text, encoding="utf-8")
    command = ["g++", "-x", "c", "other.c", "-shared", "-fPIC", "-o", "other.so"]
    subprocess.run(command, check=True, cwd=tmp_path)
    code = (
        "import ctypes, numpy as np; from ilang import i\n"
        "ctypes.CDLL('./other.so', mode=ctypes.RTLD_GLOBAL)\n"
        "print(i('+ij~i')(np.ones((2, 3), np.float32), target='cuda-emulated'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[3. 3.]\n", "")


NVCC = shutil.which("nvcc")


@pytest.mark.deep
@pytest.mark.skipif(
    NVCC is None, reason="nvcc is not on the path: `make test` needs no CUDA toolkit"
)
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["kernels.cu", "bugs.cu"])
def test_nvcc_takes_the_same_text(name: str, arch: str, tmp_path: Path) -> None:
    command = ["nvcc", "-std=c++17", f"-arch={arch}", "-Werror", "all-warnings", "-cubin"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "x.cubin"), str(HERE / name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
