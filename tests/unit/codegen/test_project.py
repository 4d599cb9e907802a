"""Generated projects: what is in them compiles without a warning, passes its own test, and is written whole."""

import errno
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ilang.codegen.project import render as project
from ilang.codegen.project.emulation import check_cuda
from ilang.codegen.project.render import file_stem, fixed, write_project
from ilang.codegen.project.selftest import TEST_PARTS, own_names
from ilang.codegen.targets.identifiers import function_identifier, identifier, member_identifier
from ilang.codegen.targets.session import ExportedFunction
from ilang.core.diagnostic import Error, ToolError
from ilang.core.ir.graph import Graph
from ilang.core.machine import CPU, SERIAL
from ilang.core.notation.files.module import exports, parse_module
from ilang.core.pipeline import infer, lower, module_graph
from ilang.core.source import Source
from tests.mixing import Mixing
from tests.property import native
from tests.shares import share

pytestmark = pytest.mark.deep

ROOT = Path(__file__).resolve().parents[3]

needs_make = pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("cc") is None, reason="needs make and cc"
)
needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

STRICT = "-O1 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wvla -Werror"
STACK = "-Wstack-usage=65536"

MATMUL = "matmul(a[m,k], b[k,n]) = ik*kj~ijk >> +ijk~ij\n"
ATTENTION = """\
# attention.i
scores = ik*jk~ijk >> +ijk~ij
shift  = (I & >ij~i) >> ij-i~ij
exp    = ^ij~ij
norm   = (I & +ij~i) >> ij/i~ij
mix    = ij*jk~ijk >> +ijk~ik
attention(q[m,d], k[n,d], v[n,d]) = scores >> shift >> exp >> norm >> mix
"""

PROGRAMS = {
    "matmul": MATMUL,
    "attention": ATTENTION,
    "several": "rows = +ij~i & >ij~i\ncolumns = <ij~j\nboth(x[n], y[m]) = I | -i~i\nhalf = 0.5\n",
    "scalars": "product(x[], y[]) = .*.~.\nscaled(x[n], by[]) = i*.~i\nfour = 4\nsame(x[]) = I\n",
    "types": (
        "ints(a: i32[n], b: i32[n]) = i*i~i >> +i~.\n"
        "longs(a: i64[n,m]) = >ij~i & <ij~j\n"
        "truths(a: bool[n], b: bool[n]) = i&&i~i & i^^i~i\n"
        "doubles(x: f64[n,m], y: f64[m,k]) = ik*kj~ijk >> +ijk~ij\n"
        "compared(x[n], y[n]) = i>=i~i & i==i~i\n"
        "cut(x[n]) = i32\n"
        "counted(x[n]) = >>i~i >> +i~.\n"
    ),
    "fixed": "layer(x[4,8], w[8,5]) = ik*kj~ijk >> +ijk~ij\nempty(x[3,0]) = >ij~i\n"
    "rows(x[n,0,m]) = +nkm~nk\n",
    "functions": (
        "logs(x: f64[n], y[n]) = i$i~i\n"
        "powers(x[n,m], y[n,m]) = ij^ij~ij >> +ij~i\n"
        "roots(x[n,4]) = (I | 0.5) >> ij^.~ij\n"
        "mean(x[n,m]) = (+ij~i | 4) >> i/.~i\n"
        "overflow(x[n]) = +i~i >> ^i~i >> ^i~i >> ^i~i >> ^i~i\n"
    ),
    "windows": (
        "convolution(x[n,c,h,w], k[o,c,u,v]) = nc(y+u)(x+v)*ocuv~noyxcuv >> +noyxcuv~noyx\n"
        "pooled(x[n,c,h,w]) = >nc(2y+u:3)(2x+v:3)~ncyx\n"
        "padded(x[n], k[u]) = (y+u-1)*u~yu >> +yu~y\n"
        "first(x[n,m]) = 0j~j\n"
        "twice(x[n,m]) = 0j~j & 0j~j\n"
        "same(x[h], k[u], b[y]) = (y+u)*u~yu >> +yu~y >> y+y~y\n"
    ),
    "names": (
        "exp(int[n,while], n[while,auto]) = ik*kj~ijk >> +ijk~ij\n"
        "double(check, overlap, measure, max_f32, out) = (i*i~i | >i~.) | ij+ij~ij\n"
        "count(test_run, out, failed) = (i*i~i >> +i~. | >i~.)\n"
        "n(sizes[double, while]) = ^ij~ij\n"
        "main(arg, n_i, in0, __LINE__, _OPENMP, EOF, M_PI, errno)"
        " = i+i~i | i+i~i | i+i~i | i+i~i\n"
        "work(in[in], work[in]) = i+i~i\n"
        "strlen = +i~i\nfabsf = -i~i\nconj = *i~.\nisnan = >>i~i\nffs = ^ij~ij\nabs = !!i~i\n"
        "test(FILE[va_list,NULL], restrict[NULL,time_t], stdin[test]) = ik*kj~ijk >> +ijk~ij | I\n"
        "test_run = -i~i\ntest_call(test_call) = -i~i\ntest_f32 = -i~i\nTEST_GUARD = -i~i\n"
        "printf = -i~i\nassert = -i~i\nNULL = -i~i\nint64_t = -i~i\nstderr = -i~i\nva_list = -i~i\n"
        "errno(int64_t[size_t], omp_get_num_threads[size_t]) = i+i~i\nrandom = -i~i\nsleep = -i~i\n"
        "function = -i~i\narrays = -i~i\ntests = -i~i\nstored = -i~i\n"
    ),
    "hostile": (
        "# */ int hidden = 1; /* ??/\n#\\\n# ???/\n# *\\\n#/ \\ \n# \u00e9 \u202e */\n"
        f"sum = +i~.  # */ {'*/ ' * 40}\n# /* // */\n#\t`rm` $(rm) \\"
    ),
    "large": "product(a[4096,4096], b[4096,4096]) = ik*kj~ijk >> +ijk~ij\n",
}


