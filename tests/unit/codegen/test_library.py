"""The headers of emitted programs: each compiles alone and does what it says; a text holds the parts that it names."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.targets import c_library, cuda_library, library
from ilang.codegen.targets.c_library import HEADERS, LONGEST
from ilang.codegen.targets.identifiers import function_identifier, identifier
from ilang.codegen.targets.library import HeaderPart, linked, parts_of
from ilang.core.machine import CPU

pytestmark = pytest.mark.usefixtures("real_compiler")

FOLDER = Path(library.__file__).parent / "headers"
PARTS = c_library.parts(CPU)
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O1")
UNITS = {"plain": (), "threads": ("-fopenmp",), "avx2": ("-mavx2", "-mfma")}

CHECKS = {
    "threads": """
        need(scratches(MOST_SCRATCH / MOST_THREADS) == MOST_THREADS && scratches(MOST_SCRATCH + 1) == 1);
        need(THREADS >= 1 && threads_with_scratch(0) >= 1 && THREAD == 0);
        IN_PARALLEL(1)
        need(THREAD == 0);
        need(shares(1, 100, 1e9, 0) == 1 && shares(4, 100, ENOUGH - 1.0, 0) == 1);
        need(shares(4, 100, ENOUGH, 0) == 4 && shares(4, 3, 1e9, 0) == 3 && shares(4, 6, 1e9, 1) == 1);
        need(share(100, 0) == 0 && share(100, 1) == 100);
        const int team = 1;
        SHARE_LOOP(7, 0, 0, counted, (int)(from + until) + inside + (int)worker);
        need(wrong == 8);
        wrong = 0;
        need(blocks(0) == 1 && blocks(BLOCK_WORK) == 2 && blocks(1e300) == MOST_BLOCKS);
        need(blocks_of(0, 0) == 1 && blocks_of(1e300, 1) == MOST_BLOCKS && blocks_of(BLOCK_WORK, 3) == 2);
        need(blocks_of(15.0 * BLOCK_WORK, BLOCK_WORK) == 1 && blocks_of(16.0 * BLOCK_WORK, BLOCK_WORK) == 2);
        need(blocks_of(1e300, BLOCK_ELEMENTS) == 1 && blocks_of(1e300, 1e300) == 1);
        need(blocks_of(1e300, BLOCK_ELEMENTS / 8) == 8);
        for (int64_t n = 0; n < 300; ++n) {
            int64_t last = 0;
            for (int64_t block = 0; block < 7; ++block) {
                need(start_of(n, 7, 16, block) == last || block == 0);
                last = start_of(n, 7, 16, block + 1);
                need(last % 16 == 0 || last == n);
            }
            need(start_of(n, 7, 16, 0) == 0 && last == n);
        }
    """,
    "stop": """
#ifdef _OPENMP
        call_stop *const here_stop = running_stop;
        need(here_stop == NULL);
        PART_STOP(here_stop, counted, 3);
        need(wrong == 3);
        wrong = 0;
