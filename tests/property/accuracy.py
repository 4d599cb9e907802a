"""How exact the functions of ``codegen/targets/mathlib.py`` are: ``python tests/property/accuracy.py``.

A C program compares each with the C library in the next wider type. Functions of one float are given every float there
is, a minute or two each; the others, and all with ``--step``, a part of them or random ones. A result that is NaN,
infinite or zero must be so in both, with the same sign, but for the last number before overflow or underflow.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from ilang.codegen.compile import toolchain  # noqa: E402 - found through the line above
from ilang.codegen.compile.compilers import find_compiler  # noqa: E402
from ilang.codegen.targets import mathlib  # noqa: E402

LIBRARY = {"ln": "log"}
"""What the C library calls a function that has another name here."""
STANDARD = tuple(flag for flag in toolchain.STANDARD if flag not in ("-shared", "-fPIC"))
FAST = (*STANDARD, "-O3", "-march=native")
UNFUSED = (*FAST, "-U__FMA__", "-U__ARM_FEATURE_FMA")
"""By the texts for machines that have no such instruction."""
ROUNDS = 3000
"""Blocks of 4096 random arguments for what has too many to try them all."""


@dataclass(frozen=True)
class Measured:
    """What was found for a function: the largest error, in ulps, where; wrong special values; a sum of all bits."""

    name: str
    worst: float
    where: str
    wrong: int
    count: int
    digest: str
    messages: tuple[str, ...]


def functions() -> list[str]:
    """Those that stand for a primitive: their comment promises an error."""
    return [name for name in mathlib.FUNCTIONS if promised(name) is not None]


def promised(name: str) -> float | None:
    """The error that a function's comment promises."""
    found = re.search(r"within ([\d.]+) ulp", mathlib.FUNCTIONS[name])
    return float(found.group(1)) if found else None


