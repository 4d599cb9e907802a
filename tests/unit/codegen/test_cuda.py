"""CUDA texts: what they are made of, and that nvcc compiles them where there is one."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
import pytest

from ilang import i
from ilang.codegen.device.registers import is_mangled
from ilang.codegen.system.files import read_module
from ilang.codegen.targets import cuda, cuda_header, cuda_library
from ilang.codegen.targets.cuda_entry import TRY
from ilang.codegen.targets.cuda_session import SessionsText
from ilang.codegen.targets.identifiers import function_identifier, identifier
from ilang.codegen.targets.library import linked
from ilang.core.ir.kernel import Program
from ilang.core.machine import GPU
from ilang.core.notation.files.module import exports
from ilang.core.occupancy import resources_of
from ilang.core.pipeline import graph_of, infer, lower, module_graph, text_component
from ilang.core.record import replace
from tests import shares
from tests.property.emulated import of_one_width
from tests.property.test_cuda import SCHEDULED
from tests.shares import share

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = sorted((ROOT / "samples").glob("[0-9]*.i"))
ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
TARGETS = (
    ("sm_90", ("-arch=sm_90", "-cubin")),
    ("sm_75 sm_80", ("-gencode=arch=compute_75,code=[sm_75,sm_80]", "-fatbin")),
)
"""Architectures, the newest first; those that share one PTX are compiled for together.

