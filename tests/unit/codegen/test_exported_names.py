"""Names in C: that of the file stands before that of a definition; libraries link together, no common word is taken."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ilang import load
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.project.exported_names import c_name, exported_name, prefix_of
from ilang.codegen.targets.identifiers import function_identifier
from ilang.core.diagnostic import Error
from ilang.icli.main import main

pytestmark = pytest.mark.usefixtures("real_compiler")

WORDS = (
    "total",
    "add",
    "check",
    "share",
    "shares",
    "work",
    "team",
    "measure",
    "blocks",
    "threads",
    "several",
    "copied",
)
"""Names of functions and variables of our own text."""
SOFTMAX = "softmax(x[m,n]) = (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij\n"
LAYER = 'op layer(x) = "w" *. x\n'
RANKS = """
cd step(x) {
  loss = "w" *. x ++ "...|... => 0"
  backprop(loss)
  for p in params(loss) { p =- p.grad.merge }
  return loss
}
"""
CALLS = """
#include "first.h"
#include "second.h"

int main(void)
{
    const float x[2] = {1, 1};
    float a[2], b[2], c[2], d[2];
    const first_softmax_sizes one = {1, 2};
    const second_softmax_sizes two = {1, 2};
    static char work[1 << 20], memory[1 << 20], more[1 << 20];
    first_layer f;
    second_layer s;
    int wrong = first_softmax(&one, x, a, work) + second_softmax(&two, x, b, work);
    wrong += first_layer_init(&f, memory, 0) + second_layer_init(&s, more, 0);
    wrong += first_layer_run(&f, x, c) + second_layer_run(&s, x, d);
    return wrong + (a[0] != 0.5f || b[1] != 0.5f || c[0] != d[0] || c[1] != d[1]);
}
"""


def built(folder: Path, text: str, *words: str) -> str:
    """The header of a project."""
    file = folder / "mm.i"
    file.write_text(text, "utf-8")
    assert main(["build", str(file), *words, "-o", str(folder / "out")]) == 0
    return (folder / "out" / "mm.h").read_text()


def compiled(folder: Path, *words: str) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", ["gcc", "g++", "clang", "clang++"])
def test_two_libraries_with_the_same_definitions_link(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    for name in ("first", "second"):
        (tmp_path / f"{name}.i").write_text(SOFTMAX + LAYER, "utf-8")
        words = ["--shape", "layer.x=|2", "-o", str(tmp_path)]
        assert main(["build", str(tmp_path / f"{name}.i"), *words]) == 0
        compiled(tmp_path, *find_compiler().command, "-c", f"{name}.c", "-o", f"{name}.o")
    suffix = "cc" if "+" in compiler else "c"
    (tmp_path / f"main.{suffix}").write_text(CALLS)
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    compiled(
        tmp_path, compiler, *warnings, f"main.{suffix}", "first.o", "second.o", "-lm", "-o", "both"
    )
    assert subprocess.run([tmp_path / "both"], check=False).returncode == 0


def test_two_libraries_may_be_one_translation_unit(tmp_path: Path) -> None:
    """Functions, types and macros of our own have the prefix as well."""
    for name in ("first", "second"):
        (tmp_path / f"{name}.i").write_text(SOFTMAX + LAYER, "utf-8")
        words = ["--shape", "layer.x=|2", "-o", str(tmp_path)]
        assert main(["build", str(tmp_path / f"{name}.i"), *words]) == 0
    (tmp_path / "main.c").write_text('#include "first.c"\n#include "second.c"\n' + CALLS)
    warnings = ["-Wall", "-Wextra", "-Werror"]
    compiled(tmp_path, *find_compiler().command, *warnings, "main.c", "-lm", "-o", "both")
    assert subprocess.run([tmp_path / "both"], check=False).returncode == 0


@pytest.mark.parametrize("included", ["h", "c"])
def test_files_of_one_name_stand_together(included: str, tmp_path: Path) -> None:
    for folder, text in (("one", "f = -i~i\n"), ("two", "g = +i~.\n")):
        (tmp_path / folder).mkdir()
        built(tmp_path / folder, text)
        compiled(tmp_path / folder, *find_compiler().command, "-c", "out/mm.c", "-o", "mm.o")
    (tmp_path / "main.c").write_text(
        f'#include "one/out/mm.{included}"\n#include "two/out/mm.{included}"\n'
        "int main(void)\n{\n    const mm_f_sizes one = {1};\n    const mm_g_sizes two = {1};\n"
        "    const float x = 1;\n    float y, z;\n    static char work[1 << 20];\n"
        "    return mm_f(&one, &x, &y, work) || mm_g(&two, &x, &z, work) || y != -z;\n}\n"
    )
    objects = ["one/mm.o", "two/mm.o"] if included == "h" else []
    compiled(tmp_path, *find_compiler().command, "main.c", *objects, "-lm", "-o", "both")
    assert subprocess.run([tmp_path / "both"], check=False).returncode == 0


@pytest.mark.parametrize("target", ["c", "cuda"])
@pytest.mark.parametrize("words", [(), ("--prefix", "my"), ("--prefix", "none")])
def test_functions_of_ranks_have_the_prefix(
    target: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    header = built(tmp_path, RANKS, "--shape", "x=4|3", "--target", target, *words)
    prefix = "my" if words[1:] == ("my",) else "mm"
    assert f" {prefix}_begin(int *rank, int *ranks);" in header
    assert f"void {prefix}_end(void);" in header


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_no_common_word_is_taken(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a function each word stands as it is; as an array, what is a function of our own does."""
    text = "".join(f"{word} = -i~i\n" for word in WORDS)
    text += "sums(add[n], check[n], share[measure]) = i+i~i | -i~i\n"
    header = built(tmp_path, text, "--target", target)
    for word in WORDS:
        assert f"int mm_{word}(" in header
    assert "const float *add" in header
    assert "const float *check" in header
    assert "const float *share" in header
    assert "int64_t measure;" in header
    assert not capsys.readouterr().err, "no name is another in C"
    if target == "c":
        compiled(
            tmp_path / "out", "make", "test", "CFLAGS=-O0 -std=c99 -Wall -Wextra -Wpedantic -Werror"
        )


