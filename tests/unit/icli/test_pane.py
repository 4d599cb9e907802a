"""The pane under the prompt: what a text means while it is typed, or its first mistake."""

import cProfile
from collections.abc import Callable

import pytest

from ilang.icli.pane import NO_HELP, pane
from ilang.icli.session import ReplSession

MATMUL = "ik*kj~ijk >> +ijk~ij"


@pytest.fixture
def session() -> ReplSession:
    session = ReplSession()
    session.feed("x = rand:2x3")
    session.feed("sums = +ij~i")
    session.feed("op twice(x) = 2 *. x")
    return session


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("+ij~i", ["out[i] = Σ_j in0[i,j]", "(in0[2,3]) -> [2]"]),
        (MATMUL, ["out[i,j] = Σ_k in0[i,k]·in1[k,j]", "(in0[i,k], in1[k,j]) -> [i,j]"]),
        ("y = +ij~i x", ["out[i] = Σ_j in0[i,j]", "(in0[2,3]) -> [2]"]),
        ("+i~. [1, 2]", ["out = Σ_i in0[i]", "(in0[2]) -> []"]),
        ("+ij~i rand:4x8", ["out[i] = Σ_j in0[i,j]", "(in0[4,8]) -> [4]"]),
        ("x", ["x  2×3  f32"]),
        ("twice", ["op twice(x)"]),
        ("op net(y) = y + 1", ["op net(y)"]),
        ("f(a[n]) = -n~n", ["out[n] = −a[n]", "f(a[n]) -> [n]"]),
        ("f(a) = norm >> sums", ["f  waits for norm"]),
        ("", []),
        ("   # nothing", []),
        (":loops", []),
        ("?sums", []),
        ("x = rand:3", ["3"]),
        ("x = rand:3x", []),
        ("y = [[1,2],[3,4", ["2×2"]),
        (
            "(+ij~i & >ij~i",
            ["out0[i] = Σ_j in0[i,j]", "out1[i] = max_j in0[i,j]", "(in0[2,3]) -> ([2], [2])"],
        ),
        ('einx.sum("a [b', ["out[a] = Σ_b in0[a,b]", "(in0[2,3]) -> [2]"]),
        ("ij*ij~ij x", ["out[i,j] = in0[i,j]·in1[i,j]", "(in0[i,j], in1[i,j]) -> [i,j]"]),
        ("x = [[1,2],[3,4]]\n+ij~i x", ["out[i] = Σ_j in0[i,j]", "(in0[2,3]) -> [2]"]),
        ("op f(y) =\n  y + 1", ["op f(y)"]),
        ("# nothing\n", []),
        ("+ij~i " * 100, []),
    ],
)
def test_meanings(text: str, lines: list[str], session: ReplSession) -> None:
    assert pane(session, text) == lines


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("+", "expected a pattern"),
        ("+ij", "expected `~` and an output"),
        ("+ij~", "expected an output pattern (`.` for a scalar)"),
        ("+ij~i >>", "expected a component after `>>`"),
        (
            "ik*kj~ij",
            "axis k is missing from the output, and `*` between two inputs keeps every axis",
        ),
        ("+ij~i | j:4 | ij'", "the order lacks loop j"),
        ("soft", "softplus  softmax"),
        ("x >> su", "sums  sum"),
        ("nothing", None),
        ("lins", "linspace("),
        ("y = zeros(", "it is written zeros(2, 3)"),
        ("y = zeros(2, ", "2"),
        ("y, z", None),
        ("x *", None),
        ("zeros(3) +", None),
        ("y = x[", None),
        ("y = x[0, ", "out[j] = x[0,j]"),
        ("y = 0..10", "help: write `arange(0, 10)`, which ends before 10"),
        ("x.s", None),
        ("y = data.np", None),
        ("y = [1, ", None),
        ("op", "op f(x) = ...   a tensor function"),
        ("cd step", "cd f(x, y) { ... }   a routine"),
        ("cd step(x", "expected `{` and the statements of `step`"),
        ("cd step(x) { loss ", "this statement does nothing"),
        ("op f(y) = ", None),
        ("mean(x[m", "expected `=` and a program"),
        ("mean(x[m,", "expected `=` and a program"),
        ("f(y)", "expected `=` and a program"),
        ("sums(", "`sums` takes 1 input, and no values are given"),
        ("I", "nothing says what rank in0 has"),
        ("sum", 'sum(x) = einx.sum("[...]")   of `std`; apply it: `sum rand:2x3`'),
    ],
)
def test_what_is_typed_further_is_no_mistake(
    text: str, first: str | None, session: ReplSession
) -> None:
    session.forget("x" if text in ("I", "sum") else "")
    assert next(iter(pane(session, text)), None) == first


LINES = (
    "ik*kj~ijk >> +ijk~ij x x", "y = (I & +ij~i) >> ij/i~ij", "f(x[m,n]) = +ij~i >> (I | 3) >> i/.~i",
    'op net(x) = tanh("w" * x + "b" 2)', "cd step(x, t) { loss = x + t; p =- 0.1 *. p.grad }",
    'einsum("ij,jk->ik") x x', 'einx.mean("a [b]", b=3) x', "y, z = (+ij~i & >ij~i) x", "x = [[1,2],[3,4]]",
    'elementwise("f: x -> sin(x)") x', "+ij~i | j:4 | ij'j x", "y = softmax(sums(x))", "y = x.npy",
    "y = zeros(2, 3)", "+i~. linspace(0, 1, 5)", "y = randn(2, 3)",
)  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_no_beginning_of_a_right_line_is_a_mistake(line: str, session: ReplSession) -> None:
    for end in range(len(line)):
        assert not pane(session, line[:end])[:1] or "error[" not in pane(session, line[:end])[0]


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("ik*kj~ij x", "E0202", " ^"),
        ("+ij~ >> ij~i", "E0103", "     ^^"),
        ("softmx x", "E0401", "^^^^^^"),
        ("ij;", "E0102", "  ^"),
        ("cd f(x, t) { y = x }", "E0422", "        ^ named here"),
        ("sums(x, x)", "E0420", "^^^^^^^^^^"),
        ("+i~. x", "E0503", " ^ reads rank 1"),
        ("x * y", "E0820", "    ^"),
        ("y = +ij~k", "E0201", "    ^"),
    ],
)
def test_mistakes(text: str, code: str, place: str | None, session: ReplSession) -> None:
    lines = pane(session, text)
    assert lines[0].startswith(f"error[{code}]: ")
    if place is not None:
        assert lines[2] == place
        assert lines[1] in text


def test_a_mistake_of_ours_ends_no_prompt(
    session: ReplSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("ilang.icli.pane._meaning", fails)
    assert pane(session, "+ij~i") == [f"{NO_HELP}: KeyError"]


def test_many_formulas_are_counted(session: ReplSession) -> None:
    lines = pane(session, "I & -i~i & ^i~i & $i~i & +i~.")
    assert len(lines) == 5
    assert lines[3] == "… and 2 more"


def calls(action: Callable[[], object]) -> int:
    """Calls of functions that an action makes, whatever else the machine does."""
    profile = cProfile.Profile()
    profile.runcall(action)
    return sum(each.callcount for each in profile.getstats())


def test_it_is_quick(session: ReplSession) -> None:
    pane(session, MATMUL)
    session.feed(MATMUL)  # what is made at the first use is made
    assert 3 * calls(lambda: pane(session, MATMUL)) < calls(lambda: session.feed(MATMUL))
