"""The pane under the prompt: what a text means while it is typed, or its first mistake."""

import cProfile
from collections.abc import Callable

import pytest

from ilang.icli.pane import pane
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
        ("x = rand:3", []),
        ("x = [[1,2],[3,4]]\n+ij~i x", ["out[i] = Σ_j in0[i,j]", "(in0[2,3]) -> [2]"]),
        ("op f(y) =\n  y + 1", ["op f(y)"]),
        ("# nothing\n", []),
        ("+ij~i " * 100, []),
    ],
)
def test_meanings(text: str, lines: list[str], session: ReplSession) -> None:
    assert pane(session, text) == lines


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("ik*kj~ij", "E0202", " ^"),
        ("+ij~", "E0103", "    ^"),
        ("+i~. x", "E0503", " ^ reads rank 1"),
        ("x * 2", "E0821", None),
        ("y = +ij~k", "E0201", "    ^"),
    ],
)
def test_mistakes(text: str, code: str, place: str | None, session: ReplSession) -> None:
    lines = pane(session, text)
    assert lines[0].startswith(f"error[{code}]: ")
    if place is not None:
        assert lines[2] == place
        assert lines[1] in text


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
