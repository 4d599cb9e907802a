"""Random numbers by counting: known answers of Random123, and the same bits from NumPy, C and CUDA."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.session.philox import bits, hashed, philox, uniform
from ilang.codegen.targets import cuda_library, library
from ilang.codegen.targets.library import linked

pytestmark = pytest.mark.usefixtures("shared_cache")

KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
"""Counter, key and words: the known answers of Random123 for ten rounds."""

CASES = [(0, "w", 1), (7, "mlp.layer_1.w", 1001), (-1, "größe", 64), (1 << 63, "a" * 99, 6)]
"""Seed, path, count."""

BOUND = 1 / np.sqrt(3)


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_known_answers(counter: Any, key: Any, words: Any) -> None:
    assert tuple(philox(np.array([counter], np.uint32), key)[0]) == words


def test_known_hashes() -> None:
    assert hashed("") == 0xCBF29CE484222325
    assert hashed("a") == 0xAF63DC4C8601EC8C
    assert hashed("foobar") == 0x85944171F73967E8


def test_numbers_follow_from_seed_path_and_place() -> None:
    many = uniform(1, "w", 1 << 16, 0.5)
    np.testing.assert_array_equal(uniform(1, "w", 999, 0.5), many[:999])
    assert many.dtype == np.float32
    assert -0.5 <= many.min() < -0.499
    assert 0.499 < many.max() < 0.5
    assert abs(many.mean()) < 0.005
    assert abs(many.std() - 0.5 / np.sqrt(3)) < 0.005
    for other in (
        bits(2, "w", 99),
        bits(1 << 32 | 1, "w", 99),
        bits(1, "v", 99),
        bits(1, "w", 99, 1),
    ):
        assert (other != bits(1, "w", 99)).all()


@pytest.mark.usefixtures("real_compiler")
def test_c_gives_the_same_bits(tmp_path: Path) -> None:
    fills = "".join(
        f"    fill_uniform(numbers, {count}u, {seed % 2**64}u, {c_text(path)}, {float(np.float32(BOUND)).hex()}f);\n"
        f"    fwrite(numbers, 4, {count}, stdout);\n"
        for seed, path, count in CASES
    )
    (tmp_path / "fill.c").write_text(
        '#include "philox.h"\n#include <stdio.h>\n'
        f"int main(void)\n{{\n    static float numbers[1024];\n{fills}    return 0;\n}}\n",
        "ascii",
    )
    folder = str(Path(library.__file__).parent / "headers")
    command = [*find_compiler().command, "-O2", "-I", folder, "fill.c", "-o", "fill"]
    subprocess.run([*command, "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run([str(tmp_path / "fill")], capture_output=True, check=True)
    expected = np.concatenate([uniform(*case, BOUND) for case in CASES])
    np.testing.assert_array_equal(np.frombuffer(done.stdout, np.uint32), expected.view(np.uint32))


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")
@pytest.mark.usefixtures("real_compiler")
def test_a_gpu_gives_the_same_bits_in_any_order() -> None:
    from ilang.codegen.emulator.program import emulated, load

    kernel = """
static __global__ void fill_kernel(float *numbers, uint64_t count, uint64_t seed, uint64_t hash, float bound)
{
    const uint64_t n = (uint64_t)blockIdx.x * 32 + threadIdx.x;
    uint32_t words[4];
    random_words(words, seed, hash, 0, n / 4);
    if (n < count) numbers[n] = uniform_of_word(words[n % 4], bound);
}

extern "C" int fill(float *numbers, uint64_t count, uint64_t seed, uint64_t hash, float bound)
{
    fill_kernel<<<(unsigned)((count + 31) / 32), 32>>>(numbers, count, seed, hash, bound);
    return (int)cudaDeviceSynchronize();
}
"""
    text = "\n".join(
        [
            "#include <cuda_runtime.h>",
            "#include <cstdint>",
            *linked(kernel, cuda_library.parts()),
            kernel,
        ]
    )
    program = load(text, "fill.cu", checked=True)
    for seed, path, count in CASES:
        numbers = emulated().empty((count,), np.float32)
        given = map(np.uint64, (count, seed % 2**64, hashed(path)))
        assert program.call("fill", numbers, *given, np.float32(BOUND)) == 0
        np.testing.assert_array_equal(numbers.get(), uniform(seed, path, count, BOUND))


def c_text(path: str) -> str:
    """A string of C that says the bytes of a path."""
    return '"' + "".join(f"\\{byte:03o}" for byte in path.encode()) + '"'