def build(
    text: str, out: Path, stem: str = "model", shapes: Mapping[str, tuple[int, ...]] | None = None
) -> list[Path]:
    return write_project(graphs(text), out, text, stem, shapes)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def graphs(text: str) -> list[Graph]:
    module = parse_module(Source("model.i", text))
    return [module_graph(module, definition.name) for definition in exports(module)]


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", "MAKEFLAGS": "", "MAKELEVEL": "0"}
    return subprocess.run(
        ["make", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def passes(folder: Path, *words: str) -> str:
    """What the program's own test prints; it passes."""
    done = make(folder, "test", *words)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert not done.stderr
    return done.stdout


def compilers() -> Iterator[tuple[str, str]]:
    yield "cc", f"-std=c99 {STACK}"
    yield "cc", f"-std=gnu11 {STACK}"
    if shutil.which("clang"):
        yield "clang", "-std=c99"
        yield "clang", "-std=gnu11"
    if importlib.util.find_spec("ziglang"):
        yield f"{sys.executable} -m ziglang cc", "-std=c99"


def compiled_programs() -> Iterator[tuple[str, str, str]]:
    """Every program with the first compiler and standard, and a share of them with each of the others."""
    for number, (compiler, flags) in enumerate(compilers()):
        for name in share(list(PROGRAMS), number) if number else PROGRAMS:
            yield name, compiler, flags


@needs_make
@pytest.mark.parametrize(("name", "compiler", "flags"), list(compiled_programs()))
def test_compiles_without_a_warning_and_passes(
    name: str, compiler: str, flags: str, tmp_path: Path
) -> None:
    build(PROGRAMS[name], tmp_path / "out")
    said = passes(tmp_path / "out", f"CC={compiler}", f"CFLAGS={STRICT} {flags}")
    assert re.search(r"^model: all \d+ tests passed$", said, re.MULTILINE)


@needs_make
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "large"])
def test_passes_with_a_compiler_without_vectors(name: str, tmp_path: Path) -> None:
    """Compilers of that kind do not say that they are GCC."""
    build(PROGRAMS[name], tmp_path)
    for file in ("model.c", "model_support.h"):
        path = tmp_path / file
        path.write_text(path.read_text().replace("__GNUC__", "NO_VECTORS"))
    flags = "-O0 -std=c99 -Wall -Wextra -Werror -Wno-unknown-pragmas"
    said = passes(tmp_path, "PORTABLE=1", f"CFLAGS={flags}")
    assert re.search(r"^model: all \d+ tests passed$", said, re.MULTILINE)


@needs_make
@pytest.mark.skipif(not native.runs_here("neon"), reason=f"needs {native.ARM} and {native.QEMU}")
@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_with_neon(name: str, tmp_path: Path) -> None:
    build(PROGRAMS[name], tmp_path)
    done = make(tmp_path, "model_test", f"CC={native.ARM}", "LDFLAGS=-static")
    assert done.returncode == 0, done.stderr[-2000:]
    command = [native.QEMU, "./model_test"]
    said = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, check=True)
    assert re.search(rb"^model: all \d+ tests passed$", said.stdout, re.MULTILINE)


def test_a_header_lists_the_statuses_of_its_functions(tmp_path: Path) -> None:
    for name, program in PROGRAMS.items():
        build(program, tmp_path / name)
        header = (tmp_path / name / "model.h").read_text("utf-8")
        reads = "return 4;" in (tmp_path / name / "model.c").read_text("utf-8")
        assert (" * returns 4: an index read" in header) == reads


@needs_cxx
@pytest.mark.parametrize("name", PROGRAMS)
def test_header_serves_cxx(name: str, tmp_path: Path) -> None:
    build(PROGRAMS[name], tmp_path / "out")
    (tmp_path / "use.cc").write_text('#include "out/model.h"\n#include "out/model.h"\n')
    command = ["g++", *STRICT.split(), "-fsyntax-only", "use.cc"]
    subprocess.run(command, cwd=tmp_path, check=True)


@needs_make
@pytest.mark.parametrize("name", ["attention", "types", "windows"])
def test_runs_clean_under_sanitizers(name: str, tmp_path: Path) -> None:
    build(PROGRAMS[name], tmp_path)
    flags = "-O0 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
    if "unrecognized" in make(tmp_path, "all", f"CFLAGS={flags}").stderr:
        pytest.skip("the compiler has no sanitizers")
    passes(tmp_path, f"CFLAGS={flags}")


def with_views() -> Graph:
    """Scores of heads, and what picks rows by indices: views of arguments, of what is stored, of results."""
    m = Mixing(3)
    q, k = (m.view("b s (h d) -> b s h d", each, h=4) for each in (0, 1))
    scores = m.index("bshd*bthd~bhstd >> +bhstd~bhst", q, k)
    rows = m.index(
        "bt@vd~btd", m.view("(b t) -> b t", 2, b=3), m.view("b h s t -> (b h s) t", scores)
    )
    return m.graph(m.view("b h s t -> (b h) s t", scores), m.view("b t d -> (b t d)", rows))


@needs_make
def test_views_are_tested_where_they_divide_and_where_not(tmp_path: Path) -> None:
    write_project([with_views()], tmp_path, "views", "model")
    said = passes(tmp_path, f"CFLAGS={STRICT} -O1")
    extents = [int(n) for n in re.findall(r" hd=(-?\d+)", said)]
    assert any(0 < n and not n % 4 for n in extents)
    assert any(n % 4 for n in extents)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_views_on_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("I_CACHE_DIR")  # whose emulator is compiled
    graph = with_views()
    done = check_cuda(infer(graph, ["f32", "f32", "i64"]))
    assert 2 < done.runs, done.says


