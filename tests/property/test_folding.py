"""A terminal of any width shows everything that a pipe gets: nothing is cut, and nothing changes its place."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ilang.icli.commands import COMMANDS
from ilang.icli.fold import cells, fold, fold_excerpts
from ilang.icli.main import main
from tests.shares import share

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "samples").glob("*.i"))
CODES = re.compile(r"\x1b\[[0-9;]*m")
MARKED = re.compile(r"(?m)^ *\| .*$")
WIDTHS = range(20, 201)
STEP = 9

PAGES = [
    ["explain"],
    ["explain", "-v"],
    ["explain", "--schedule"],
    *(["explain", "--emit", stage] for stage in ("graph", "shapes", "loops", "c")),
    ["check"],
]
RUNS = [
    ["run", "ij*k~ijk", "[[123456.5,2,-3,4,5,6,7,8,9,10,11,12]]", "[1e30,2,3]"],
    ["run", "(I & +ij~i) >> ij/i~ij", "rand:12x40"],
    ["run", "I", "i64:[[[1,9223372036854775807],[3,4]]]"],
    ["run", "ij>0~ij >> bool", "rand:3x30"],
]
HELP = [["--help"], *([name, "--help"] for name in COMMANDS), ["explain", "E0202"]]
LONG = "ik*kj~ijk >> +ijk~ij >> >ij~ij >> (I & +ij~i) >> ij/i~ij"
ERRORS = [
    ["explain", f"{LONG} >> ab+cd~abcde"],
    ["explain", f"{LONG} >> ij~ijé"],
    ["explain", "ik*kj~ijk >> +ijk~ij", "--shape", "123456x234567,345678x456789"],
    ["run", f"{LONG} >> (", "[1,2]"],
    ["run", "ij+ij~ij", "[[1,2],[3,4,5]]", "rand:2x2"],
    ["build", "nofile.i", "--targte", "c"],
    ["explain", "日本語" * 30 + "~"],
]

Ask = Callable[..., tuple[str, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """What a command prints on both streams: plain, or (with a width) drawn for a terminal of that width."""

    def asked(tokens: list[str], width: int | None = None) -> tuple[str, str]:
        monkeypatch.delenv("COLUMNS", raising=False)
        if width is not None:
            monkeypatch.setenv("COLUMNS", str(width))
        main([*tokens, "--color", "always"] if width is not None else tokens)
        return capsys.readouterr()

    return asked


def holds(drawn: str, plain: str) -> bool:
    """Whether every sign of the plain text stands in the drawn one, in order."""
    rest = iter("".join(drawn.split()))
    return all(sign in rest for sign in "".join(plain.split()))


def check(drawn: str, plain: str, width: int) -> None:
    bare = CODES.sub("", drawn)
    assert holds(bare, plain), bare
    assert max(map(cells, bare.split("\n"))) <= width, bare


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_pages_of_samples(sample: Path, ask: Ask) -> None:
    turn = SAMPLES.index(sample)
    for number, (command, *options) in share([*enumerate(PAGES)], turn):
        tokens = [command, str(sample), *options]
        plain, _ = ask(tokens)
        if command == "explain":
            width = WIDTHS[(turn * len(PAGES) + number) * 7 % len(WIDTHS)]
            check(ask(tokens, width)[0], plain, width)
        for width in WIDTHS[turn % STEP :: STEP]:
            check(fold(plain, width), plain, width)


@pytest.mark.parametrize("tokens", RUNS, ids=lambda tokens: tokens[1])
def test_arrays(tokens: list[str], ask: Ask) -> None:
    plain = ask(tokens)[0]
    for width in WIDTHS:
        drawn = ask(tokens, width)[0]
        check(drawn, plain, width)
        if 40 <= width:
            numbers = set(re.findall(r"[^\s\[\]]+", plain))
            assert set(re.findall(r"[^\s\[\]]+", drawn)) == numbers  # none is broken


@pytest.mark.parametrize("tokens", HELP, ids=" ".join)
def test_help(tokens: list[str], ask: Ask) -> None:
    plain = ask(tokens)[0]
    for width in WIDTHS[::STEP]:
        check(fold(plain, width), plain, width)
    assert max(map(len, plain.split("\n"))) <= 80 or tokens[0] == "explain"


@pytest.mark.parametrize("tokens", ERRORS, ids=" ".join)
def test_errors(tokens: list[str], ask: Ask) -> None:
    plain = ask(tokens)[1]
    assert plain.startswith("error[")
    words = MARKED.sub("", plain)
    marks = plain.count("^")
    for width in WIDTHS:
        drawn = ask(tokens, width)[1]
        check(drawn, words, width)
        assert CODES.sub("", drawn).count("^") == marks


def test_marks_stay_below_what_they_mark() -> None:
    quoted = "ab " * 10 + "cde"
    marks = f"  | {' ' * 30}^^^ here\n  | {' ' * 10}- there"
    text = f"error[E0103]: x\n --> <text>:1:31\n  |\n1 | {quoted}\n{marks}\nhelp: y"
    assert fold_excerpts(text, 20).split("\n")[3:] == [
        "1 | ab ab ab ab ab",
        "  |           - there",
        "  |  ab ab ab ab ab",
        "  |  cde",
        "  |  ^^^ here",
        "help: y",
    ]
    assert fold_excerpts(text, 60) == text


def test_lines_go_on_further_in() -> None:
    assert fold("  out[i] = in0[i] * in1[i]", 20) == "  out[i] = in0[i] *\n      in1[i]"
    assert fold("axis i  follows from the index of it", 24) == (
        "axis i  follows from the\n        index of it"
    )
    assert fold("\x1b[1m" + "ab" * 12 + "\x1b[0m", 20) == (
        "\x1b[1m" + "ab" * 10 + "\n    abab\x1b[0m"
    )
    assert fold("x" * 20, 20) == "x" * 20
    assert fold("日本" * 6, 20) == "日本" * 5 + "\n    日本"
    assert fold(" " * 30 + "for i", 20) == " " * 10 + "for i"