No text asks where it is. For each, a share of programs is optimised, those of a run with indices of one width by turns;
``--fuzz 6`` takes all of them, and both widths for the newest.
"""
UNOPTIMISED = ("-arch=sm_75", "-cubin", "-Ofc=max")
"""For every kernel of every program: what is warned of in a text, in a fifth of the time."""

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


NEEDLESS = re.compile(r"[/%*] 1\b(?![.\d])|\b1 \* |if \(\d+ > 0")
INFORMED = re.compile(r"ptxas info |    \d+ bytes stack frame")
"""The lines that nvcc prints of each kernel; others are warnings."""


def program(text: str) -> Program:
    return lower(infer(graph_of(text_component(text), "f")), GPU)


def exported(path: Path) -> list[Program]:
    """The programs that a file exports, each with a name of its own."""
    module = read_module(str(path))
    shaped = [infer(module_graph(module, d.name)) for d in exports(module)]
    return [lower(replace(s, name=f"p{path.stem[:2]}_{s.name}"), GPU) for s in shaped]


def of_share(number: int, programs: Sequence[Program], text: str) -> str:
    """A text of a share of programs, with both widths of indices where a run takes everything of the first target."""
    return text if number == 0 and shares.fuzz >= shares.SIXTHS else of_one_width(programs, text)


def compiled(folder: Path, *options: str) -> str:
    """What nvcc says of a text; it must succeed."""
    words = ["nvcc", "-std=c++17", "--fmad=false", "-O1", *options]
    if "-Ofc=max" not in options:  # where nothing is optimised, registers run out
        words += ["-Xptxas", "-warn-spills"]
    done = subprocess.run(
        [*words, "-o", "all.out", "all.cu"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def errors_of_guesses(programs: Sequence[Program], said: str, architecture: str) -> list[float]:
    """How far from what nvcc says the registers of each kernel were guessed; shared memory must be right."""
    errors = []
    for part in said.split("Compiling entry function '")[1:]:
        name, used = part.partition("'")[0], re.search(r"Used (\d+) registers", part)
        if f"' for '{architecture}'" not in part.partition("\n")[0]:
            continue
        shared = re.search(r"(\d+) bytes smem", part)
        assert used is not None
        every = [
            resources_of(each, kernel)
            for each in programs
            for kernel in each.kernels
            if is_mangled(name, f"{function_identifier(each.name)}_{kernel.name}")
        ]
        if not every:  # a kernel that looks whether indices are in range is no program's
            continue
        assert int(shared[1] if shared else 0) in {taken.shared for taken in every}, name
        errors.append(min(abs(taken.registers / int(used[1]) - 1) for taken in every))
    return errors


@pytest.mark.deep
@needs_nvcc
@pytest.mark.early
def test_samples_compile_without_a_warning(tmp_path: Path) -> None:
    """And take what was guessed: shared memory exactly, half of all kernels registers within a third.

    The guess is for sm_90; on others they are within a half.
    """
    lowered = {path: exported(path) for path in SAMPLES}
    every = [each for programs in lowered.values() for each in programs]
    (tmp_path / "all.h").write_text(cuda_header.emit_header(every), "ascii")
    text = cuda.emit_source(every, "all")
    assert "__CUDA_ARCH__" not in text
    (tmp_path / "all.cu").write_text(text, "ascii")
    assert compiled(tmp_path, *UNOPTIMISED) == ""
    for number, (names, options) in enumerate(TARGETS):
        paths = share(SAMPLES, 4 - 4 * number)
        programs = [each for path in paths for each in lowered[path]]
        (tmp_path / "all.h").write_text(cuda_header.emit_header(programs), "ascii")
        text = of_share(number, programs, cuda.emit_source(programs, "all"))
        (tmp_path / "all.cu").write_text(text, "ascii")
        lines = compiled(tmp_path, *options, "-Xptxas", "-v")
        assert [line for line in lines.splitlines() if not INFORMED.match(line)] == []
        for architecture in names.split():
            errors = errors_of_guesses(programs, lines, architecture)
            assert sum(len(each.kernels) for each in programs) <= len(errors)
            assert statistics.median(errors) < (1 / 3 if architecture == "sm_90" else 1 / 2)


def test_vectors_of_shared_rows_are_counted_not_divided() -> None:
    """A quotient of a sum stays in a register of its own: 31 of them in a product."""
    texts = [cuda.emit_source(exported(path), "all") for path in SAMPLES if "mat" in path.stem]
    indices = [i for text in texts for i in re.findall(r"_copy\)\[([^;\]]*)\]", text)]
    constant = re.compile(r"\([A-Z_]+ \+ \d+\) / \d+|[A-Z_]+ / \d+")
    assert len(indices) > 2
    assert not [index for index in indices if " / " in constant.sub("", index)]


def test_tiles_have_names_where_they_are_used() -> None:
    """Of a product with the default schedule; a file of two programs has the constants of each kernel."""
    (path,) = (each for each in SAMPLES if "06_matmul" in each.stem)
    text = cuda.emit_source(exported(path), "all")
    assert "TILE_I = STRIPS_I * STRIP_I" in text
    assert "TILE_I * (i + 1) <= n_" in text
    assert "[TILE_K * (TILE_I + 4)]" in text
    assert not re.findall(r"\b128 \*|\+ 127\b|[+<] 256\b", text)


def test_names_of_programs_are_none_of_tiles(tmp_path: Path) -> None:
    """An array that is called as a constant is gets another name in CUDA."""
    (tmp_path / "f.i").write_text("f(TILE_I[i,k], THREADS[k,j]) = ik*kj~ijk >> +ijk~ij\n", "ascii")
    text = cuda.emit(*exported(tmp_path / "f.i"))
    assert "const float *__restrict__ TILE_I_," in text
    assert "const float *__restrict__ THREADS_," in text


@pytest.mark.deep
@needs_nvcc
@pytest.mark.early
def test_written_schedules_compile_without_a_warning(tmp_path: Path) -> None:
    shaped = [infer(graph_of(text_component(text), name)) for name, (text, _) in SCHEDULED.items()]
    every = [lower(s, GPU) for s in shaped]
    (tmp_path / "all.cu").write_text(cuda.emit_together(every), "ascii")
    assert compiled(tmp_path, *UNOPTIMISED) == ""
    for number, (_, options) in enumerate(TARGETS):
        programs = share(every, 4 - 4 * number)
        text = of_share(number, programs, cuda.emit_together(programs))
        (tmp_path / "all.cu").write_text(text, "ascii")
        assert compiled(tmp_path, *options) == ""


@pytest.mark.deep
@needs_nvcc
def test_the_host_half_of_a_text_compiles_without_a_warning(tmp_path: Path) -> None:
    """Layouts with temporaries, with scratch and with what tells of an index out of range."""
    texts = ("^ij~ij >> (I & +ij~i) >> ij/i~ij >> +ij~j", "ij~ji >> +ij~i", "+ij~j >> ^j~j")
    every = [replace(program(text), name=f"f{number}") for number, text in enumerate(texts)]
    embedding = lower(infer(graph_of(text_component("bt@vd~btd"), "e"), ["i64", "f32"]), GPU)
    rows = "(^ij~ij || i j >> (I & +ij~i || i j 0) >> ij/i~ij || i 0 1 j)"
    twice = infer(graph_of(text_component(f"{rows} & {rows}"), "twice"), shapes=[(5, 80000)])
    known = lower(twice, GPU)  # extents and scratch storage of each of two launches
    (tmp_path / "all.cu").write_text(cuda.emit_together([*every, embedding, known]), "ascii")
    warned = ("-Xcompiler", "-Wall,-Wextra")
    assert compiled(tmp_path, "-arch=sm_75", "-c", "-Ofc=max", *warned) == ""


def test_a_launch_stands_once_for_both_widths() -> None:
    """What it takes is written once, and which indices it has is asked beside it."""
    (text,) = map(cuda.emit, exported(ROOT / "samples/06_matmul.i"))
    kernels = len(re.findall("__global__", text))
    assert text.count("<<<") == text.count("<decltype(index)><<<") == kernels
    assert text.count("? launch(0) : launch((int64_t)0);") == kernels


def blocks_at_a_time(shape: tuple[int, ...]) -> str:
    """A softmax, whose rows threads hold in registers, many blocks at a time."""
    text = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"
    return cuda.emit(lower(infer(graph_of(text_component(text), "rows"), shapes=[shape]), GPU))


def test_helpers_of_a_project_have_the_names_that_they_have_in_c() -> None:
    """The name of the first function stands in a macro alone, by which two libraries may be one text."""
    every = exported(ROOT / "samples/03_reduce.i")
    names, _, code = cuda.emit_source(every, "all").partition("#define TRY(")
    assert "static bool il_measure(" in code
    assert "_il_" not in code
    assert "#undef il_measure\n#define il_measure p03_" in names


def test_a_multiprocessor_is_not_asked_for_more_blocks_than_it_has_room_for() -> None:
    """A T4 has threads for 4 blocks of 256, an H100 for 8; where all have room, the number alone is there."""
    threads = "rows_k0_block::THREADS"
    few, many = blocks_at_a_time((4096, 64)), blocks_at_a_time((4096, 2048))
    assert f"__launch_bounds__({threads}, il_AT_A_TIME(8, {threads}))" in few
    assert "THREADS = 256;" in few
    assert f"__launch_bounds__({threads}, 16)" in many
    assert "THREADS_J = 64," in many


@pytest.mark.deep
@needs_nvcc
@pytest.mark.parametrize("architecture", ["75", "86", "90", "120"])
def test_as_many_blocks_as_there_are_compile_without_a_warning(
    architecture: str, tmp_path: Path
) -> None:
    (tmp_path / "all.cu").write_text(blocks_at_a_time((4096, 64)), "ascii")
    assert compiled(tmp_path, f"-arch=sm_{architecture}", "-cubin") == ""


@pytest.mark.deep
@needs_nvcc
def test_every_helper_compiles(tmp_path: Path) -> None:
    """Those for matrix units say so where a device has none."""
    for architecture in ("sm_75", "sm_80"):
        text = [
            f"{part.condition}\n{part.text}\n#endif" if part.condition else part.text
            for part in cuda_library.parts()
            if architecture != "sm_75" or "#error" not in part.text
        ]
        (tmp_path / "all.cu").write_text(
            "\n".join((*cuda.INCLUDES, *SessionsText.headers, TRY, *text)), "ascii"
        )
        compiled(tmp_path, f"-arch={architecture}", "-c", "-Xcompiler", "-Wextra,-Werror")


def test_a_text_has_the_helpers_that_it_calls_and_no_others() -> None:
    text = cuda.emit(program("^ij~ij >> (I & >ij~i) >> ij-i~ij"))
    assert "float il_exp_f32(float x)" in text
    assert "float il_power_f32(float r)" in text
    assert "il_max_f32(float a, float b)" in text
    assert "tanh" not in text
    assert "start_of" not in text
    assert list(linked("", cuda_library.parts())) == []


@pytest.mark.parametrize("text", ["+i~.", "+ij~i", "^i~i >> +i~."])
def test_counters_of_kernels_hide_no_variable(text: str) -> None:
    """Nothing of a program has the name that the text gives a loop of its own."""
    kernels = cuda.emit(program(text)).partition("__global__ void")[2]
    counters = set(re.findall(r"for \(int (\w+) = ", kernels))
    assert counters
    assert [name for name in counters if identifier(name) == name] == []


def test_a_call_takes_no_memory_and_does_not_wait() -> None:
    text = cuda.emit(program("ik*kj~ijk >> +ijk~ij"))
    run = text[text.index("struct CUstream_st *stream)\n{") : text.rindex("int f_host")]
    assert "stream>>>(" in run
    assert "cudaGetLastError" in run
    assert not any(word in run for word in ("cudaMalloc", "Synchronize", "cudaMemcpy", "exit"))


@pytest.mark.parametrize("name", ["09_softmax", "13_attention"])
def test_no_braces_have_nothing_but_braces_inside(name: str) -> None:
    (each,) = exported(ROOT / "samples" / f"{name}.i")
    lines = cuda.emit(each).splitlines()
    for number, line in enumerate(lines):
        if line.strip() == "{" and lines[number - 1].endswith(" {"):
            end = lines.index(
                f"{line[:-1]}}}", number
            )  # where other statements follow, names are of this block alone
            assert not lines[end + 1].strip().startswith("}"), f"{number}: {lines[number - 1]}"


@pytest.mark.parametrize("name", ["11_layer_norm", "27_histogram", "29_transformer"])
def test_no_factor_is_1_and_no_condition_is_known(name: str) -> None:
    """Of samples some of whose axes have one element, or one group of neighbors, and extents that are known."""
    (each,) = exported(ROOT / "samples" / f"{name}.i")
    told = [line for line in cuda.emit(each).splitlines() if NEEDLESS.search(line)]
    assert not told, "\n".join(told)


def test_headers_are_plain_c() -> None:
    header = cuda_header.emit_header([program("ij+ij~ij")], "model")
    assert "#include <cuda" not in header
    assert "struct CUstream_st *stream" in header
    assert "f_wait" not in header
    graph = graph_of(text_component("bt@vd~btd"), "embed")
    embedding = lower(infer(graph, ["i64", "f32"]), GPU)
    assert "int embed_wait(" in cuda_header.emit_header([embedding])


@pytest.mark.deep
@needs_nvcc
@pytest.mark.parametrize("architecture", share(ARCHITECTURES, 2))
def test_a_product_stays_in_registers_and_reads_vectors(tmp_path: Path, architecture: str) -> None:
    """512 products of a thread for each 16 terms; the operands that it reads of shared memory, 16 bytes at a time.

    On the newest architecture; ``--fuzz 6`` asks the others, too.
    What rows that vectors do not fit are made of is read of shared memory one by one, to be stored side by side.
    """
    (tmp_path / "all.cu").write_text(cuda.emit(program("ik*kj~ijk >> +ijk~ij")), "ascii")
    said = compiled(tmp_path, f"-arch={architecture}", "-cubin", "-Xptxas", "-v", "--keep")
    assert set(re.findall(r"(\d+) bytes spill", said)) == {"0"}
    assert "\n    0 bytes stack frame" in said
    entries = (tmp_path / "all.ptx").read_text("ascii").split(".entry")[1:]
    kernels = [text for text in entries if "f_k0_0" in text.split("(", 1)[0]]
    assert len(entries) == 2 * len(kernels)  # what combines parts, too
    assert len(kernels) == 2  # with indices of 32 bits, and of 64
    for text in kernels:
        assert text.count("fma.rn.f32") == 16 * 8 * 4
        assert text.count("ld.shared.v4.f32") == 16 * 3
        assert text.count("ld.shared.f32") == text.count("st.global.f32")
        assert "ld.global.nc.v4.f32" in text
        assert text.count("st.global.v4.f32") == 8
        assert "local" not in text


def test_no_array_has_the_name_of_what_the_macro_keeps() -> None:
    """An output named ``error`` is ``error_`` in C, and is copied within the macro."""
    (name,) = re.findall(r"const int (\w+) =", TRY)
    assert identifier(name) != name


@pytest.mark.parametrize("order", ["i i' j j' k k'", "i' i j' j k' k"])
def test_iterations_of_factors_beyond_their_dimensions_are_counted_in_64_bits(order: str) -> None:
    """The product of these factors is 1 modulo 2^64: a grid of all parts would compute one element."""
    factors = (47205953, 1562003, 64544731)
    assert prod(factors) % 2**64 == 1
    splits = ",".join(f"{axis}:{factor}" for axis, factor in zip("ijk", factors, strict=True))
    roles = ",".join(f"{loop}:p" for loop in order.split())
    negated = i(f"-ijk~ijk | {splits} | {order} | {roles}")
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(negated(x, target="cuda-emulated"), -x)
