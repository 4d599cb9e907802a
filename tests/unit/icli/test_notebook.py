"""Notebooks: pages as HTML, cells that begin with `%%i`, and tracebacks that end at the line of the user."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ilang
from ilang import Error, einsum, einx, i, lib, load
from ilang.codegen.session.function import Function
from ilang.core.diagnostic import InternalError
from ilang.icli.notebook import NotebookCells

pytestmark = pytest.mark.usefixtures("cache", "compiled_quickly")

X = np.array([[1.0, 3.0], [2.0, 6.0]], np.float32)


class Balanced(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.tags: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


class Shell:
    """What a magic needs of IPython."""

    def __init__(self) -> None:
        self.shown: list[Any] = []
        self.user_ns: dict[str, Any] = {"display": self.shown.append, "x": X}
        self.magics: dict[str, Any] = {}

    def register_magic_function(self, function: Any, magic_kind: str, magic_name: str) -> None:
        self.magics[magic_name] = (magic_kind, function)


@pytest.fixture
def shell() -> Shell:
    shell = Shell()
    ilang.load_ipython_extension(shell)
    return shell


def test_components_as_html() -> None:
    page = Balanced(i("f(a[m,n], b[n]) = (ij<j~ij)(a, b)")._repr_html_())
    assert "out[i,j] = min(a[i,j], b[j])" in page.text.replace("\n", " ")
    assert "m × n" in page.text
    assert page.tags.count("tr") == 4
    unknown = Balanced(i("softmax")._repr_html_())
    assert 'softmax = einx.softmax("... [c]")' in unknown.text
    assert "any" in unknown.text
    assert "din0" in Balanced(i("+ij~i").grad()._repr_html_()).text


def test_explanations_as_html() -> None:
    explained = i("(I & +ij~i) >> ij/i~ij").explain((2, 3))
    page = Balanced(explained._repr_html_())
    assert page.tags.count("details") == 4
    assert "for j in 0..3" in page.text
    assert "#include <stdint.h>" in page.text
    assert pickle.loads(pickle.dumps(explained)) == explained
    assert repr(explained) == str(explained), "shells show the page"
    x = np.ones((2, 3), np.float32)
    assert explained == i("(I & +ij~i) >> ij/i~ij").explain(x)
    assert explained == i("(I & +ij~i) >> ij/i~ij").explain(shapes=[(2, 3)])
    with pytest.raises(Error) as caught:
        i("+ij~i").explain(shapes=3)  # type: ignore[arg-type]
    assert caught.value.code == "E0715"


def test_explanations_of_tensor_functions_as_html(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text('op half(x) = "w" *. x + "b" 3\n', encoding="utf-8")
    explained = load(tmp_path / "m.i").model
    page = Balanced(Function(explained, "half").explain({"x": "4|3"})._repr_html_())
    assert "2 parameters, 6 numbers" in page.text
    assert page.tags.count("details") == 3


def test_errors_as_html() -> None:
    with pytest.raises(Error) as caught:
        i("ik*kj~ij")
    page = Balanced(caught.value._repr_html_())
    assert page.text == str(caught.value)
    assert page.tags[:2] == ["pre", "b"]


def test_a_cell(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    kind, run = shell.magics["i"]
    assert kind == "line_cell"
    assert (
        run(
            "",
            "f(a[m,n]) = g >> h\n\ng = (I & I) >> ij*ij~ij\nh = +ij~i\ny = f x\nz, w = (I & +ij~i) x\n",
        )
        is None
    )
    np.testing.assert_array_equal(shell.user_ns["y"], (X * X).sum(1))
    np.testing.assert_array_equal(shell.user_ns["w"], X.sum(1))
    np.testing.assert_array_equal(shell.user_ns["f"](X), (X * X).sum(1))
    said = capsys.readouterr().out
    assert "f  waits for g, h" in said
    assert "y  2  f32" in said
    run("softmax y")
    assert capsys.readouterr().out.startswith("out  2  f32")
    shell.user_ns["y"] = X[0]
    run("y")
    assert "[1. 3.]" in capsys.readouterr().out


class Tensor:
    """What NumPy reads, of another library."""

    ndim = 2

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return X.astype(np.float16)


def test_tensors_are_known_by_their_names(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.user_ns |= {"t": Tensor(), "n": np.int64(3)}
    shell.magics["i"][1]("y = +ij~i t")
    np.testing.assert_array_equal(shell.user_ns["y"], X.sum(1))
    assert isinstance(shell.user_ns["t"], Tensor)
    assert "y  2  f32" in capsys.readouterr().out


def test_a_cell_that_shows_a_page(shell: Shell) -> None:
    shell.magics["i"][1]("", "+ij~i")
    assert [type(each).__name__ for each in shell.shown] == ["ComponentExplanation"]
    assert Balanced(shell.shown[0]._repr_html_()).tags.count("details") == 3


def test_a_cell_that_is_timed(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    run = shell.magics["i"][1]
    run("--time", "f = +ij~i\ny = f x\n")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["f(in0[2,2]) -> [2]   at the shapes of x", "y  2  f32"]
    assert "best of" in lines[2]
    run("--time +ij~i x")
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_tensor_functions_of_a_cell(shell: Shell) -> None:
    shell.magics["i"][1]("", "op net(x) = 2 *. x\n")
    np.testing.assert_array_equal(shell.user_ns["net"](X), 2 * X)


@pytest.mark.parametrize(
    ("line", "cell", "code"),
    [
        ("", "y = +ij~i x\nz = +ij~k x\n", "E0201"),
        ("", "f = nothing\n", "E0401"),
        ("--tme", "+ij~i x", "E0802"),
        ("+ij~i x", "+ij~i x", "E0802"),
        ("+ij~i u", None, "E0820"),
        ("", None, "E0805"),
    ],
)
def test_a_cell_with_a_mistake(line: str, cell: str | None, code: str, shell: Shell) -> None:
    with pytest.raises(Error) as caught:
        shell.magics["i"][1](line, cell)
    assert caught.value.code == code
    rendered: Callable[[], list[str]] = caught.value._render_traceback_  # type: ignore[attr-defined]
    assert rendered() == str(caught.value).splitlines()
    assert ("y" in shell.user_ns) == (code == "E0201")


def own_frames(call: Callable[[], object]) -> list[str]:
    """The files of the compiler in the traceback of a refusal."""
    with pytest.raises(Error) as caught:
        call()
    frames = traceback.extract_tb(caught.value.__traceback__)
    here = Path(__file__).parents[3]
    names = [Path(each.filename).relative_to(here).as_posix() for each in frames]
    return [name for name in names if name.startswith(("ilang", "core", "codegen", "icli"))]


def test_tracebacks_end_at_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    f, path = i("+ij~i"), tmp_path / "m.i"
    path.write_text("sums = +ij~i\nop net(x[b|n]) = x\n", encoding="utf-8")
    library = load(path)
    calls: list[Callable[[], object]] = [
        lambda: f(X[0]),
        lambda: f(X, out=X),
        lambda: f(X, target="cude"),
        lambda: f([[1]], threads=0),
        lambda: i("ik*kj~ij"),
        lambda: i(1),  # type: ignore[arg-type]
        lambda: load(tmp_path / "n.i"),
        lambda: library["nothing"],
        lambda: library.net(X[0, 0]),
        lambda: library.session("nothing"),
        lambda: library.session("net", {"x": "2|2"})(X[0]),
        lambda: f >> "ij~i~",
        lambda: f >> "ij~ij",
        lambda: "+ij" >> f,
        lambda: f.shapes((2,)),
        lambda: f.explain((2,)),
        lambda: f.source("rust"),
        lambda: f.loops((2,)),
        lambda: f.grad(wrt="in7"),
        lambda: f.grad()(X, X),
        lambda: f.build(tmp_path, name=1),  # type: ignore[arg-type]
        lambda: einsum("ij,jk->ik", X, X[0]),
        lambda: einsum("ij;"),
        lambda: einx.sum("a [b", X),
        lambda: einx.sum("a [b]", X[0]),
        lambda: lib.softmax(X, axis=7),
        lambda: ilang.elementwise("f", ["x0 +"]),
    ]
    assert {n: own_frames(call) for n, call in enumerate(calls) if own_frames(call)} == {}
    monkeypatch.setenv("I_DEBUG", "1")
    assert "codegen/components/component.py" in [
        name.removeprefix("ilang/") for name in own_frames(calls[0])
    ]


def test_bugs_of_ours_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise InternalError("E9901", "a bug")

    monkeypatch.setattr("ilang.codegen.components.program.ComponentProgram.call", broken)
    assert own_frames(lambda: i("+ij~i")(X))


def test_several_notebooks_share_nothing() -> None:
    one, other = Shell(), Shell()
    NotebookCells(one).run("", "f = +ij~i")
    NotebookCells(other).run("", "g = +ij~j")
    assert "f" in one.user_ns
    assert "f" not in other.user_ns
