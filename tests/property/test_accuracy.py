"""Functions of our own keep the promises of their comments, and give the same bits however they are compiled.

Here a part of all floats is tried; ``accuracy.py`` by itself tries every one.
"""

import subprocess
from pathlib import Path

import pytest

from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.targets import mathlib
from tests.property import accuracy, native
from tests.property.test_fuzz import needs_compiler

STEP, ROUNDS = 8191, 60
"""A prime, so that all bits of the floats change."""
FURTHER, FEWER = 32749, 15
"""The same where code that is not optimised is tried, too."""


WAYS = {
    "fused": accuracy.FAST,
    "unfused": accuracy.UNFUSED,
    "contracted": (*accuracy.UNFUSED, "-ffp-contract=fast"),
}


def test_every_function_promises_an_error() -> None:
    primitives = {"exp", "ln", "tanh", "erf", "pow", "sin", "cos"}
    promised = {name for name in mathlib.FUNCTIONS if accuracy.promised(name) is not None}
    assert promised == {name for name in mathlib.FUNCTIONS if name.partition("_")[0] in primitives}
    assert all(mathlib.name_of(*name.split("_")) == name for name in promised)


@needs_compiler
@pytest.mark.parametrize("way", WAYS)
def test_errors_are_as_promised(way: str) -> None:
    flags = WAYS[way]
    for found in accuracy.measure(accuracy.functions(), flags, STEP, ROUNDS):
        assert not found.wrong, found.messages
        bound = accuracy.promised(found.name)
        assert bound is not None
        assert 0.4 < found.worst <= bound, found


@needs_compiler
def test_same_bits_however_compiled() -> None:
    """Vector code, plain code and code under sanitizers, which also find what C leaves undefined."""
    names = accuracy.functions()
    for flags in (accuracy.FAST, accuracy.UNFUSED):
        ways = (flags, (*flags, "-O0"), (*flags, *native.SANITIZED, "-Og"))
        found = [list(accuracy.measure(names, way, FURTHER, FEWER)) for way in ways]
        assert found[0] == found[1] == found[2]
        assert len({one.digest for one in found[0]}) == len(names)


@needs_compiler
def test_without_the_instruction_nothing_of_it_is_used() -> None:
    """The text for machines without fused products and sums gives there what it gives here."""
    names = accuracy.functions()
    ways = (accuracy.UNFUSED, (*accuracy.STANDARD, "-O1"))
    found = [list(accuracy.measure(names, way, STEP, ROUNDS)) for way in ways]
    assert found[0] == found[1]


AROUND = r"""
int main(void)
{
    static float a[4096], b[4096], c[4096], out[4096];
    for (uint32_t k = 0; k < 4096; ++k) {
        a[k] = 1.0f + (float)k * 0x1p-13f;
        b[k] = 1.0f - (float)(k * 37 % 4096) * 0x1p-13f;
        c[k] = (float)(k * 91 % 4096) * 0x1p-10f - 4.0f;
    }
    for (int k = 0; k < 4096; ++k) out[k] = a[k] * b[k] + exp_f32(c[k] * a[k] + b[k]);
    for (int k = 0; k < 4096; ++k) {
        volatile float product = a[k] * b[k], inside = c[k] * a[k];
        volatile float argument = inside + b[k];
        volatile float power = exp_f32(argument);
        volatile float sum = product + power;
        if (out[k] != sum) return 1;
    }
    return 0;
}
"""


@needs_compiler
def test_products_and_sums_around_a_function_are_not_fused(tmp_path: Path) -> None:
    lines = [
        *("#include <math.h>", "#include <stdint.h>"),
        *mathlib.definitions(["exp_f32"]),
        AROUND,
    ]
    (tmp_path / "around.c").write_text("\n".join(lines), "utf-8")
    command = [*find_compiler().command, *accuracy.FAST, "around.c"]
    subprocess.run([*command, "-o", "around", "-lm"], cwd=tmp_path, check=True)
    subprocess.run(["./around"], cwd=tmp_path, check=True)


LANES = r"""
static inline f32x16 NAMEx16(f32x16 x)
{
    float values[16];
    __builtin_memcpy(values, &x, sizeof x);
    for (int lane = 0; lane < 16; ++lane) values[lane] = NAME(values[lane]);
    __builtin_memcpy(&x, values, sizeof x);
    return x;
}
int main(void)
{
    for (uint32_t k = 0; k < 1u << 20; k += 16) {
        float values[16], vector[16];
        for (uint32_t n = 0; n < 16; ++n) values[n] = f32_of_bits((k + n) * 4093u);
        f32x16 x;
        memcpy(&x, values, sizeof x);
        x = NAMEx16(x);
        memcpy(vector, &x, sizeof x);
        for (uint32_t n = 0; n < 16; ++n) {
            volatile float one = values[n];
            const float y = NAME(one);
            if (memcmp(&y, &vector[n], sizeof y) && !(y != y && vector[n] != vector[n])) return 1;
        }
    }
    return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("name", ["exp_f32", "sin_f32"])
def test_lanes_are_the_function_of_each_number(name: str, tmp_path: Path) -> None:
    lines = [
        *("#include <math.h>", "#include <stdint.h>", "#include <string.h>"),
        "typedef float f32x16 __attribute__((vector_size(64)));",
        *mathlib.definitions([name]),
        LANES.replace("NAME", name),
    ]
    (tmp_path / "lanes.c").write_text("\n".join(lines), "utf-8")
    command = [*find_compiler().command, *accuracy.FAST, "-Wno-psabi", "lanes.c"]
    subprocess.run([*command, "-o", "lanes", "-lm"], cwd=tmp_path, check=True)
    subprocess.run(["./lanes"], cwd=tmp_path, check=True)
