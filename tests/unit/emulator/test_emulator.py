"""The emulator itself: translation, profile, device, fibers of both kinds; and nvcc on the same text."""

import shutil
import subprocess
from pathlib import Path

import _cffi_backend as backend
import numpy as np
import pytest

from ilang.codegen.emulator.arrays import DeviceArray
from ilang.codegen.emulator.program import load
from ilang.codegen.emulator.recipes import RuntimeRecipe, runtime_text
from ilang.codegen.emulator.runtime import DEFAULTS, SETTINGS, Runtime
from ilang.codegen.emulator.translate import translate
from ilang.codegen.runtime import cache
from ilang.core.diagnostic import DataError, ToolError
from tests.unit.emulator.conftest import HERE, program

INT = backend.new_primitive_type("int")


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
        (
            "k<<<1,\n    2>>>(\n  x);",
            '::cuda_emulator::Configured("k", 1,\n    2)(k, \n  x);',
        ),
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


@pytest.mark.usefixtures("device")
def test_what_is_no_cuda_is_an_error_of_the_compiler() -> None:
    with pytest.raises(ToolError, match="E0903"):
        load("__global__ void k() { undeclared(); }")


def test_profile(device: Runtime) -> None:
    """Sectors and cycles of banks of three transposes: strided writes, an unpadded tile, a padded one."""
    kernels = program("kernels.cu", checked=True)
    x, y = DeviceArray.of(np.zeros((64, 64), np.float32)), DeviceArray((64, 64), np.float32)
    worst = []
    for kind in range(3):
        with device.settings(profile=1):
            assert kernels.call("transpose", x, y, 64, 64, kind) == 0
        traffic = device.take_profile()
        assert {t.file for t in traffic} == {"kernels.cu"}
        assert {t.lanes / t.requests for t in traffic} == {32}
        worst.append(
            tuple(
                max([t.ratio() for t in traffic if t.space == space], default=0)
                for space in ("global", "shared")
            )
        )
    assert worst == [(8, 0), (1, 32), (1, 1)]
    assert device.take_profile() == ()


def test_settings_are_those_of_the_runtime(device: Runtime) -> None:
    assert set(SETTINGS) == set(DEFAULTS)
    for name in SETTINGS:
        device.set(name, DEFAULTS[name])


def test_device_memory(device: Runtime) -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    on_device = DeviceArray.of(x[:, ::-1])
    assert (on_device.get() == x[:, ::-1]).all()
    interface = on_device.__cuda_array_interface__
    assert interface["shape"] == (2, 3)
    assert interface["typestr"] == "<i4"
    assert interface["data"] == (on_device.address, False)
    assert device.is_device(on_device.address, 24)
    assert not device.is_device(on_device.address, 25)
    assert not device.is_device(x.ctypes.data, 1)
    assert DeviceArray.of(np.zeros((0, 3))).get().shape == (0, 3)
    with device.settings(memory=1000), pytest.raises(DataError, match="E0713"):
        DeviceArray((1001,), np.bool_)


def test_fibers_of_the_system() -> None:
    """Where no switch is written in assembly, fibers are those of the C library: they run as the others do."""
    text = (HERE / "fibers.cpp").read_text("utf-8")
    for ucontext in (False, True):
        recipe = RuntimeRecipe(ucontext=ucontext)
        library = cache.library(f"{runtime_text()}{text}", recipe, Runtime)
        assert library._function("run_fibers", (), INT)() == 0


NVCC = shutil.which("nvcc")


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
