"""Where a loop divides by one number, the product that stands for the quotient is the quotient, to the last bit.

The hard cases are all within 10 parts in 2^47 of the middle between two floats; no other error can reach that far.
"""

import subprocess
from pathlib import Path

import pytest

from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.targets import mathlib
from ilang.codegen.targets.library import header, linked
from tests.property import accuracy
from tests.property.test_fuzz import needs_compiler

CHECK = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
DEFINITIONS
static int64_t inverse(int64_t a, int64_t m)
{
    int64_t t = 0, next_t = 1, r = m, next_r = a % m;
    while (next_r) {
        const int64_t q = r / next_r, t2 = t - q * next_t, r2 = r - q * next_r;
        t = next_t; next_t = t2; r = next_r; next_r = r2;
    }
    return t < 0 ? t + m : t;
}
static uint64_t count, wrong;
static void check(float a, float b)
{
    const float right = a / b;
    if (!divides_f32(b) || bits_of_f32(a) << 1 > MOST_DIVIDED) return;
    ++count;
    const float q = quotient_f32(a, b, 1.0f / b);
    const int small = fabsf(right) < 0x1p-126f;
    const int near = small && fabsf(q - right) <= 0x1p-149f && (isnan(q) || !signbit(q) == !signbit(right));
    if (!near && bits_of_f32(q) != bits_of_f32(right)) {
        if (wrong++ < 5) printf("%a / %a\n", a, b);
    }
}
static void hard(int64_t b, int e, int n)
{
    const int s = __builtin_ctzll((unsigned long long)b);
    const int64_t odd = b >> s;
    if (n % ((int64_t)1 << s)) return;
    const int64_t power = odd == 1 ? 0 : inverse(((int64_t)1 << e) % odd, odd);
    int64_t a = odd == 1 ? 0 : (int64_t)((__int128)power * (((int64_t)n % odd + odd) % odd) % odd);
    if (a < 1 << 23) a += ((1 << 23) - a + odd - 1) / odd * odd;
    for (; a < 1 << 24; a += odd) {
        const __int128 product = ((__int128)a << e) - n;
        if ((e == 24) != (a >= b) || product % b || !(product / b & 1)) continue;
        for (int p = -150; p <= 20; p += 17) check(ldexpf((float)a, p - 23), ldexpf((float)b, p % 11 - 23));
        check((float)a * 0x1p-23f, (float)b * 0x1p-23f);
    }
}
int main(void)
{
    const float odd[] = {0.0f, -0.0f, 0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1p50f, -0x1p50f, 0x1.8p50f, INFINITY, NAN,
                         1.0f, 3.0f, 0x1p-24f, 0x1p64f, 0x1.fffffep63f, 0x1.000002p-24f, -1.0f};
    const int odds = sizeof odd / sizeof odd[0];
    for (int i = 0; i < odds; ++i)
        for (int j = 0; j < odds; ++j) check(odd[i], odd[j]);
    for (int64_t b = 1 << 23; b < 1 << 24; b += STEP)
        for (int n = -10; n <= 10; ++n) hard(b, 24, n), hard(b, 25, n);
    uint64_t state = 1;
    for (int k = 0; k < 2000000; ++k) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        check(f32_of_bits((uint32_t)(state >> 32)), f32_of_bits((uint32_t)(state >> 13) & 0x7fffffffu));
    }
    printf("%llu of %llu wrong\n", (unsigned long long)wrong, (unsigned long long)count);
    return wrong != 0 || count < 100000;
}
"""


@needs_compiler
@pytest.mark.parametrize("flags", [accuracy.FAST, (*accuracy.STANDARD, "-O1")])
def test_quotients_are_quotients(tmp_path: Path, flags: tuple[str, ...]) -> None:
    definitions = "\n".join(linked(CHECK, header(mathlib.HEADER)))
    text = CHECK.replace("DEFINITIONS", definitions).replace("STEP", "1009")
    (tmp_path / "check.c").write_text(text, "utf-8")
    compiler = find_compiler().command
    subprocess.run([*compiler, *flags, "check.c", "-o", "check", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run(["./check"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
