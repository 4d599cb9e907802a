"""Kernels alone: their text is that of the whole program, and NVRTC compiles it where there is one."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from ilang import Error
from ilang.codegen.compile import cache
from ilang.codegen.compile.compiler_process import run_compiler
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.device import gpu, launched_program
from ilang.codegen.device.executable import DeviceSource
from ilang.codegen.device.launched_program import CompiledKernels
from ilang.codegen.device.nvrtc import MARK
from ilang.codegen.targets import cuda
from ilang.codegen.targets.cuda_call import kernels_of
from ilang.core.ir.host import Host
from ilang.core.ir.kernel import Program
from ilang.core.machine import GPU
from ilang.core.pipeline import graph_of, host_of, infer, lower, text_component
from ilang.core.record import replace
from tests.conformance.test_index import BINARY, UNARY
from tests.golden.test_golden import graph_in
from tests.property.test_cuda import GOLDEN, SCHEDULED
from tests.shares import share
from tests.unit.codegen.test_cuda import SAMPLES, exported

needs_nvrtc = pytest.mark.skipif(
    gpu.NVRTC.command() is None, reason="needs NVRTC: pip install '.[cuda]'"
)
EM_CUDA = 190


@pytest.fixture(autouse=True)
def nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVRTC, whatever else there is."""
    monkeypatch.setenv("NVCC", "nvrtc")


def program(text: str) -> Program:
    return lower(infer(graph_of(text_component(text), "f")), GPU)


@pytest.mark.parametrize("name", ["product", "softmax", "total", "online"])
def test_the_text_is_that_of_the_whole_program(name: str) -> None:
    """Each function, macro and kernel of it stands there as well, in the same order."""
    lowered = program(SCHEDULED[name][0])
    whole, alone = cuda.emit(lowered), cuda.emit_kernels([host_of(lowered)])
    head = "\n".join(cuda.WITHOUT_HEADERS)
    assert alone.startswith(head)
    paragraphs = [part for part in alone.removeprefix(head).split("\n\n") if part.strip()]
    places = [whole.index(part.strip("\n")) for part in paragraphs]
    assert places == sorted(places)
    assert len(paragraphs) >= len(lowered.kernels)


@functools.cache
def hosts() -> list[Host]:
    """The host program of each page of what a program becomes, and of a share of the samples: nvcc takes all."""
    shaped = [replace(infer(graph_in(path)), name=f"g{n}") for n, path in enumerate(GOLDEN)]
    programs = [lower(each, GPU) for each in shaped]
    programs += [each for path in share(SAMPLES, 5) for each in exported(path)]
    return [host_of(each) for each in programs]


@pytest.mark.deep
@needs_nvrtc
@pytest.mark.early
@pytest.mark.parametrize("first", [0, 1], ids=["sm_80", "sm_90"])
def test_kernels_compile_without_a_warning(first: int, tmp_path: Path) -> None:
    """With indices of one width for each architecture, by turns."""
    widths = [
        name
        for n, host in enumerate(hosts(), first)
        for name in kernels_of(host)
        if not name.endswith(("<int>", "<int64_t>")[n % 2])
    ]
    text = f"{MARK}{json.dumps({'kernels': sorted(set(widths))})}\n{cuda.emit_kernels(hosts())}"
    (tmp_path / "all.cu").write_text(text, "ascii")
    flags = [*gpu.gpu_recipe(80 + 10 * first, kernels=True).flags, "--Ofast-compile=max"]
    command = [*find_compiler(gpu.CUDA).command, *flags, "all.cu", "-o", "all.so"]
    assert run_compiler(command, tmp_path, gpu.CUDA) == (0, "")
    known = json.loads((tmp_path / "all.so").read_bytes().rpartition(b"\n")[2])
    assert len(set(known["kernels"].values())) == len(known["kernels"]) > 100


def compiled(lowered: Program, follows_from: str = "") -> CompiledKernels:
    return gpu.kernels_of(DeviceSource("f", follows_from, lambda: lowered), 90)


@needs_nvrtc
def test_machine_code_and_the_host_program_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = program("ij~ji")
    first = compiled(lowered, "transpose")
    assert first.code.startswith(b"\x7fELF")
    assert int.from_bytes(first.code[18:20], "little") == EM_CUDA
    assert list(first.names) == list(kernels_of(host_of(lowered)))
    assert all(name.encode() in first.code for name in first.names.values())
    assert first.host.operations == host_of(lowered).operations
    monkeypatch.setattr(launched_program, "text_of", None)
    monkeypatch.setattr(gpu, "text_of", None)
    assert compiled(lowered, "transpose") == first


@needs_nvrtc
def test_every_operator_compiles(tmp_path: Path) -> None:
    """In both types of floats, without the headers that a compiler for the host has."""
    texts = ["i^i~i", *(f"i{op}i~i" for op in BINARY), *(f"{op}i~i" for op in UNARY)]
    graphs = [graph_of(text_component(text), f"f{n}") for n, text in enumerate(texts)]
    hosts = [
        host_of(
            lower(replace(infer(graph, [dtype] * len(graph.inputs)), name=graph.name + dtype), GPU)
        )
        for graph in graphs
        for dtype in ("f32", "f64")
    ]
    names = [name for host in hosts for name in kernels_of(host) if not name.endswith("<int64_t>")]
    text = f"{MARK}{json.dumps({'kernels': names})}\n{cuda.emit_kernels(hosts)}"
    (tmp_path / "all.cu").write_text(text, "ascii")
    flags = [*gpu.gpu_recipe(90, kernels=True).flags, "--Ofast-compile=max"]
    command = [*find_compiler(gpu.CUDA).command, *flags, "all.cu", "-o", "all.so"]
    assert run_compiler(command, tmp_path, gpu.CUDA) == (0, "")


@needs_nvrtc
def test_what_nvrtc_says_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "emit_kernels", lambda _: "static __global__ void f_k0(nothing) {}")
    with pytest.raises(Error, match='identifier "nothing" is undefined') as refusal:
        compiled(program("-i~i"))
    assert refusal.value.code == "E0903"


@needs_nvrtc
def test_it_is_taken_where_there_is_no_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVCC", "")
    monkeypatch.setenv("PATH", "")
    assert find_compiler(replace(gpu.CUDA, packages=(gpu.NVRTC,))).package == gpu.NVRTC


def test_without_it_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "nowhere")  # compilers are looked for anew
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(Error) as refusal:
        compiled(program("-i~i"))
    assert (refusal.value.code, refusal.value.status) == ("E0901", 3)
    assert refusal.value.message.endswith("looked for the packages of ilang[cuda]")
    assert (refusal.value.help or "").startswith("pip install 'ilang[cuda]'")


def test_a_broken_entry_is_compiled_anew(tmp_path: Path) -> None:
    path = tmp_path / "entry.so"
    for content in (b"", b"\x7fELF", b"\x7fELF\n{}", b'\x7fELF\n{"host": "AAAA", "kernels": {}}'):
        path.write_bytes(content)
        with pytest.raises(OSError, match="not what"):
            launched_program.kernels_in(cache.content_of(str(path)))