@needs_make
def test_prints_a_line_for_each_test(tmp_path: Path) -> None:
    build(MATMUL, tmp_path)
    lines = passes(tmp_path, "CFLAGS=-O0").splitlines()
    assert lines[-14:] == [
        "./model_test",
        "matmul m=3 k=5 n=2: ok",
        "matmul m=19 k=23 n=17: ok",
        "matmul m=64 k=32 n=64: ok",
        "matmul m=1 k=1 n=1: ok",
        "matmul m=0 k=5 n=2: ok",
        "matmul m=3 k=0 n=2: ok",
        "matmul m=3 k=5 n=0: ok",
        "matmul m=-1 k=5 n=2: ok",
        "matmul m=3 k=-1 n=2: ok",
        "matmul m=3 k=5 n=-1: ok",
        "matmul with extents of 2^63-1: ok",
        "matmul without sizes: ok",
        "model: all 12 tests passed",
    ]


RIGHT = """\
#include "model.h"

static int is_apart(const float *a, int64_t n, const float *b, int64_t m)
{
    return (uintptr_t)(a + n) <= (uintptr_t)b || (uintptr_t)(b + m) <= (uintptr_t)a;
}

size_t matmul_work(const matmul_sizes *s)
{
    if (s == NULL || s->m < 0 || s->k < 0 || s->n < 0 || s->m == INT64_MAX) return SIZE_MAX;
    return 64;
}

int matmul(const matmul_sizes *s, const float *a, const float *b, float *out, void *work)
{
    if (s == NULL) return 1;
    if (matmul_work(s) == SIZE_MAX) return 3;
    const int64_t m = s->m, k = s->k, n = s->n;
    if ((a == NULL && m * k > 0) || (b == NULL && k * n > 0)) return 1;
    if (out == NULL && m * n > 0) return 1;
    if (work == NULL) return 1;
    if (m * n > 0 && m * k > 0 && !is_apart(a, m * k, out, m * n)) return 2;
    if (m * n > 0 && k * n > 0 && !is_apart(b, k * n, out, m * n)) return 2;
    if (m * n > 0 && !is_apart(work, 16, out, m * n)) return 2;
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t q = 0; q < k; ++q) sum += (double)(a[i * k + q] * b[q * n + j]);
            out[i * n + j] = (float)sum;
        }
    }
    return 0;
}
"""

PLANTED = {
    "nothing": ("", "", "all 12 tests passed"),
    "sign": ("sum += ", "sum -= ", "m=3 k=5 n=2: out[0] is "),
    "start": ("double sum = 0;", "double sum = 1e-4;", "m=3 k=0 n=2: out[0] is 9.99999975e-05, expected 0"),
    "short loop": ("q < k;", "q < k - (k > 16);", "m=19 k=23 n=17: out["),
    "lost in vectors": ("sum += ", "if (k % 32 || q % 32) sum += ", "m=64 k=32 n=64: out["),
    "long loop": ("i < m;", "i <= m;", "wrote outside of out"),
    "before the start": ("out[i * n + j]", "out[i * n + j - 1]", "wrote outside of out"),
    "outside of the workspace": ("    return 0;\n}\n", "    ((char *)work)[64] = 1;\n    return 0;\n}\n", "of work"),
    "changed input": ("    return 0;\n}\n", "    if (m) ((float *)a)[0] = 9;\n    return 0;\n}\n", "input a was"),
    "forgotten element": ("j < n;", "j < n - (n > 16);", "nan, expected"),
    "swapped operands": ("(a[i * k + q] * b[q * n + j])", "(b[q * n + j] / a[i * k + q])", "out["),
    "NULL input": ("a == NULL && ", "0 && ", ""),
    "NULL work": ("if (work == NULL) return 1;", "", "returned 0 without work, expected 1"),
    "NULL sizes": ("if (s == NULL) return 1;", "", "returned 3 for such sizes, expected 1"),
    "overlap": ("!is_apart(b, k * n, out, m * n)", "0", "returned 0 for overlap, expected 2"),
    "overlap of work": ("!is_apart(work, 16, out, m * n)", "0", "returned 0 for overlap, expected 2"),
    "extent": ("s->k < 0 || ", "", "k=-1 n=2: asked for a workspace"),
}  # fmt: skip


@needs_make
@pytest.mark.parametrize("name", PLANTED)
def test_finds_what_is_wrong(name: str, tmp_path: Path) -> None:
    """The self-test of a library that somebody else wrote, with one thing wrong in it."""
    before, after, said = PLANTED[name]
    build(MATMUL, tmp_path)
    assert before in RIGHT
    head, _, tail = RIGHT.rpartition(before) if before else (RIGHT, "", "")
    (tmp_path / "model.c").write_text(head + after + tail)
    done = make(tmp_path, "test", "CFLAGS=-O0 -w")
    assert said in done.stdout, done.stdout + done.stderr
    assert (done.returncode == 0) == (name == "nothing")


@needs_make
def test_installs_what_a_program_needs(tmp_path: Path) -> None:
    build(MATMUL, tmp_path / "out")
    root = tmp_path / "a root"
    done = make(tmp_path / "out", "install", "PREFIX=/opt/things", f"DESTDIR={root}", "CFLAGS=-O1")
    assert done.returncode == 0, done.stderr
    found = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
    assert found == [
        "opt/things/include/model.h",
        "opt/things/lib/libmodel.a",
        "opt/things/lib/libmodel.so",
        "opt/things/lib/pkgconfig/model.pc",
    ]
    described = (root / "opt/things/lib/pkgconfig/model.pc").read_text().splitlines()
    assert described[0] == "libdir=${pcfiledir}/.."
    assert "Libs: -L${libdir} -lmodel" in described
    done = make(tmp_path / "out", "uninstall", "PREFIX=/opt/things", f"DESTDIR={root}")
    assert done.returncode == 0, done.stderr
    assert not [p for p in root.rglob("*") if p.is_file()]
    assert make(tmp_path / "out", "clean").returncode == 0
    assert names_in(tmp_path / "out") == sorted(
        [
            *("CMakeLists.txt", "Makefile", "README.md", "model.c", "model.h", "model.pc"),
            *("model_example.c", "model_support.h", "model_test.c"),
        ]
    )