#endif
        const int team = 1;
        SHARE_STOPPABLE(7, 0, 0, counted, (int)(from + until) + inside + (int)worker);
        need(wrong == 8);
        wrong = 0;
    """,
    "workspace": """
        size_t bytes = 0, total = 0;
        const int64_t some[] = {3, 5}, negative[] = {3, -1}, large[] = {INT64_MAX / 8, 9};
        need(measure(&bytes, 4, 2, some) && bytes == 60 && measure(&bytes, 4, 0, NULL) && bytes == 4);
        need(!measure(&bytes, 4, 2, negative) && !measure(&bytes, 4, 2, large));
        need(add(&total, 1) && total == LINE && add(&total, LINE) && total == 2 * LINE && !add(&total, SIZE_MAX));
        need(padded(0) == 0 && padded(1) == LINE && padded(LINE + 1) == 2 * LINE);
        int64_t size = 0;
        need(derive(&size, 1, (const int64_t[]){2, 10}, -3, 1, 0, 1) && size == 17);
        need(derive(&size, 1, (const int64_t[]){1, 7}, 0, 2, 0, 0) && size == 3);
        need(!derive(&size, 1, (const int64_t[]){1, 7}, 0, 2, 1, 0) && !derive(&size, 1, some, -99, 1, 0, 0));
        const int32_t narrow[] = {0, 2, 1};
        const int64_t wide[] = {0, -1, 1};
        need(are_below_i32(narrow, 3, 3) && !are_below_i32(narrow, 3, 2) && are_below_i32(narrow, 0, 0));
        need(are_below_i64(wide, 1, 1) && !are_below_i64(wide, 2, 3));
        char memory[3 * LINE];
        need((uintptr_t)start_in(memory + 1) % LINE == 0 && start_in(memory + 1) < memory + LINE + 1);
        need(overlap(memory, 2, memory + 1, 2) && !overlap(memory, 1, memory + 1, 2) && !overlap(memory, 0, memory, 9));
        const void *apart[] = {memory, memory + LINE}, *same[] = {memory, memory}, *missing[] = {NULL, memory};
        const size_t sizes[] = {8, 8};
        need(check(apart, sizes, 2, 1, NULL, 0) == 0 && check(same, sizes, 2, 1, NULL, 0) == 2);
        need(check(same, sizes, 2, 2, NULL, 0) == 0 && check(missing, sizes, 2, 1, NULL, 0) == 1);
        need(check(apart, sizes, 2, 1, NULL, 1) == 1 && check(apart, sizes, 2, 1, memory, 1) == 2);
    """,
    "elementary": """
        need(muladd_f32(2, 3, 4) == 10 && muladd_f64(2, 3, 4) == 10);
        need(f32_of_bits(bits_of_f32(1.5f)) == 1.5f && f64_of_bits(bits_of_f64(1.5)) == 1.5);
        need(exp_f32(0) == 1 && exp_f64(0) == 1 && ln_f32(1) == 0 && ln_f64(1) == 0 && pow_f32(2, 10) == 1024);
        need(exp_f32(-INFINITY) == 0 && exp_f64(INFINITY) == INFINITY && ln_f32(0) == -INFINITY && isnan(ln_f64(-1)));
        need(tanh_f32(0) == 0 && tanh_f64(INFINITY) == 1 && sin_f32(0) == 0 && cos_f32(0) == 1 && isnan(sin_f32(NAN)));
        need(erf_f32(0) == 0 && erf_f32(INFINITY) == 1 && erf_f32(-5) == -1 && isnan(erf_f32(NAN)));
        need(divides_f32(3) && !divides_f32(0x1p65f) && quotient_f32(1, 3, 1.0f / 3) == 1.0f / 3);
        need(bits_of_f32(0x1p50f) << 1 == MOST_DIVIDED);
    """,
    "philox": """
        uint32_t zeros[4] = {0}, ones[4] = {~0u, ~0u, ~0u, ~0u}, words[4];
        philox(zeros, 0, 0);
        need(zeros[0] == 0x6627e8d5 && zeros[1] == 0xe169c58d && zeros[2] == 0xbc57ac4c && zeros[3] == 0x9b00dbd8);
        philox(ones, ~0u, ~0u);
        need(ones[0] == 0x408f276d && ones[1] == 0x41c83b0e && ones[2] == 0xa20bc7c6 && ones[3] == 0x6d5451fd);
        need(hashed_path("") == 0xcbf29ce484222325u && hashed_path("a") == 0xaf63dc4c8601ec8cu);
        random_words(words, 1, 1, 0, 0);
        need(words[0] == 0x6627e8d5 && words[3] == 0x9b00dbd8);
        need(uniform_of_word(0, 0.5f) == -0.5f && uniform_of_word(0x80000000, 3) == 0 && uniform_of_word(~0u, 1) < 1);
        float numbers[7] = {9, 9, 9, 9, 9, 9, 9}, fewer[7] = {9, 9, 9, 9, 9, 9, 9};
        fill_uniform(numbers, 7, 3, "layer.w", 0.25f);
        fill_uniform(fewer, 5, 3, "layer.w", 0.25f);
        need(memcmp(numbers, fewer, 5 * sizeof(float)) == 0 && fewer[5] == 9);
        double wide[7] = {9, 9, 9, 9, 9, 9, 9};
        fill_uniform_f64(wide, 6, 3, "layer.w", 0.25f);
        for (int n = 0; n < 6; ++n) need(wide[n] == (double)numbers[n]);
        need(wide[6] == 9);
    """,
    "safetensors": """
        float some[] = {1, 2, 3}, other[] = {4}, read[] = {0, 0, 0}, rest[] = {5};
        struct stored_array arrays[] = {
            {"f.w", "F32", "[3]", 12, some, 0, 0}, {"state.w.v", "F32", "[1,1]", 4, other, 0, 0}};
        struct stored_array wanted[] = {{"w", "F32", "[3]", 12, read, 0, 0}, {"w.v", "F32", "[1,1]", 4, rest, 0, 0}};
        uint64_t runs = 0;
        need(save_arrays("test.safetensors", "f", 7, 3, arrays, 2) == 0);
        need(load_arrays("test.safetensors", &runs, wanted, 1, 1) == 0 && runs == 7);
        need(read[0] == 1 && read[2] == 3 && rest[0] == 4);
        wanted[0].type = "F64";
        need(load_arrays("test.safetensors", &runs, wanted, 1, 1) == 7);
        wanted[0].type = "F32";
        need(save_arrays("test.safetensors", "f", 8, 3, arrays, 1) == 0);
        need(load_arrays("test.safetensors", &runs, wanted, 1, 1) == 0 && rest[0] == 0);
        need(load_arrays("none", &runs, wanted, 1, 1) == 5 && load_arrays("test.c", &runs, wanted, 1, 1) == 6);
    """,
    "ranks": """
        int rank = 3;
        float values[] = {1, 2}, others[] = {0, 0}, room[] = {0, 0};
        begin_ranks();
        need(count_ranks(&rank) == 1 && rank == 0);
        need(status_of_ranks(0, 1) == 0 && status_of_ranks(4, 1) == 4);
        sum_over_ranks(values, 2, 'f', 1);
        sum_over_others(others, values, room, 2, 'f', 0, 1);
        need(values[0] == 1 && values[1] == 2 && others[0] == 0 && others[1] == 0);
        need(PART_OF_MESSAGE(MOST_SENT + 5, MOST_SENT) == 5 && PART_OF_MESSAGE(MOST_SENT + 5, 0) == 1 << 30);
        need(BYTES_BEFORE(3, 'f') == 12 && BYTES_BEFORE(3, 'l') == 24);
        end_ranks();
    """,
    "sums": """
        float values[] = {1, 2};
        struct begun_sum sum;
        begin_sum(&sum, values, 2, 'f', 1);
        end_sums(&sum, 1);
        need(values[0] == 1 && values[1] == 2);
    """,
    "numbers": """
        float row[2] = {0}, given[2] = {1, 0x1p51f};
        for (int n = 1; n <= 2; ++n) {
            divide_row_f32(row, given, n, 3);
            need(row[0] == given[0] / 3 && row[n - 1] == given[n - 1] / 3);
        }
        divide_row_f32(row, given, 1, 0x1p65f);
        need(row[0] == 0x1p-65f);
        need(i32_of_f32(-1.9f) == -1 && i32_of_f64(3e9) == INT32_MIN && i64_of_f32(NAN) == INT64_MIN);
        need(i64_of_f64(-9.5) == -9 && i32_of_f32(2147483648.0f) == INT32_MIN && i64_of_f64(INFINITY) == INT64_MIN);
        need(max_f32(1, 2) == 2 && isnan(max_f32(NAN, 1)) && isnan(max_f32(1, NAN)) && isnan(min_f32(1, NAN)));
        need(max_f64(2, 1) == 2 && isnan(min_f64(NAN, 1)) && min_f64(1, 2) == 1 && min_f32(2, 1) == 1);
        need(max_i32(-1, 1) == 1 && min_i32(-1, 1) == -1 && max_i64(-1, 1) == 1 && min_i64(-1, 1) == -1);
        need(square_f32(-3) == 9 && square_f64(-3) == 9);
    """,
    "compilers": """
        char from[32], to[32] = {0};
        for (int n = 0; n < 32; ++n) from[n] = (char)n;
        char *const start = to + (16 - (uintptr_t)to % 16) % 16;
        quad_past(start, from + 1);
        past_end();
        need(memcmp(start, from + 1, 16) == 0);
        need(HAS_VECTORS);
        SCALAR;
    """,
    "vectors": """
        const float numbers[] = {1, 5, NAN, 4}, others[] = {2, 3, 1, NAN};
        f32x2 larger, smaller;
        const f32x2u *const a = (const f32x2u *)numbers, *const b = (const f32x2u *)others;
        larger = MAX_LANES(f32x2, *a, *b), smaller = MIN_LANES(f32x2, *a, *b);
        need(larger[0] == 2 && larger[1] == 5 && smaller[0] == 1 && smaller[1] == 3);
        larger = MAX_LANES(f32x2, a[1], b[1]), smaller = MIN_LANES(f32x2, a[1], b[1]);
        need(isnan(larger[0]) && isnan(larger[1]) && isnan(smaller[0]) && isnan(smaller[1]));
        need(lanes_f32x16 == VECTOR / 4 && lanes_f64x8 == VECTOR / 8 && lanes_f64x2 == 2 && lanes_i64x8 == VECTOR / 8);
        need(1 << f32x16_stages == lanes_f32x16 && 1 << f64x8_stages == lanes_f64x8);
        f64x8 low = {1, 2}, high = {3, 4}, mixed = f64x8_low(low, high);
        need(mixed[0] == 1 && mixed[1] == 3);
    """,
    "lanes": """
        float lanes[64];
        double wide[8];
        for (int n = 0; n < 64; ++n) lanes[n] = 1.0f;
        SUM_LANES_64(lanes);
        need(lanes[0] == 64);
        for (int n = 0; n < 32; ++n) lanes[n] = (float)(n * 7 % 32);
        for (int n = 0; n < 8; ++n) wide[n] = n * 3 % 8;
        for (int count = 8; count <= 32; count *= 2) {
            float most = lanes[0], least = lanes[0];
            for (int n = 1; n < count; ++n) most = max_f32(most, lanes[n]), least = min_f32(least, lanes[n]);
            need(max_lanes_f32(lanes, count) == most && min_lanes_f32(lanes, count) == least);
        }
        need(max_lanes_f64(wide, 8) == 7 && min_lanes_f64(wide, 8) == 0);
        for (int at = 0; at < 8; ++at) {
            float zeros[8] = {0};
            double doubles[8] = {0};
            for (int n = 0; n < 8; ++n) zeros[n] = n == at ? 0.0f : -0.0f, doubles[n] = n == at ? -0.0 : 0.0;
            need(!signbit(max_lanes_f32(zeros, 8)) && signbit(min_lanes_f32(zeros, 8)));
            need(!signbit(max_lanes_f64(doubles, 8)) && signbit(min_lanes_f64(doubles, 8)));
            zeros[at] = NAN, doubles[at] = NAN;
            need(isnan(max_lanes_f32(zeros, 8)) && isnan(min_lanes_f32(zeros, 8)));
            need(isnan(max_lanes_f64(doubles, 8)) && isnan(min_lanes_f64(doubles, 8)));
        }
    """,
    "squares": """
        float from[20 * 20], to[20 * 20] __attribute__((aligned(64)));
        for (int n = 0; n < 400; ++n) from[n] = (float)n, to[n] = -1;
        transpose_square_f32(to, 20, from, 20, 0);
        for (int r = 0; r < lanes_f32x16; ++r)
            for (int c = 0; c < lanes_f32x16; ++c) need(to[c * 20 + r] == from[r * 20 + c]);
        transpose_square_f32(to, 16, from + 1, 20, 1);
        past_end();
        for (int c = 0; c < lanes_f32x16; ++c) need(to[c * 16 + 1] == from[20 + c + 1]);
        transpose_half_f32(to, 20, from, 20);
        for (int r = 0; r < lanes_f32x16 / 2; ++r)
            for (int c = 0; c < lanes_f32x16; ++c) need(to[c * 20 + r] == from[r * 20 + c]);
    """,
    "transposes": """
        static float from[70 * 70], to[70 * 70];
        for (int n = 0; n < 70 * 70; ++n) from[n] = (float)n;
        for (int rows = 0; rows < 40; ++rows) {
            for (int columns = 0; columns < 40; columns += 3) {
                for (int way = 0; way < 3; ++way) {
                    memset(to, 0, sizeof to);
                    if (way < 2) transpose_f32(to, 5, 64, from, 7, 70, rows, columns, way);
                    else transpose_short_f32(to, 5, 64, from, 7, 70, rows, columns, 0);
                    for (int c = 0; c < 60; ++c) {
                        for (int r = 0; r < 60; ++r) {
                            const int inside = r < rows && c < columns;
                            need(to[5 + c * 64 + r] == (inside ? from[7 + r * 70 + c] : 0));
                        }
                    }
                }
            }
        }
    """,
}
"""What is called of each header."""


def functions_of(parts: tuple[HeaderPart, ...]) -> list[str]:
    return [name.rstrip("(") for part in parts for name in part.names if name.endswith("(")]


def compiled(text: str, folder: Path, flags: tuple[str, ...]) -> Path:
    (folder / "machine.h").write_text(c_library.machine_header(CPU), "ascii")
    (folder / "test.c").write_text(text, "ascii")
    compiler = find_compiler().command
    command = [*compiler, *WARNINGS, *flags, "-I", str(FOLDER), "-I", ".", "test.c", "-o", "test"]
    done = subprocess.run(
        [*command, "-lm"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "test"


@pytest.mark.deep
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", HEADERS)
def test_a_header_compiles_alone_and_does_what_it_says(
    name: str, unit: str, tmp_path: Path
) -> None:
    uses = "".join(
        f"    (void){function};\n"
        for part in library.header(f"{name}.h")
        if not part.condition
        for function in functions_of((part,))
    )
    text = f"""\