def test_other_names_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built(tmp_path, "exp(register[double], x[double]) = i+i~i\n", "--prefix", "none")
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "exp is called exp_fn in C, where that name is taken",
        "register is called register_ in C, where that name is taken",
        "double is called double_ in C, where that name is taken",
    ]


def test_no_name_of_a_function_has_two_underscores(tmp_path: Path) -> None:
    """C++ reserves them."""
    (tmp_path / "n.i").write_text("norm = -i~i\n")
    text = load(tmp_path / "n.i")["norm"].source()
    assert "norm_fn_work(const norm_fn_sizes *sizes)" in text
    assert "norm__" not in text
    names = ["norm", "norm_", "norm_fn", "norm_fn_", "norm__fn", "f_fn", "_", "_fn"]
    assert len({function_identifier(name) for name in names}) == len(names)


def test_other_names_of_sessions_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = 'op step(seed, register) = "exp" 2 *. seed + register\n'
    built(tmp_path, text, "--shape", "seed=2|", "--shape", "register=2|")
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "seed is called seed_2 in C, where that name is taken",
        "register is called register_ in C, where that name is taken",
        "exp is called exp_ in C, where that name is taken",
    ]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ((), "mm_f"),
        (("--prefix", "lib2"), "lib2_f"),
        (("--prefix", "none"), "f"),
        (("--prefix=f",), "f"),
    ],
)
def test_a_prefix_is_chosen(words: tuple[str, ...], name: str, tmp_path: Path) -> None:
    header = built(tmp_path, "f = -i~i\n", *words)
    assert f"int {name}(const {name}_sizes *sizes, " in header
    assert f"size_t {name}_work(" in header


def test_names_begin_with_that_of_the_file() -> None:
    assert exported_name("matmul", prefix_of(None, "mm")) == "mm_matmul"
    assert exported_name("digits", prefix_of(None, "digits")) == "digits"
    assert exported_name("f", prefix_of(None, "2-d")) == "model_2_d_f"
    assert c_name("---") == "model"


@pytest.mark.parametrize("given", ["", "2d", "a-b", "_x", "a b"])
def test_what_begins_no_name_is_refused(given: str) -> None:
    with pytest.raises(Error, match="is no beginning of a name in C") as caught:
        prefix_of(given, "mm")
    assert caught.value.code == "E0828"
