"""Programs that grow, many axes, and extents past all memory: refused at once, each with its code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ilang import Error, load
from ilang import i as program
from ilang.core.build.counting import least_expressions
from ilang.core.notation.files.module import parse_module
from ilang.core.source import Source
from tests.forked import run

DOUBLED_OP = "op a0(x) = x + x\n" + "".join(
    f"op a{n}(x) = a{n - 1}(a{n - 1}(x))\n" for n in range(1, 41)
)
DOUBLED_CD = 'cd a0(x) { "n" =+ x }\n' + "".join(
    f"cd a{n}(x) {{ a{n - 1}(x); a{n - 1}(x) }}\n" for n in range(1, 41)
)
NESTED = "op f(x{}) = repeat(a = x; n in {}) {{ repeat(b = a; m in {}) {{ repeat(c = b; k in {}) {{ c + c }} }} }}\n"
HUGE = 2**40


def status_of(folder: Path, text: str, *words: str) -> tuple[int, str]:
    """The status and the complaint of a command on a file."""
    path = folder / "m.i"
    path.write_text(text)
    done = run([words[0], str(path), *words[1:]], {})
    return done.returncode, done.stderr + done.stdout


@pytest.mark.parametrize(
    "text",
    [
        DOUBLED_OP,
        DOUBLED_CD,
        NESTED.format("", 1000, 1000, 1000),
        NESTED.format("; q = 1000", "q", "q", "q"),
        "op f(x) = repeat(a = x; n in 1000000000000) { a }\n",
    ],
    ids=["op", "cd", "repeat", "configured", "empty"],
)
def test_what_grows_is_refused(tmp_path: Path, text: str) -> None:
    status, told = status_of(tmp_path, text, "check")
    assert (status, "error[E0250]" in told) == (1, True), told


def test_expressions_are_counted_without_writing_them_out() -> None:
    text = (
        "op f(x) = x + x\nop g(x) = f(f(x))\nop h(x) = repeat(y = x; n in 10) { g(y) }\n"
        'cd r(x) { "n" =+ h(x) }\ncd s(x) { r(x); r(x) }\n'
    )
    module = parse_module(Source("m.i", text))
    counts = least_expressions(module.functions, module.routines)
    assert counts == {"f": 1, "g": 4, "h": 50, "r": 51, "s": 104}


@pytest.mark.parametrize("rank", [33, 64])
def test_projects_and_differences_of_many_axes(tmp_path: Path, rank: int) -> None:
    axes = " ".join(f"a{n}" for n in range(rank))
    text = f'f = einx.sum("{axes} -> a0")\n'
    assert status_of(tmp_path, text, "build", "-o", str(tmp_path / "out"))[0] == 0
    assert status_of(tmp_path, text, "grad", "--check")[0] == 0


def test_more_axes_than_numpy_has(tmp_path: Path) -> None:
    h, w = (" ".join(f"{name}{n}" for n in range(33)) for name in "hw")
    for text in (f'einx.sum("{h} {w} -> h0")', f'einx.multiply("{h}, {w} -> {h} {w}")'):
        for words in (("build", "-o", str(tmp_path / "out")), ("grad", "--check")):
            status, told = status_of(tmp_path, f"f = {text}\n", *words)
            assert (status, "error[E0769]" in told) == (1, True), told


def test_a_stage_that_components_lack() -> None:
    done = run(["explain", "ik*kj~ijk >> +ijk~ij", "--emit", "gradients"], {})
    assert (done.returncode, "error[E0804]" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("text", ["+ij~.", ">ij~.", "+ij~j", "-ij~ij >> +ij~."])
def test_an_empty_array_of_any_extent_takes_no_memory(text: str) -> None:
    x = np.zeros((HUGE, 0), np.float32)
    result = program(text)(x, target="numpy")
    assert result.size < 2


def test_no_memory_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(f'cd s(x) {{ y = "w" {HUGE} + x; return y }}\n')
    with pytest.raises(Error, match="E0713"):
        load(tmp_path / "m.i").session("s", shapes={"x": f"3|{HUGE}"})
    with pytest.raises(Error, match="E0713"):
        program("+i~.")(np.broadcast_to(np.float32(1), (HUGE,)))
