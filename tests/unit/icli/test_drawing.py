"""Colors add nothing but colors."""

import re

from ilang.core.diagnostic import NotationError, plain
from ilang.core.source import Source, Span
from ilang.icli.highlight import pieces
from ilang.icli.paint import AXIS_COLORS, axis_color, diagnostic_text
from tests.unit.icli.front import i

CODES = re.compile(r"\x1b\[[0-9;]*m")


def test_painted_diagnostics_are_the_same_text() -> None:
    source = Source("m.i", "a = ik*kj~ijk\n")
    error = NotationError("E0103", "wrong: twice", Span(source, 4, 6), "do it\nright")
    painted = diagnostic_text(plain(error))
    assert CODES.sub("", painted) == plain(error)
    assert painted.count("\x1b[1;31m") == 2


def test_a_drawn_page_says_what_the_plain_one_says() -> None:
    tokens = ("explain", "ik*kj~ijk >> +ijk~ij", "--shape", "64x32,32x16")
    drawn = CODES.sub("", i(*tokens, "--color", "always", env={"COLUMNS": "120"}).stdout)
    words = set(i(*tokens).stdout.replace("axis →", "").split())
    assert words <= set(drawn.split())


def test_a_first_page_has_a_color_for_each_axis() -> None:
    tokens = ("explain", "ik*kj~ijk >> +ijk~ij", "--shape", "64x32,32x16")
    drawn = i(*tokens, "--color", "always", env={"COLUMNS": "80"}).stdout
    assert CODES.sub("", drawn) == i(*tokens).stdout
    assert "out[\x1b[36mi\x1b[0m,\x1b[35mj\x1b[0m] = Σ_\x1b[33mk\x1b[0m in0" in drawn
    assert "it is not in the output" in drawn
    assert "\x1b[" not in i(*tokens).stdout


def test_neighbors_have_colors_of_their_own() -> None:
    assert [axis_color(c) for c in "ijk"] == list(AXIS_COLORS[:3])
    assert len({axis_color(c) for c in "abcdef"}) == 6


def test_pieces_join_to_the_line() -> None:
    lines = [
        "ik*kj~ijk >> +ijk~ij  # note",
        ":loops f",
        "x = rand:4x8",
        'i("a b") é~',
        "",
        "scores >> ij~i",
    ]
    for line in lines:
        assert "".join(text for _, text in pieces(line, {"scores"})) == line
    kinds = [kind for kind, _ in pieces("scores >> ij~i", {"scores"})]
    assert kinds == ["known", "other", "wire", "other", "axis", "axis", "sign", "axis"]
    assert ("name", "rand") in pieces("x = rand:4x8", set())
