"""CUDA texts: what they are made of, and that nvcc compiles them where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ilang.codegen.runtime.files import read_module
from ilang.codegen.targets import cuda, cuda_header, cuda_library
from ilang.codegen.targets.cuda_entry import TRY
from ilang.codegen.targets.library import linked
from ilang.core.ir.kernel import Program
from ilang.core.machine import GPU
from ilang.core.notation.module import exports
from ilang.core.pipeline import graph_of, infer, lower, module_graph, text_component
from ilang.core.record import replace
from tests.property.test_cuda import SCHEDULED

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = sorted((ROOT / "samples").glob("[0-9]*.i"))
ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
HELPERS = (ROOT / "codegen/targets/headers/cuda.cuh").read_text("ascii")

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


def program(text: str) -> Program:
    return lower(infer(graph_of(text_component(text), "f")), GPU)


def exported(path: Path) -> list[Program]:
    """The programs that a file exports, each with a name of its own."""
    module = read_module(str(path))
    shaped = [infer(module_graph(module, d.name)) for d in exports(module)]
    return [lower(replace(s, name=f"p{path.stem[:2]}_{s.name}"), GPU) for s in shaped]


def compile_for(folder: Path, architecture: str) -> str:
    """What nvcc says of a text; it must succeed."""
    words = ["nvcc", "-std=c++17", "--fmad=false", "-O1", f"-arch={architecture}", "-cubin"]
    done = subprocess.run(
        [*words, "-Xptxas", "-warn-spills", "-o", "all.cubin", "all.cu"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@needs_nvcc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_samples_compile_without_a_warning(tmp_path: Path, architecture: str) -> None:
    programs = [each for path in SAMPLES for each in exported(path)]
    (tmp_path / "all.h").write_text(cuda_header.emit_header(programs, "all"), "ascii")
    (tmp_path / "all.cu").write_text(cuda.emit_source(programs, "all"), "ascii")
    assert compile_for(tmp_path, architecture) == ""


@needs_nvcc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_written_schedules_compile_without_a_warning(tmp_path: Path, architecture: str) -> None:
    shaped = [infer(graph_of(text_component(text), name)) for name, (text, _) in SCHEDULED.items()]
    (tmp_path / "all.cu").write_text(cuda.emit_together([lower(s, GPU) for s in shaped]), "ascii")
    assert compile_for(tmp_path, architecture) == ""


@needs_nvcc
def test_every_helper_compiles(tmp_path: Path) -> None:
    (tmp_path / "all.cu").write_text("\n".join((*cuda.INCLUDES, TRY, HELPERS)), "ascii")
    compile_for(tmp_path, "sm_75")


def test_a_text_has_the_helpers_that_it_calls_and_no_others() -> None:
    text = cuda.emit(program("^ij~ij >> (I & >ij~i) >> ij-i~ij"))
    assert "float exp_f32(float x)" in text
    assert "float power_f32(float r)" in text
    assert "max_f32(float a, float b)" in text
    assert "tanh" not in text
    assert "start_of" not in text
    assert list(linked("", cuda_library.parts())) == []


def test_a_call_takes_no_memory_and_does_not_wait() -> None:
    text = cuda.emit(program("ik*kj~ijk >> +ijk~ij"))
    run = text[text.index("struct CUstream_st *stream)\n{") : text.rindex("int f_host")]
    assert "stream>>>(" in run
    assert "cudaGetLastError" in run
    assert not any(word in run for word in ("cudaMalloc", "Synchronize", "cudaMemcpy", "exit"))


def test_headers_are_plain_c() -> None:
    header = cuda_header.emit_header([program("ij+ij~ij")], "model")
    assert "#include <cuda" not in header
    assert "struct CUstream_st *stream" in header
    assert "waits for it" not in header
    graph = graph_of(text_component("bt@vd~btd"), "embed")
    embedding = lower(infer(graph, ["i64", "f32"]), GPU)
    assert "waits for it" in cuda_header.emit_header([embedding], "model")


@needs_nvcc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_product_stays_in_registers_and_reads_vectors(tmp_path: Path, architecture: str) -> None:
    """512 products of a thread for each 16 terms; what it reads of shared memory, 16 bytes at a time."""
    (tmp_path / "all.cu").write_text(cuda.emit(program("ik*kj~ijk >> +ijk~ij")), "ascii")
    options = [f"-arch={architecture}", "--fmad=false", "-Xptxas", "-v"]
    command = ["nvcc", *options, "-cubin", "-o", str(tmp_path / "all.cubin")]
    done = subprocess.run(
        [*command, str(tmp_path / "all.cu")], capture_output=True, text=True, check=True
    )
    assert set(re.findall(r"(\d+) bytes spill", done.stderr)) == {"0"}
    assert "\n    0 bytes stack frame" in done.stderr
    subprocess.run(
        ["nvcc", *options[:2], "-ptx", "-o", str(tmp_path / "all.ptx"), str(tmp_path / "all.cu")],
        capture_output=True,
        check=True,
    )
    kernels = (tmp_path / "all.ptx").read_text("ascii").split(".entry")[1:]
    assert len(kernels) == 2  # with indices of 32 bits, and of 64
    for text in kernels:
        assert text.count("fma.rn.f32") == (16 + 1) * 8 * 4  # whole blocks, and a loop for others
        assert text.count("ld.shared.v4.f32") == (16 + 1) * 3
        assert "ld.shared.f32" not in text
        assert "ld.global.nc.v4.f32" in text
        assert text.count("st.global.v4.f32") == 8
        assert "local" not in text
