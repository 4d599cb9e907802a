"""A CUDA project's own Makefile, on the CPU: in both builds, and with a bug in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ilang.codegen.emulator import nvcc
from ilang.core.diagnostic import ToolError

MAKEFILE = """
NVCC ?= nvcc
ARCH ?= native
FLAGS = -O3 -std=c++17 -arch=$(ARCH) -Xcompiler -fPIC,-Wall -Xptxas -v -I include

test: main
	./main
main: main.o caller.o libmodel.a
	$(NVCC) $(FLAGS) $^ -o $@
libmodel.a: model.o
	$(AR) rcs $@ $^
%.o: %.cu include/model.h
	$(NVCC) $(FLAGS) -c $< -o $@
%.o: %.c include/model.h
	$(NVCC) $(FLAGS) -c $< -o $@
libmodel.so: model.o
	$(NVCC) $(FLAGS) --shared $^ -o $@
"""

HEADER = """
#include <cuda_runtime_api.h>
#ifdef __cplusplus
extern "C"
#endif
int twice(const float* x, float* y, int n, cudaStream_t stream);
"""

MODEL = """
#include "model.h"
#include <cuda_runtime.h>
__global__ void twice_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
extern "C" int twice(const float* x, float* y, int n, cudaStream_t stream) {
  twice_kernel<<<(n + 31) / 32, 32, 0, stream>>>(x, y, n);
  return (int)cudaGetLastError();
}
"""

CALLER = """
#include "model.h"
int call(const float* x, float* y, int n) { return twice(x, y, n, (cudaStream_t)0); }
"""

MAIN = """
#include <cuda_runtime.h>
#include <stdio.h>
extern "C" int call(const float*, float*, int);
int main() {
  float x[40], y[40], *dx, *dy;
  for (int i = 0; i < 40; ++i) x[i] = (float)i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dy, sizeof y);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  int status = call(dx, dy, 40);
  cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);
  printf("status %d, y[39] = %g\\n", status, y[39]);
  return status;
}
"""


def project(folder: Path, model: str = MODEL) -> Path:
    (folder / "include").mkdir()
    files = {"Makefile": MAKEFILE, "include/model.h": HEADER, "model.cu": model}
    files |= {"caller.c": CALLER, "main.cu": MAIN}
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def make(folder: Path, target: str, *, checked: bool) -> subprocess.CompletedProcess[str]:
    driver = f"{sys.executable} -m ilang.codegen.emulator.nvcc"
    return subprocess.run(
        ["make", f"NVCC={driver}", target],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "I_EMULATOR_CHECK": str(int(checked))},
        check=False,
    )


@pytest.mark.parametrize("checked", [False, True])
def test_a_makefile(tmp_path: Path, *, checked: bool) -> None:
    done = make(project(tmp_path), "test", checked=checked)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "status 0, y[39] = 78" in done.stdout
    assert "emulator:" not in done.stderr


def test_a_bug_fails_the_test_of_a_project(tmp_path: Path) -> None:
    done = make(project(tmp_path, MODEL.replace("i < n", "i <= n")), "test", checked=True)
    assert done.returncode != 0
    assert "emulator: illegal read at model.cu:6: 0 bytes past an allocation of 160" in done.stderr
    assert "[twice_kernel, block (1,0,0), thread (8,0,0)]" in done.stderr


def test_a_shared_library(tmp_path: Path) -> None:
    done = make(project(tmp_path), "libmodel.so", checked=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "libmodel.so").stat().st_size > 0


def test_arguments() -> None:
    words = "-O3 -arch=sm_90 -gencode arch=a,code=b -Xcompiler -fPIC,-O1 -DN=3 -I . -lm -lnccl a.cu b.o -o x"
    command = nvcc.read(words.split())
    assert command.sources == (str(Path("a.cu").absolute()),)
    assert command.objects == (str(Path("b.o").absolute()),)
    assert command.flags == ("-fPIC", "-O1", "-DN=3", f"-I{Path.cwd()}")
    assert (command.links, command.output) == (("-lm",), "x")
    assert not command.compiles_only
    assert command.compiler is None
    for named in (["-ccbin", "mpicxx"], ["-ccbin=mpicxx"]):
        assert nvcc.read([*named, "a.cu"]).compiler == "mpicxx"
    for wrong in (["-ptx"], ["a.cu", "-o"], ["a.f90"]):
        with pytest.raises(ToolError, match="E0921"):
            nvcc.read(wrong)


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert nvcc.main(["--version"]) == 0
    assert nvcc.main(["-c", str(tmp_path / "none.cu")]) == 3
    assert "E0921" in capfd.readouterr().err
    bad = tmp_path / "bad.cu"
    bad.write_text("__shared__ int a, b;\n", "utf-8")
    assert nvcc.main(["-c", str(bad), "-o", str(tmp_path / "bad.o")]) == 3
    assert "error[E0920]" in capfd.readouterr().err


def test_one_file_without_an_include_and_a_wrong_one(tmp_path: Path) -> None:
    """As with nvcc, CUDA's header is there; what the compiler refuses is no bug of ours."""
    text = (
        "__global__ void f(int *x) { *x = 1; }\nint main() { int *p; return cudaMalloc(&p, 4); }\n"
    )
    driver = [sys.executable, "-m", "ilang.codegen.emulator.nvcc"]
    for program, status in ((text, 0), (text.replace("int *x", "in *x"), 3)):
        (tmp_path / "a.cu").write_text(program, "utf-8")
        words = [*driver, "a.cu", "-o", "a"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert ("E0921" in done.stderr) == bool(status)
        assert "bug" not in done.stderr