def measure(
    names: Sequence[str], flags: Sequence[str], step: int, rounds: int = ROUNDS
) -> Iterator[Measured]:
    """Compile with some flags; try one float of ``step``, and so many blocks of random arguments."""
    with tempfile.TemporaryDirectory(prefix="ilang-accuracy-") as folder:
        path = Path(folder)
        (path / "accuracy.c").write_text(source(names), "utf-8")
        command = [*find_compiler().command, *flags, "accuracy.c", "-o", "accuracy", "-lm"]
        subprocess.run(command, cwd=path, check=True)
        for number, name in enumerate(names):
            words = ["./accuracy", str(number), str(step), str(rounds)]
            done = subprocess.run(words, cwd=path, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{name}: exit status {done.returncode}: {done.stderr[:2000]}")
            *messages, last = done.stdout.splitlines()
            worst, where, wrong, count, digest = last.split()
            yield Measured(
                name, float(worst), where, int(wrong), int(count), digest, tuple(messages)
            )


def source(names: Sequence[str]) -> str:
    """The C program that measures functions."""
    parts = [INCLUDES, *mathlib.definitions(names), DRIVER]
    for name in names:
        primitive, _, dtype = name.rpartition("_")
        library = LIBRARY.get(primitive, primitive)
        two = primitive == "pow"
        call = f"{name}(in[i], in2[i])" if two else f"{name}(in[i])"
        exact = f"{library}(in[i], in2[i])" if two else f"{library}((wide_{dtype})in[i])"
        if dtype == "f64":
            exact = exact.replace(library, f"{library}l", 1)
        kind = "two" if two else dtype
        text = MEASURE.replace("NAME", name).replace("DTYPE", dtype).replace("KIND", kind)
        parts.append(text.replace("CALL", call).replace("EXACT", exact))
    table = ", ".join(f"measure_{name}" for name in names)
    return "\n".join(parts) + MAIN.replace("TABLE", table)


INCLUDES = r"""
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
"""

DRIVER = r"""
enum { BLOCK = 4096 };
typedef float f32;
typedef double f64;
typedef double wide_f32;
typedef long double wide_f64;

static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* from -1 to 1 */
static double unit(void) { return (double)(int64_t)draw() * 0x1p-63; }

static const double SPECIAL[] = {
    0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1.5, -1.5, 33, -33, 0x1p-149, -0x1p-149,
    0x1p-126, 0x1.fffffep127, -0x1.fffffep127, 0x1p23, 0x1.000002p23, -0x1.000002p23, 0x1.fffffep23, -0x1.fffffep23,
    0x1p24, 0x1.000002p24, 0x1.fffffep-1, -0x1.fffffep-1, 0x1.000002p0, -0x1.000002p0, 0x1.000004p22, 8388607.5,
    1e-30, -1e30, 0x1p31, 0x1p40, -0x1p41, 0x1p-1074, -0x1p-1074, 0x1p-1022, DBL_MAX, -DBL_MAX, 709.782712893384,
    709.7827128933841, -745.1332191019411, -745.1332191019412, 0.625, 0.6249999999999999, 19.1, 0.70710678118654752,
    1.4142135623730951, 0.99999999999999989, 1.0000000000000002,
};
enum { SPECIALS = sizeof SPECIAL / sizeof *SPECIAL };

/* every float of a step, from the block-th on; 0 when there is none left */
static int fill_f32(f32 *in, f32 *in2, uint64_t block, uint64_t step, uint64_t rounds)
{
    (void)rounds;
    memset(in2, 0, BLOCK * sizeof *in2);
    if (block * BLOCK * step >= (uint64_t)1 << 32) return 0;
    for (uint64_t i = 0; i < BLOCK; ++i) {
        const uint32_t bits = (uint32_t)((block * BLOCK + i) * step);
        memcpy(&in[i], &bits, sizeof bits);
    }
    return 1;
}

/* special values, then random bits, and random numbers of a size that matters */
static int fill_f64(f64 *in, f64 *in2, uint64_t block, uint64_t step, uint64_t rounds)
{
    (void)step;
    memset(in2, 0, BLOCK * sizeof *in2);
    for (int i = 0; i < BLOCK; ++i) {
        const uint64_t bits = draw();
        const int places = (int)(draw() >> 32) % 30;
        if (block == 0 && i < SPECIALS) in[i] = SPECIAL[i];
        else if (i % 4 == 0) memcpy(&in[i], &bits, sizeof bits);
        else if (i % 4 == 1) in[i] = unit() * (block % 2 ? 750 : 20);
        else if (i % 4 == 2) in[i] = unit() * 2;
        else in[i] = 1 + ldexp(unit(), -abs(places));
    }
    return block < rounds;
}

/* all pairs of special values, then pairs whose power is mostly a finite number */
static int fill_two(f32 *in, f32 *in2, uint64_t block, uint64_t step, uint64_t rounds)
{
    (void)step;
    for (uint64_t i = 0; i < BLOCK; ++i) {
        const uint64_t bits = draw(), pair = block * BLOCK + i;
        const uint32_t first = (uint32_t)bits, second = (uint32_t)(bits >> 32);
        memcpy(&in[i], &first, sizeof first);
        memcpy(&in2[i], &second, sizeof second);
        if (pair < SPECIALS * SPECIALS) {
            in[i] = (f32)SPECIAL[pair / SPECIALS];
            in2[i] = (f32)SPECIAL[pair % SPECIALS];
        } else if (i % 5 == 1) {
            in2[i] = (f32)(unit() * 150 / (fabs(log2(fabs((double)in[i]))) + 1e-9));
        } else if (i % 5 == 2) {
            in[i] = (f32)(1 + unit() * 0.4);
            in2[i] = (f32)(unit() * 150 / (fabs(log2((double)in[i])) + 1e-12));
        } else if (i % 5 == 3) {
            in2[i] = (f32)((int)(second % 41) - 20);
        } else if (i % 5 == 4) {
            in[i] = (f32)(first % 1000) / 10;
            in2[i] = (f32)(second % 1000) / 100 - 5;
        }
    }
    return block < rounds;
}

"""

MEASURE = r"""
static DTYPE in_NAME[BLOCK], in2_NAME[BLOCK], out_NAME[BLOCK];

static void run_NAME(const DTYPE *restrict in, const DTYPE *restrict in2, DTYPE *restrict out)
{
    (void)in2;
    for (int i = 0; i < BLOCK; ++i) out[i] = CALL;
}

static void measure_NAME(uint64_t step, uint64_t rounds)
{
    DTYPE *const in = in_NAME, *const in2 = in2_NAME, *const out = out_NAME;
    const int digits = sizeof(DTYPE) == 4 ? 24 : 53, lowest = sizeof(DTYPE) == 4 ? -125 : -1021;
    const wide_DTYPE ulp = ldexp(1, lowest - digits), most = sizeof(DTYPE) == 4 ? FLT_MAX : DBL_MAX;
    double worst = 0, at = 0, at2 = 0;
    uint64_t wrong = 0, count = 0, digest = 0;
    for (uint64_t block = 0; fill_KIND(in, in2, block, step, rounds); ++block) {
        run_NAME(in, in2, out);
        for (int i = 0; i < BLOCK; ++i) {
            const wide_DTYPE exact = EXACT, error = fabsl((long double)out[i] - (long double)exact);
            uint64_t bits = 0;
            memcpy(&bits, &out[i], sizeof out[i]);
            digest = digest * 6364136223846793005u + (isnan(out[i]) ? 1 : bits);
            ++count;
            if (isnan(out[i]) && isnan(exact)) continue;
            int bad = !isnan(out[i]) != !isnan(exact) || !signbit(out[i]) != !signbit(exact);
            /* at the ends, the neighbours of infinity and of 0 are as good */
            const int ends = isinf(out[i]) || exact > most || exact < -most;
            const wide_DTYPE smaller = fabsl((long double)exact) < fabs((double)out[i]) ? exact : (wide_DTYPE)out[i];
            if (ends) bad |= fabsl((long double)smaller) < most * (1 - ldexp(1, -digits));
            if (bad && wrong++ < 5) {
                printf("%a %a gives %a, ", (double)in[i], (double)in2[i], (double)out[i]);
                printf("not %a\n", (double)exact);
            }
            if (bad || ends || error == 0) continue;
            int exponent;
            frexpl((long double)exact, &exponent);
            const double ulps = (double)(error / (exponent < lowest ? ulp : (wide_DTYPE)ldexpl(1, exponent - digits)));
            if (ulps > worst) worst = ulps, at = (double)in[i], at2 = (double)in2[i];
        }
    }
    printf("%.3f %a,%a %llu %llu %llx\n", worst, at, at2, (unsigned long long)wrong, (unsigned long long)count,
           (unsigned long long)digest);
}
"""

MAIN = r"""
int main(int argc, char **argv)
{
    static void (*const measures[])(uint64_t, uint64_t) = {TABLE};
    if (argc != 4) return 2;
    measures[atoi(argv[1])](strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    return 0;
}
"""


def main() -> int:
    """Measure, and compare with what is promised."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="functions (all of them)")
    parser.add_argument("--step", type=int, default=1, help="one float of so many (every one)")
    parser.add_argument("--unfused", action="store_true", help="without fused products and sums")
    options = parser.parse_args()
    flags = UNFUSED if options.unfused else FAST
    failed = False
    for found in measure(options.names or functions(), flags, options.step):
        bound = promised(found.name)
        assert bound is not None
        fine = found.worst <= bound and not found.wrong
        failed |= not fine
        print(
            f"{found.name:9} {found.worst:6.3f} ulp at {found.where}, {bound} promised;"
            f" {found.wrong} wrong of {found.count}: {'ok' if fine else 'FAILED'}",
            flush=True,
        )
        print(*found.messages, sep="\n", end="\n" if found.messages else "")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
