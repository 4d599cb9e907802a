"""Variants of functions for newer processors: which are compiled, which one a call takes, and that all are right."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ilang.codegen.targets import c_variants
from ilang.codegen.targets.c_variants import VARIANTS
from ilang.icli.main import main
from tests.shares import one_in

TEXT = """
use nn
product(a[i,k], b[k,j]) = ik*kj~ijk >> +ijk~ij
softmax(x[m,n]) = (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij
sizes(n[m], m[n]) = i*j~ij
op net(x) = linear(x; 5)
cd step(x; lr = 0.1) { y = net(x); loss = y *. y ++ "...|... => 0"; backprop(loss)
  for p in params(loss) { p =- lr *. p.grad }
  return loss }
"""
STRICT = "CFLAGS=-O1 -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Werror"
STUB = "int mm_product_{variant}(void) {{ return 77; }}\n"
CALL = """
#include "mm.h"
int main(void)
{
    return mm_product(NULL, NULL, NULL, NULL, NULL);
}
"""

CC = shutil.which("cc") or "cc"


def knows_variants() -> bool:
    """Whether the compiler has variants, and this processor runs all of them."""
    tests = " && ".join(
        f'__builtin_cpu_supports("{each}")' for sets in VARIANTS.values() for each in sets
    )
    text = f"#if !defined(__x86_64__)\n#error\n#endif\nint main(void) {{ return !({tests}); }}"
    place = f"/tmp/knows_variants.{os.getpid()}"
    done = subprocess.run(
        [CC, "-x", "c", "-", "-o", place], input=text, capture_output=True, text=True, check=False
    )
    try:
        return done.returncode == 0 and subprocess.run([place], check=False).returncode == 0
    finally:
        Path(place).unlink(missing_ok=True)


pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or not knows_variants(),
    reason="needs make, and a compiler and a processor with AVX-512",
)


def built(folder: Path) -> Path:
    (folder / "mm.i").write_text(TEXT, "utf-8")
    words = ["--shape", "step.x=4|3"]
    assert main(["build", str(folder / "mm.i"), *words, "-o", str(folder / "out")]) == 0
    return folder / "out"


def made(folder: Path, *words: str) -> str:
    """What make prints; variants are not left out."""
    done = subprocess.run(
        ["make", "PORTABLE=", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "words", one_in(3, [(), ("VARIANTS=v3",), ("VARIANTS=v4",), ("VARIANTS=",)])
)
def test_every_variant_passes_the_test_without_a_warning(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    assert "tests passed" in made(built(tmp_path), "test", STRICT, *words)


def test_variants_run_clean_under_sanitizers_and_in_several_threads(tmp_path: Path) -> None:
    flags = "CFLAGS=-O0 -fsanitize=address,undefined -fno-sanitize-recover=all"
    assert "tests passed" in made(built(tmp_path), "-j3", "test", "OPENMP=1", flags)


@pytest.mark.parametrize("variant", one_in(2, reversed(VARIANTS)))
def test_a_call_takes_the_newest_variant(variant: str, tmp_path: Path) -> None:
    """A variant of which the other functions are as they are, and one gives 77, is the one that answers."""
    out = built(tmp_path)
    words = ("VARIANTS=v3 v4" if variant == "v4" else "VARIANTS=v3", "CFLAGS=-O0")
    made(out, "libmm.a", *words)
    (out / "stub.c").write_text(STUB.format(variant=variant))
    (out / "call.c").write_text(CALL)
    objects = [f"mm{each}.o" for each in ("", "_v3", "_v4") if (out / f"mm{each}.o").exists()]
    for step in (
        ["objcopy", f"--weaken-symbol=mm_product_{variant}", f"mm_{variant}.o"],
        ["cc", "call.c", "stub.c", *objects, "-lm", "-o", "call"],
    ):
        subprocess.run(step, cwd=out, check=True)
    assert subprocess.run([out / "call"], check=False).returncode == 77


def test_variants_are_not_for_others(tmp_path: Path) -> None:
    out = built(tmp_path)
    made(out, "libmm.so", "CFLAGS=-O0")
    shown = subprocess.run(["nm", "-D", "libmm.so"], cwd=out, check=True, capture_output=True)
    assert b" mm_product\n" in shown.stdout
    assert b"_v3" not in shown.stdout
    assert b"_v4" not in shown.stdout


def test_switches_leave_variants_out(tmp_path: Path) -> None:
    out = built(tmp_path)
    assert "mm_v3.o" in made(out, "-n")
    assert "mm_v3.o" in made(out, "-n", "clean", "all")
    for switch in ("PORTABLE=1", "NATIVE=1", "CC=cc -D__builtin_cpu_supports=none"):
        said = made(out, "-n", switch)
        assert "mm.o" in said
        assert "mm_v3.o" not in said
        assert "IL_WITH" not in said
    made(out, "all", "CFLAGS=-O0")
    assert "-c mm.c" in made(out, "-n", "all", "CFLAGS=-O0", "PORTABLE=1"), "what has changed"
    assert not list(out.glob("*.probe"))
    made(out, "clean")
    assert not [*out.glob("*.o"), *out.glob("lib*")]


def test_what_is_compiled_for_is_what_is_asked_for(tmp_path: Path) -> None:
    makefile = (built(tmp_path) / "Makefile").read_text()
    for variant, sets in VARIANTS.items():
        (flags,) = re.findall(rf"^FLAGS_{variant} = (.*)$", makefile, re.MULTILINE)
        assert flags.split() == [f"-m{each}" for each in sets]
        (asked,) = re.findall(rf"has_{variant}\(void\)\n{{(.*?)}}", c_variants.header(), re.DOTALL)
        assert re.findall(r'"(\w+)"', asked) == list(sets)


def test_a_file_by_itself_has_no_variants(tmp_path: Path) -> None:
    out = built(tmp_path)
    flags = ["-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([CC, *flags, "-c", "mm.c"], cwd=out, check=True)
    shown = subprocess.run(["nm", "mm.o"], cwd=out, check=True, capture_output=True)
    assert b"_v3" not in shown.stdout
    assert b"cpu_model" not in shown.stdout
