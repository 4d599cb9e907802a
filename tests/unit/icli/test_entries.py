"""Lines of the REPL as entries, and definitions that wait for names."""

import random
from pathlib import Path

import pytest

from ilang.icli.entries import Entries, is_open
from ilang.icli.session import ReplSession
from tests.shares import one_in
from tests.unit.icli.front import ROOT, i

SAMPLES = sorted((ROOT / "samples").glob("**/*.i"))


def entries(text: str) -> list[str]:
    session = ReplSession()
    session.feed("x = [1, 2]")
    cut = Entries(session.is_array)
    return [*cut.of(text.split("\n")), *cut.rest()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = I\n\n# note\nb = I\n", ["a = I", "b = I"]),
        ("a = I\n  >> -i~i\n& I\nb = I", ["a = I\n  >> -i~i\n& I", "b = I"]),
        ("a = I >>\n-i~i", ["a = I >>\n-i~i"]),
        ("i> a = I\n> b = I\n... c = I\n … d = I", ["a = I", "b = I", "c = I", "d = I"]),
        ("$ i repl\ni> x", ["x"]),
        ("> y = (I\n>   >> I)\n>", ["y = (I\n  >> I)"]),
        ("> ij~i\ni> j~ij", ["ij~i", "j~ij"]),
        ("> ij~i", ["> ij~i"]),
        ("i> j~ij x x\nI x", ["i> j~ij x x", "I x"]),
        ("> +ij~i x\nI x", ["+ij~i x", "I x"]),
        ("x = [1,2\ny = [3]\nI x", ["x = [1,2", "y = [3]", "I x"]),
        ("x = [1,\n2\n]", ["x = [1,\n2\n]"]),
        ("y = (I\n+i~. x", ["y = (I", "+i~. x"]),
        ("(I(x)\n+ 1\n)", ["(I(x)\n+ 1\n)"]),
        ("I(I x\nx\nI(I x\n  , x)", ["I(I x", "x", "I(I x\n  , x)"]),
        ("y = [1,2\nI(I x\nI (\n  x)", ["y = [1,2", "I(I x", "I (\n  x)"]),
        ("y = (I\n:names", ["y = (I", ":names"]),
        ("y = (I\nop f(z) = z", ["y = (I", "op f(z) = z"]),
        ("y = einx.id(\n'a -> a',\na = 3,\nb = 4)", ["y = einx.id(\n'a -> a',\na = 3,\nb = 4)"]),
        ("cd f(z) {\n  y = z\n\n  return y\n}", ["cd f(z) {\n  y = z\n  return y\n}"]),
        ("op f(z) =\n  z +\n  z\nI x", ["op f(z) =\n  z +\n  z", "I x"]),
    ],
)
def test_lines_are_cut_into_entries(text: str, expected: list[str]) -> None:
    assert entries(text) == expected


def test_a_line_that_is_typed_goes_on_while_its_last_entry_is_open() -> None:
    assert is_open("f = (^i~i")
    assert is_open("# note\nx = [1]\nf = ^i~i >>")
    assert not is_open("f = (^i~i\n")
    assert not is_open("f = (^i~i\nx = [1]")
    assert not is_open("I(I x\nx")


@pytest.mark.parametrize("sample", one_in(3, SAMPLES), ids=lambda path: path.stem)
def test_samples_are_read_line_by_line(sample: Path) -> None:
    text = sample.read_text("utf-8")
    session, loaded = ReplSession(), ReplSession()
    for entry in entries(text):
        reply = session.feed(entry)
        assert not reply.failed, [str(part) for part in reply.parts]
    assert not session.waiting
    loaded.feed(f":load {sample}")
    assert session.names() == loaded.names()


def test_definitions_come_in_any_order() -> None:
    lines = [
        "use nn",
        "op net(x) = layer(layer(x))",
        "op layer(x) = relu(linear(x; 3))",
        "f(x[m,n]) = { a = g(x); h(a) }",
        "g = h >> k",
        "h = ^ij~ij",
        "k = (I & +ij~i) >> ij/i~ij",
    ]
    for seed in range(8):
        random.Random(seed).shuffle(lines)
        session = ReplSession()
        for line in lines:
            reply = session.feed(line)
            assert not reply.failed, (lines, [str(part) for part in reply.parts])
        assert not session.waiting
        assert session.names() >= {"net", "layer", "f", "g", "h", "k"}


def test_a_definition_waits_and_says_for_what() -> None:
    session = ReplSession()
    assert session.feed("f = g >> h").parts == ("f  waits for g, h",)
    assert session.feed(":names").parts == ("f  waits for g, h",)
    (error,) = session.feed("f [1]").parts
    assert "`f` waits for g, h" in str(error)
    assert session.feed("g = ^i~i").parts == ("g(in0[i]) -> [i]",)
    assert session.feed("h = -i~i").parts == ("h(in0[i]) -> [i]", "f(in0[i]) -> [i]")
    session.feed("f = later")
    assert not session.feed(":drop f").failed


def test_definitions_that_wait_for_each_other_are_refused() -> None:
    session = ReplSession()
    session.feed("f = g >> I")
    reply = session.feed("g = f >> I")
    assert reply.failed
    assert "E0403" in str(reply.parts[-1])
    assert not session.waiting


def test_what_still_waits_at_the_end_is_an_error() -> None:
    done = i("repl", input="f = g >> I\n+i~. [1,2]\n")
    assert (done.returncode, done.stdout) == (1, "f  waits for g\nout  .  f32\n3.\n")
    assert "E0401" in done.stderr


def test_a_typing_error_is_no_reason_to_wait() -> None:
    session = ReplSession()
    session.feed("x = [1, 2]")
    for line in (
        "y = nosuch(x)",
        "y = nosuch >> I x",
        "op f(z) = z + q",
        "f(z) = { (+ij~i)(z), q }",
    ):
        assert session.feed(line).failed, line