@needs_make
def test_switches_of_the_makefile(tmp_path: Path) -> None:
    build(MATMUL, tmp_path)
    plain = make(tmp_path, "-n").stdout
    exact = "-ffp-contract=off -fno-math-errno -fno-trapping-math"
    assert f"-std=gnu11 {exact}" in plain
    assert "-O3" in plain
    assert "openmp" not in plain
    assert "native" not in plain
    said = make(
        tmp_path, "-n", "OPENMP=1", "NATIVE=1", "CFLAGS=-O2 -std=c99", "CPPFLAGS=-DX", "CC=my cc"
    ).stdout
    assert f"my cc -std=gnu11 {exact} -fopenmp -march=native -DX -O2 -std=c99 " in said
    assert "-O3" not in said
    assert "my ar rcs" in make(tmp_path, "-n", "AR=my ar").stdout


@needs_make
@pytest.mark.parametrize(
    "other", ["CFLAGS=-O0 -DX='\"a $$b, c\"'", "CC=cc -w", "LDFLAGS=-s", "NATIVE=1", "AR=ar -v"]
)
def test_compiles_again_with_other_flags_alone(other: str, tmp_path: Path) -> None:
    build(MATMUL, tmp_path)

    def made(*words: str) -> str:
        done = make(tmp_path, *words)
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        return done.stdout

    usual = "CFLAGS=-O0"
    made("-j2", "all", "model_test", usual)
    record = tmp_path / "model.flags"
    written = record.stat().st_mtime_ns
    for words in (("all", "model_test"), ("-n", "all", "model_test"), ("install",)):
        again = made(*words, usual, f"DESTDIR={tmp_path}/root")
        assert "-c model.c" not in again
        assert "flags" not in again
    assert record.stat().st_mtime_ns == written
    assert make(tmp_path, "-q", "all", usual, other).returncode == 1
    assert "-c model.c" in made("-n", "all", usual, other)
    assert record.stat().st_mtime_ns == written, "make -n writes nothing"
    said = made("-j2", "all", "model_test", usual, other)
    assert " -c model.c" in said
    assert "-o model_test" in said
    assert "flags" not in said
    assert "Nothing to be done" in made("all", usual, other)
    assert "-c model.c" in made("clean", "all", usual, other)
    made("clean")
    assert not record.exists()


@needs_make
@pytest.mark.parametrize("other", ["ARCH=sm_90", "NVCCFLAGS=-G", "CFLAGS=-O1"])
def test_a_cuda_project_compiles_again_with_other_flags_alone(other: str, tmp_path: Path) -> None:
    write_project(graphs(MATMUL), tmp_path, MATMUL, "model", target="cuda")
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nfor last; do :; done\n: >"$last"\n')
    compiler.chmod(0o755)
    words = ("model.o", "model_test.o", "model_example.o", "NVCC=./compiler", "CC=./compiler")
    assert make(tmp_path, *words).stdout.count(" -c ") == 3
    assert " -c " not in make(tmp_path, *words).stdout
    assert make(tmp_path, *words, other).stdout.count(" -c ") == 3
    assert " -c " not in make(tmp_path, *words, other).stdout
    assert make(tmp_path, "clean").returncode == 0
    assert "model.flags" not in names_in(tmp_path)