#include "{name}.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static int wrong;
void counted(int count);
void counted(int count)
{{
    wrong += count;
}}
#define need(holds) ((holds) ? (void)0 : (void)(++wrong, printf("%s\\n", #holds)))
int main(void)
{{
{uses}{CHECKS[name]}
    return wrong != 0;
}}
"""
    program = compiled(text, tmp_path, UNITS[unit])
    done = subprocess.run([str(program)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("unit", UNITS)
def test_every_part_for_every_type_is_one_text(unit: str, tmp_path: Path) -> None:
    """Each after those that it names, as one text of a program that uses all."""
    called = functions_of(tuple(part for part in PARTS if "IL_WITH" not in part.condition))
    uses = "\n".join(f"    (void){name};" for name in called)
    words = " ".join(name for part in PARTS for name in part.names if not name.endswith("("))
    named = f"{words} " + " ".join(f"{name}()" for name in functions_of(PARTS))
    includes = "".join(
        f"#include <{name}.h>\n"
        for name in ("inttypes", "math", "setjmp", "stddef", "stdint", "stdio", "string")
    )
    includes += "#ifdef _OPENMP\n#include <omp.h>\n#endif\n"
    uses += "\n#ifdef _OPENMP\n    (void)running_stop;\n#endif"
    body = ["int main(void)", "{", uses, "    return 0;", "}", ""]
    text = "\n".join([includes, *linked(named, PARTS), *body])
    compiled(text, tmp_path, UNITS[unit])


def test_parts_follow_those_that_they_name() -> None:
    """Macros aside, which name what stands where they are used."""
    for parts in (PARTS, cuda_library.parts()):
        places = {name: n for n, part in enumerate(parts) for name in part.names}
        assert len(places) == sum(len(part.names) for part in parts), "a name has one part"
        for n, part in enumerate(parts):
            if not part.text.lstrip("/* ").startswith("#define") and "#define" not in part.text:
                wanted = library._named(part.text) & places.keys()
                assert all(places[name] <= n for name in wanted), part.names


@pytest.mark.parametrize("name", sorted({name for part in PARTS for name in part.names}))
def test_no_program_names_anything_like_a_part(name: str) -> None:
    """A function of a header has another name where it is called, so an array may have its name."""
    bare = name.rstrip("(")
    assert function_identifier(bare) != bare
    assert name.endswith("(") or identifier(bare) != bare


def test_no_program_has_the_name_of_a_macro() -> None:
    texts = (path.read_text("utf-8") for path in FOLDER.glob("*.*"))
    macros = {
        name for text in texts for name in re.findall(r"^ *# *define (\w+)", text, re.MULTILINE)
    }
    assert 20 < len(macros)
    assert [name for name in macros if identifier(name) == name and not name.endswith("_H")] == []


def test_a_text_holds_what_it_calls() -> None:
    text = "\n".join(linked("const int blocks = 3; y = exp_f32(x);", PARTS))
    defined = {name for part in parts_of(text) for name in part.names}
    assert {"exp_f32(", "power_f32(", "muladd_f32(", "FUSED", "INLINED"} <= defined
    assert not defined & {"blocks(", "ln_f32(", "LINE", "exp_f64("}
    assert not list(linked("/* max_f32(a, b) */", PARTS))


def test_conditions_stand_around_their_parts() -> None:
    text = "\n".join(linked("f32x16 a; f64x8 b;", PARTS))
    assert text.count("#ifdef __GNUC__") == 1
    assert text.index("#define VECTOR") < text.index("#ifdef __GNUC__") < text.index("f32x16u")


@pytest.mark.parametrize("dtype", LONGEST)
def test_headers_for_every_type(dtype: str) -> None:
    text = "\n".join(linked(f"transpose_short_{dtype}();", PARTS))
    others = LONGEST.keys() - {dtype}
    assert re.search(rf"\btranspose_half_{dtype}\b", text)
    assert not any(
        re.search(rf"\btranspose\w*_{other}\b|\b{LONGEST[other]}\b", text) for other in others
    )


def test_the_numbers_are_of_the_machine() -> None:
    assert f"#define ENOUGH {CPU.threads.enough_work}\n" in c_library.machine_header(CPU)
    assert CPU.vector_bytes() == max(int(n) for n in re.findall(r"VECTOR == (\d+)", vectors()))


def vectors() -> str:
    return (FOLDER / "vectors.h").read_text("ascii")