def test_same_bytes_everywhere(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.unit.codegen.test_project import *\n"
        "for n, name in enumerate(['attention', 'types', 'names']):\n"
        "    build(PROGRAMS[name], Path(sys.argv[1]) / str(n))\n"
    )
    told = []
    for number, settings in enumerate(
        (
            {"PYTHONHASHSEED": "0"},
            {"PYTHONHASHSEED": "7", "LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "X"},
        )
    ):
        out = tmp_path / str(number)
        command = [sys.executable, "-c", program, str(out)]
        subprocess.run(command, cwd=ROOT, env={**os.environ, **settings}, check=True)
        told.append(
            {p.relative_to(out): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}
        )
    assert len(told[0]) == 27
    assert told[0] == told[1]


def test_text_is_ascii_and_fits_the_screen(tmp_path: Path) -> None:
    for name, text in PROGRAMS.items():
        for path in build(text, tmp_path / name):
            for line in path.read_text("ascii").splitlines():
                assert "\t" not in line or path.name == "Makefile"
                assert line == line.rstrip()
                assert not path.name.endswith("_test.c") or len(line) <= 160


def test_every_function_of_the_library_is_called(tmp_path: Path) -> None:
    """Some compilers warn of a static function that nobody calls, even of an inline one."""
    for name, text in PROGRAMS.items():
        build(text, tmp_path / name)
        files = (tmp_path / name / file for file in ("model_support.h", "model.c"))
        source = "".join(file.read_text() for file in files)
        for function in re.findall(r"^(?:static|il_INLINED) [\w *]*?(\w+)\(", source, re.MULTILINE):
            calls = rf"\b{function}\(|SHARE_LOOP\([^;]*\b{function},\s+from"
            assert 1 < len(re.findall(calls, source)), function


FORMULAS = """\
/* attention:
 *     scores  scores[i,j] = sum_k q[i,k]*k[j,k]
 *     shift   shift[i,j] = scores[i,j] - max_k scores[i,k]
 *     exp     exp[i,j] = exp(shift[i,j])
 *     norm    norm[i,j] = exp[i,j] / sum_k exp[i,k]
 *     mix     out[i,k] = sum_j norm[i,j]*v[j,k]
 *
 * model.c: written by `i build` from the program in model_support.h.
 */

#include "model_support.h"
"""


def test_program_stands_at_the_top(tmp_path: Path) -> None:
    build(ATTENTION, tmp_path)
    assert (
        (tmp_path / "model_support.h")
        .read_text()
        .startswith(
            "/* model_support.h: written by `i build` from this program:\n *\n *     # attention.i\n"
            " *     scores = ik*jk~ijk >> +ijk~ij\n"
        )
    )


def test_formulas_stand_at_the_top(tmp_path: Path) -> None:
    build(ATTENTION, tmp_path)
    assert (tmp_path / "model.c").read_text().startswith(FORMULAS)
    build(MATMUL, tmp_path)
    text = (tmp_path / "model.c").read_text()
    assert text.startswith("/* matmul: out[i,j] = sum_k a[i,k]*b[k,j]\n *\n * model.c: written by")


@needs_make
def test_c_for_one_core_shares_nothing(tmp_path: Path) -> None:
    """It is shorter, compiles without a warning, and passes its test."""
    lines = dict[str, int]()
    for name, machine in (("alone", SERIAL), ("shared", CPU)):
        text = PROGRAMS["several"] + MATMUL + PROGRAMS["windows"] + "total = +i~.\n"
        functions = [project.exported_component(graph, {}, machine) for graph in graphs(text)]
        project.write_functions(functions, tmp_path / name, text, "model")
        files = ("model.c", "model_support.h", "README.md", "model.h")
        texts = {file: (tmp_path / name / file).read_text() for file in files}
        shares = [file for file in files if "SHARE_LOOP" in texts[file] or "OPENMP" in texts[file]]
        assert shares == ([] if machine is SERIAL else [*files[:3]])
        lines[name] = sum(text.count("\n") for text in texts.values())
    assert lines["alone"] < 0.9 * lines["shared"]
    passes(tmp_path / "alone", f"CFLAGS=-std=c99 {STRICT}")


def test_names_at_file_scope_are_known(tmp_path: Path) -> None:
    """Everything the files define is a part of a function, a name of the test, or has the prefix of headers."""
    defined = re.compile(
        r"^(?:static |il_INLINED |int |size_t )[^=;(]*?(\w+)(?:\(|\[\] = |= )|^\} (\w+);|^#define (\w+)",
        re.MULTILINE,
    )
    for name, text in PROGRAMS.items():
        files = build(text, tmp_path / name)
        found = {
            word
            for path in files
            if path.suffix in (".c", ".h")
            for match in defined.finditer(path.read_text())
            for word in match.groups()
            if word
        }
        functions = [
            ExportedFunction(s, lower(s)) for s in (fixed(graph, {}) for graph in graphs(text))
        ]
        known = {"main", f"{functions[0].name().upper()}_H", *own_names()}
        for function in functions:
            known |= {function.name(), *project._parts(function)}
        assert len(found) > len(functions)
        known |= {"__attribute__", "IL_JOINED", "IL_OF_VARIANT", "IL_NAMED"}
        assert not {word for word in found - known if not word.startswith("il_")}
    assert "test_21" in TEST_PARTS


INCLUDED = "inttypes math stddef stdint stdio stdlib string"
NAMED = """\
typedef struct {{ long long {member}; }} {function}_sizes;
size_t {function}_work(const {function}_sizes *sizes);
int {function}(const {function}_sizes *sizes, const float *x, void *work);
int named_{number}(int {array});
int named_{number}(int {array}) {{ return {array}; }}
"""


def compilers_of_headers() -> Iterator[list[str]]:
    """Compilers of C and C++, each with a standard."""
    for program, suffix, standards in (
        ("gcc", "c", ("c99", "gnu11", "gnu17")),
        ("clang", "c", ("c99", "gnu11")),
        ("g++", "cc", ("c++98", "gnu++17")),
        ("clang++", "cc", ("gnu++17",)),
        *((f"clang-{version}", "c", ("c99", "gnu17")) for version in range(15, 31)),
    ):
        if shutil.which(program):
            yield from ([program, f"-std={standard}", f"x.{suffix}"] for standard in standards)


@needs_make
@pytest.mark.parametrize("command", list(compilers_of_headers()), ids=" ".join)
def test_no_name_of_a_header_is_in_the_way(command: list[str], tmp_path: Path) -> None:
    """Everything that the headers we include define or declare, as a function, an input and a dimension."""
    source = tmp_path / command[-1]
    includes = "".join(f"#include <{name}.h>\n" for name in INCLUDED.split())
    source.write_text(includes)
    flags = [*command[:-1], "-Wall", "-Wextra", "-Werror", command[-1]]
    read = subprocess.run(
        [*flags, "-E", "-dD"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    words = set(re.findall(r"\b[A-Za-z]\w*\b", read.stdout, re.ASCII)) - {"x", "work", "sizes"}
    assert {"FILE", "printf", "NULL", "int64_t"} <= words
    named = (
        NAMED.format(
            function=function_identifier(word),
            array=identifier(word),
            member=member_identifier(word),
            number=number,
        )
        for number, word in enumerate(sorted(words))
    )
    source.write_text(includes + "".join(named))
    done = subprocess.run(
        [*flags, "-fsyntax-only"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:2000]


CLASHES = {
    "f = -i~i\nf_work = -i~i\n": "`f_work` is also the name in C of a part of `f`",
    "f_sizes = -i~i\nf = -i~i\n": "`f_sizes` is also",
    "f = -i~i\nf_k0 = -i~i\n": "`f_k0` is also",
    "f = -i~i\nf_plan = -i~i\n": "`f_plan` is also",
    "f = -i~i\nf_layout = -i~i\n": "`f_layout` is also",
    "f = -i~i\nf_test_3 = -i~i\n": "`f_test_3` is also",
    "f = -i~i\nf_call = -i~i\n": "`f_call` is also",
    "exp = -i~i\nexp_fn_work = -i~i\n": "`exp_fn_work` is also the name in C of a part of `exp`",
    "MODEL_H = -i~i\n": "`MODEL_H` is also",
    "f = -i~i\nf_il_add = -i~i\n": "`f_il_add` is also the name in C of something in the generated",
    "f(f_il_LINE) = -i~i\n": "`f_il_LINE` is also",
    "f(f_k0) = -i~i\n": "`f_k0` is also the name in C of a part of `f`",
    "f(x[MODEL_H]) = -i~i\n": "`MODEL_H` is also",
    "n = -i~i\nf(x[sizes]) = -i~i\n": "`sizes` is also the name in C of a part of `n`",
}


@pytest.mark.parametrize("text", CLASHES)
def test_refuses_names_that_meet(text: str, tmp_path: Path) -> None:
    refused(lambda: build(text, tmp_path / "out"), "E0718", CLASHES[text])
    assert not names_in(tmp_path)


def test_builds_a_definition_once(tmp_path: Path) -> None:
    found = graphs(MATMUL)
    write_project([*found, *found], tmp_path, MATMUL, "model")
    assert (tmp_path / "model.h").read_text().count("int matmul(") == 1


def refused(call: Callable[[], object], code: str, said: str = "") -> None:
    with pytest.raises(Error) as caught:
        call()
    assert caught.value.code == code, caught.value
    assert said in caught.value.message


@needs_make
def test_shapes_fix_extents(tmp_path: Path) -> None:
    build(MATMUL, tmp_path, shapes={"a": (4, 8)})
    header = (tmp_path / "model.h").read_text()
    assert "f32[4, 8]" in header
    assert "f32[8, n]" in header
    assert "int64_t n;" in header
    assert "int64_t k;" not in header
    assert "matmul n=3: ok" in passes(tmp_path)
    build(MATMUL, tmp_path, shapes={"a": (4, 8), "b": (8, 2)})
    assert "matmul: ok" in passes(tmp_path, "-B")


@needs_make
def test_shapes_tell_ranks(tmp_path: Path) -> None:
    text = "same = I\n"
    refused(lambda: build(text, tmp_path), "E0508")
    build(text, tmp_path, shapes={"in0": (2, 3)})
    assert "same: ok" in passes(tmp_path)


@pytest.mark.parametrize(
    ("shapes", "code", "said"),
    [
        ({"c": (1, 2)}, "E0814", "no input is named c"),
        ({"": ()}, "E0814", "no input is named (empty)"),
        ({"a": (1, 2, 3)}, "E0717", "--shape gives a rank 3, but matmul reads it with rank 2"),
        (
            {"a": (1, 2), "b": (3, 4)},
            "E0505",
            "axis k 2 (dimension 1 of a) and 3 (dimension 0 of b)",
        ),
        ({"a": (1, 2**62)}, "E0507", "dimension 1 of a is 4611686018427387904"),
        ({"a": (-1, 2)}, "E0507", "dimension 0 of a is -1"),
    ],
)
def test_refuses_shapes(
    shapes: dict[str, tuple[int, ...]], code: str, said: str, tmp_path: Path
) -> None:
    refused(lambda: build(MATMUL, tmp_path / "out", shapes=shapes), code, said)
    assert not names_in(tmp_path)


def test_refuses_a_shape_beside_a_written_extent(tmp_path: Path) -> None:
    text = "f(x[4]) = -i~i\n"
    refused(lambda: build(text, tmp_path, shapes={"x": (5,)}), "E0506", "fixed at 4")
    build(text, tmp_path, shapes={"x": (4,)})


def test_suggests_the_input_that_was_meant(tmp_path: Path) -> None:
    text = "f(weights[n]) = -i~i\n"
    with pytest.raises(Error) as caught:
        build(text, tmp_path, shapes={"wieghts": (4,)})
    assert caught.value.help == "did you mean weights?"


@pytest.mark.parametrize(
    ("given", "stem"),
    [
        ("model", "model"),
        ("my-model v2", "my_model_v2"),
        ("3d", "model_3d"),
        ("_x", "model_x"),
        ("", "model"),
        ("...", "model"),
        ("\u00e9t\u00e9", "model_t_"),
        ("$(shell rm)", "model_shell_rm_"),
        ("math", "math_model"),
        ("String", "String_model"),
        ("c", "c_model"),
        ("../../x", "model______x"),
        ("x" * 100, "x" * 64),
    ],
)
def test_stem_is_a_harmless_identifier(given: str, stem: str, tmp_path: Path) -> None:
    if given == "../../x":
        stem = file_stem(given)
    assert file_stem(given) == stem
    assert re.fullmatch(r"[A-Za-z]\w*", stem, re.ASCII)
    names = [path.name for path in build(MATMUL, tmp_path / "out", given)]
    parts = (".h", ".c", "_support.h", "_example.c", "_test.c", ".pc")
    others = ["Makefile", "CMakeLists.txt", "README.md"]
    assert sorted(names) == sorted([*(stem + part for part in parts), *others])
    assert names_in(tmp_path / "out") == sorted(names)


OLD = {
    "model.h": "/* model.h: how to call what is in model.c. Written by `i build`.\n *\n */\nold header",
    "model.c": "/* model.c: written by `i build` from this program:\n */\nold source",
    "Makefile": "# Makefile of libother, written by `i build`.\n",
    "model_support.h": "/* model_support.h: written by `i build` from this program:\n */\nold support",
    "model_test.c": "/* model_test.c: every function\n *\n"
    " * Prints a line for each test; the exit status is 1 if one fails. Written by `i build`.\n",
    "model.pc": "prefix=/usr\r\nName: model\r\nDescription: Functions on arrays, written by `i build`\r\n",
    "notes": "mine",
}
"""A project that an earlier version wrote; nothing in it is as it is written now, but for one line a file."""


def contents(folder: Path) -> dict[str, str]:
    return {
        p.relative_to(folder).as_posix(): p.read_text()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def fill(folder: Path) -> None:
    folder.mkdir()
    for name, text in OLD.items():
        (folder / name).write_text(text)


def test_replaces_its_files_and_no_other(tmp_path: Path) -> None:
    fill(tmp_path / "out")
    build(MATMUL, tmp_path / "out")
    after = contents(tmp_path / "out")
    assert after.pop("notes") == "mine"
    assert after == contents_of_new(tmp_path)
    assert names_in(tmp_path) == ["new", "out"]


def contents_of_new(tmp_path: Path) -> dict[str, str]:
    build(MATMUL, tmp_path / "new")
    return contents(tmp_path / "new")


def test_makes_the_folders_above(tmp_path: Path) -> None:
    files = build(MATMUL, tmp_path / "a" / "b" / "out")
    assert all(path.is_file() for path in files)
    assert files[0] == tmp_path / "a" / "b" / "out" / "model.h"


def test_works_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert build(MATMUL, Path())[0] == Path("model.h")
    assert build(MATMUL, Path("new/../out"))[0].is_file()


def test_files_are_open_to_others_as_usual(tmp_path: Path) -> None:
    (tmp_path / "usual").mkdir()
    (tmp_path / "usual" / "file").write_text("")
    build(MATMUL, tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert (tmp_path / "out" / "model.c").stat().st_mode == (
        tmp_path / "usual" / "file"
    ).stat().st_mode


def test_refuses_what_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
    refused(lambda: build(MATMUL, tmp_path / "file"), "E0911", "exists and is no folder")
    refused(lambda: build(MATMUL, tmp_path / "nowhere"), "E0911")
    refused(lambda: build(MATMUL, tmp_path / "file" / "out"), "E0912", "Not a directory")
    refused(lambda: build(MATMUL, Path("nul\0")), "E0912")
    refused(lambda: build(MATMUL, tmp_path / ("x" * 5000)), "E0912", "too long")
    assert (tmp_path / "file").read_text() == "mine"
    assert names_in(tmp_path) == ["file", "nowhere"]


FOREIGN = {
    "Makefile": "all:\n\techo mine\n",
    "model.c": "/* Replaces what was written by `i build`. */\nint mine;\n",
    "model.h": "",
    "model_test.c": f"{'/' * 9000}\n{OLD['model_test.c']}",
    "model.pc": "Name: model\nDescription: mine\n",
}


@pytest.mark.parametrize("beside", ["nothing", "old"])
@pytest.mark.parametrize("name", FOREIGN)
def test_leaves_the_files_of_somebody_else(name: str, beside: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if beside == "old":
        fill(out)
    out.mkdir(exist_ok=True)
    (out / name).write_text(FOREIGN[name])
    before = contents(out)
    refused(lambda: build(MATMUL, out), "E0913", f"{out / name} was not written by `i build`")
    assert contents(out) == before


def test_does_without_files_that_somebody_else_has(tmp_path: Path) -> None:
    for name in ("README.md", "CMakeLists.txt"):
        (tmp_path / name).write_text("mine")
    written = [path.name for path in build(MATMUL, tmp_path)]
    assert "model.c" in written
    for name in ("README.md", "CMakeLists.txt"):
        assert name not in written
        assert (tmp_path / name).read_text() == "mine"


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.parametrize("switch", ["NATIVE", "PORTABLE", "BUILD_SHARED_LIBS"])
def test_cmake_builds_and_tests(switch: str, tmp_path: Path) -> None:
    """A project inside of another, which links it, and its own test."""
    build(MATMUL, tmp_path / "mm")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(outer C)\nenable_testing()\n"
        "add_subdirectory(mm)\nadd_executable(mine main.c)\ntarget_link_libraries(mine model)\n"
    )
    (tmp_path / "main.c").write_text(
        '#include "model.h"\nint main(void) { return matmul_work(0) != SIZE_MAX; }\n'
    )
    words = (
        ["cmake", "-B", "build", f"-D{switch}=ON"],
        ["cmake", "--build", "build", "-j2"],
        ["ctest", "--test-dir", "build/mm", "--output-on-failure"],
        ["build/mine"],
        ["cmake", "--install", "build/mm", "--prefix", "installed"],
    )
    for command in words:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stdout + done.stderr
    installed = {path.name for path in (tmp_path / "installed").rglob("*") if path.is_file()}
    assert {"model.h", "model.pc"} < installed


WINDOWS = """\
conv(x[h,w], k[p,q]) = (h+p)(w+q)*pq~hwpq >> +hwpq~hw
twice(x[n], w[k]) = { a = ((i+k)*k~ik >> +ik~i)(x, w); ((2i+j:3)~ij >> >ij~i)(a) }
split(x[a]) = einx.id("(a b) -> a b", b=4)
fixed(x[8], w[3]) = (i+k)*k~ik >> +ik~i
"""


def test_the_header_says_how_long_results_are(tmp_path: Path) -> None:
    """In the extents that a caller gives, and the example has room for windows."""
    build(WINDOWS, tmp_path)
    header = (tmp_path / "model.h").read_text()
    outputs = re.findall(r"output  out: f32\[(.*)\]", header)
    assert outputs == ["h-p+1, w-q+1", "((n-k+1)-1) / 2", "a / 4, 4", "6"]
    assert "sizes = {.h = 8, .w = 16, .p = 3, .q = 2};" in header
    assert "sizes = {.h = 2, .w = 2, .p = 2, .q = 2};" in (tmp_path / "model_example.c").read_text()


@needs_make
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MATMUL, "matmul: done\n3\n6\n3\n6\n"),
        ("rows(x[4096,512]) = +ij~i\n", "rows: done\n" + 16 * "768\n"),
        ("types(x: i32[n], y: i32[n]) = i+i~i\n", "types: done\n2\n4\n"),
        ("large(x[4096,8192]) = +ij~i\n", ""),
    ],
)
def test_the_example_runs(text: str, said: str, tmp_path: Path) -> None:
    build(text, tmp_path)
    done = make(tmp_path, "example", f"CFLAGS={STRICT}")
    assert done.stdout.endswith(f"./model_example\n{said}"), done.stderr


@pytest.mark.parametrize("name", FOREIGN)
def test_leaves_files_that_were_edited(name: str, tmp_path: Path) -> None:
    build(MATMUL, tmp_path)
    text = (tmp_path / name).read_text()
    half = len(text) // 2
    for edited in (f"{text}more\n", f"\n{text}", f"{text[:half]} {text[half:]}"):
        (tmp_path / name).write_text(edited)
        before = contents(tmp_path)
        refused(lambda: build(MATMUL, tmp_path), "E0913", f"{tmp_path / name} ")
        assert contents(tmp_path) == before
    (tmp_path / name).write_bytes(text.replace("\n", "\r\n").encode())
    build(PROGRAMS["hostile"], tmp_path)
    build(MATMUL, tmp_path)
    assert (tmp_path / name).read_text() == text


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("target", ["mine", "old", "absent"])
def test_leaves_links(name: str, target: str, tmp_path: Path) -> None:
    fill(tmp_path / "old")
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out").mkdir()
    to = tmp_path / "old" / name if target == "old" else tmp_path / target
    (tmp_path / "out" / name).symlink_to(to)
    before = contents(tmp_path)
    refused(lambda: build(MATMUL, tmp_path / "out"), "E0913", f"{name} is a link")
    assert contents(tmp_path) == before
    assert (tmp_path / "out" / name).readlink() == to


def test_leaves_a_file_that_comes_after_the_first_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    rename = Path.rename

    def slow(path: Path, target: Path) -> Path:
        if target.name == "Makefile":
            (tmp_path / "out" / "model.pc").write_text("mine")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", slow)
    refused(lambda: build(MATMUL, tmp_path / "out"), "E0913", "out/model.pc was not written")
    assert contents(tmp_path / "out") == {"model.pc": "mine"}


def test_every_file_has_its_signature(tmp_path: Path) -> None:
    """Of every stem, and after any program: what is written now can be replaced later."""
    for stem in ("model", "x" * 200):
        for text in (MATMUL, PROGRAMS["hostile"], "\n" * 5000 + MATMUL):
            build(text, tmp_path, stem)


def test_leaves_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "model.c").mkdir()
    (tmp_path / "model.c" / "notes").write_text("mine")
    refused(lambda: build(MATMUL, tmp_path), "E0913", "model.c is not a file")
    assert contents(tmp_path) == {"model.c/notes": "mine"}


class Failing:
    """Makes the n-th call of what writes fail, and counts the calls."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, failure: BaseException) -> None:
        self.calls, self.at, self.failure = 0, at, failure
        for owner, name in ((Path, "open"), (Path, "mkdir"), (Path, "rename"), (os, "fsync")):
            patch.setattr(owner, name, self.wrapped(getattr(owner, name)))

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **named: Any) -> Any:
            self.calls += "r" not in named.get("mode", "")
            if self.calls == self.at:
                raise self.failure
            return function(*words, **named)

        return call


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize(
    "failure", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()]
)
def test_writes_all_or_nothing(exists: bool, failure: BaseException, tmp_path: Path) -> None:
    top = tmp_path / "top"
    out = top if exists else top / "a" / "out"
    if exists:
        fill(top)
    else:
        top.mkdir()
    before = contents(top)
    for at in range(1, 100):
        with pytest.MonkeyPatch.context() as patch:
            Failing(patch, at, failure)
            try:
                build("total = +i~.\n", out)
                break
            except (ToolError, KeyboardInterrupt) as error:
                said = str(error)
        assert isinstance(failure, KeyboardInterrupt) or "No space left" in said
        assert contents(top) == before
        assert names_in(top) == sorted(before)
    assert at > 10
    assert (out / "model_test.c").is_file()


ENDED = """
import os, signal, sys
from pathlib import Path
from tests.unit.codegen.test_project import MATMUL, build
step, at = 0, int(sys.argv[2])
def counted(function):
    def call(*words, **named):
        global step
        step += 1
        if step == at:
            os.kill(os.getpid(), signal.SIGTERM)
        return function(*words, **named)
    return call
Path.rename, os.fsync = counted(Path.rename), counted(os.fsync)
build(MATMUL, Path(sys.argv[1]))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("exists", [False, True])
def test_a_signal_leaves_nothing_half_written(exists: bool, tmp_path: Path) -> None:
    top = tmp_path / "top"
    out = top if exists else top / "a" / "out"
    if exists:
        fill(top)
    else:
        top.mkdir()
    before = contents(top)
    for at in (1, 5, 6) if not exists else (1, 6, 9, 15):
        command = [sys.executable, "-c", ENDED, str(out), str(at)]
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
        assert done.returncode == -signal.SIGTERM, done.stderr
        assert contents(top) == before
        assert names_in(top) == sorted(before)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_device_is_no_place() -> None:
    refused(lambda: build(MATMUL, Path("/dev/full")), "E0911")
    refused(lambda: build(MATMUL, Path("/dev/full/out")), "E0912")


@pytest.mark.parametrize(
    "name",
    [
        *("n_m", "_x", "start_j", "end_j", "j_block", "j_chunk", "j_stop", "max_f32", "square_i64", "i64_of_f32"),
        *("bits_of_f64", "f32_of_bits", "transpose_square_f32", "transpose_i64", "f32x16", "i64x8_max", "UINT8_MAX"),
        *("PTRDIFF_MIN", "INT_FAST16_WIDTH", "M_PI", "FP_NAN", "HUGE_VALF", "PRId8", "SCNxMAX"),
        *("ncclAllReduce", "MPI_Wait"),
    ],
)  # fmt: skip
def test_names_taken_by_their_kind_get_an_underscore(name: str) -> None:
    assert identifier(name) == f"{name}_"
