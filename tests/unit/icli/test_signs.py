"""Signs and words that ``i explain`` explains, and the cheat sheet, whose every line is computed."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ilang
from ilang import einops
from ilang.core.ir.primitives import INFIX
from ilang.core.library.std import AXES, PLAIN
from ilang.core.notation.functions.tokens import SIGNS
from ilang.core.notation.guidance import MOVES
from ilang.core.ops import ARGUMENTS, OPS
from ilang.core.pipeline import text_program
from ilang.icli.equivalents import NAMES, ROWS, cheat_sheet, page
from ilang.icli.glossary import Entry, sections
from ilang.icli.main import main
from ilang.icli.signs import (
    BETWEEN_PROGRAMS,
    IN_FUNCTIONS,
    IN_ROUTINES,
    OTHERS,
    sign_page,
    word_page,
)
from tests.unit.notation.refusal import module

PAGE = Path(__file__).parents[3] / "docs" / "cheatsheet.md"
ENTRIES = [each for entries in sections().values() for each in entries]
RANDOM = np.random.default_rng(3)
SHAPES = {
    "x": (5, 4), "y": (4, 3), "s": (4, 4), "a": (5,), "b": (4,), "v": (9,), "w": (3,), "q": (5, 2), "k": (4, 2),
    "t": (2, 5, 4), "u": (2, 4, 3),
}  # fmt: skip
ARRAYS: dict[str, Any] = {name: RANDOM.random(shape, np.float32) for name, shape in SHAPES.items()}
ARRAYS["ids"] = np.array([4, 0, 3])
EINOPS = {"reduce": einops.reduce, "rearrange": einops.rearrange, "repeat": einops.repeat}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_line_of_the_cheat_sheet(row: tuple[str, ...]) -> None:
    _, names, numpy, einsum, with_einops, _, program = row
    arrays = [ARRAYS[name] for name in names.split()]
    wanted = np.asarray(eval(numpy, {"np": np, **ARRAYS}))
    found = [ilang.i(program)(*arrays, target="numpy")]
    if einsum:
        found.append(np.einsum(einsum, *arrays))
        found.append(ilang.einsum(einsum, *arrays, target="numpy"))
    if with_einops:
        found.append(eval(with_einops, {**EINOPS, "einsum": einops.einsum, **ARRAYS}))
    for each in found:
        assert np.shape(each) == wanted.shape
        np.testing.assert_allclose(each, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("row", [row for row in ROWS if row[5]], ids=lambda row: row[0])
def test_pytorch(row: tuple[str, ...]) -> None:
    compile(row[5], "<row>", "eval")
    torch = pytest.importorskip("torch")
    tensors = {name: torch.from_numpy(array) for name, array in ARRAYS.items()}
    found = np.asarray(eval(row[5], {"torch": torch, **tensors}))
    wanted = np.asarray(eval(row[2], {"np": np, **ARRAYS}))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_the_page_is_the_table() -> None:
    assert PAGE.read_text("utf-8").endswith(page())


@pytest.mark.parametrize("sign", [*OPS, *ARGUMENTS, *OTHERS])
def test_a_sign_has_its_places(sign: str) -> None:
    found = sign_page(sign)
    assert found is not None
    meanings = found[1]["meanings"]
    assert isinstance(meanings, list)
    for each in meanings:
        assert sign in each["text"]
        assert each["says"]
        if "~" in each["text"] and " " not in each["text"] and len(each["text"]) > 2:
            text_program(each["text"])
    if sign in OPS:
        op = OPS[sign]
        places = 1 + bool(op.reduction_says) + 2 * (op.binary is not None)
        inner = len(IN_FUNCTIONS.get(sign, ()))
        assert len(meanings) == places + len(OTHERS.get(sign, ())) + inner


@pytest.mark.parametrize("sign", [*IN_FUNCTIONS, *IN_ROUTINES])
def test_a_sign_of_tensor_functions(sign: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its texts hold it and can be read; the command prints them for `->`, which is no option, as for the others."""
    for text, _ in IN_FUNCTIONS.get(sign, ()):
        assert sign in text
        body = f"{text}\n{text[0]} + y" if text.startswith("z") else f"y + {text} + x"
        body = f"{text}\nc + y" if text.startswith('"c"') else body
        written = text if text.startswith("op") else f"op g(x, y) {{\n{body}\n}}"
        module(f"op f(x; n) = x *. n\n{written.replace('op f', 'op h')}\n")
    for text, _ in IN_ROUTINES.get(sign, ()):
        assert sign in text
        module(f"cd g(c, x) {{\n{text}\nreturn c\n}}\n")
    assert main(["explain", sign]) == 0
    assert "in a `cd`" in (told := capsys.readouterr().out) or "in an `op` or `cd`" in told


def test_every_sign_of_tensor_functions_has_a_page() -> None:
    brackets = set("()[]{}") | {"[|", "|]"}
    rare = {",", "**", "!.", "!..", "~~"}  # a list; refused with what to write; comments
    assert all(sign_page(sign) for sign in {*SIGNS, *INFIX} - brackets - rare)


def test_a_folder_hides_no_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "@").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "@"]) == 0
    assert main(["explain", "/."]) == 0


@pytest.mark.parametrize("sign", sorted(BETWEEN_PROGRAMS))
def test_a_sign_between_programs(sign: str) -> None:
    """What it most often means comes first, and the command to try has it."""
    text, data = sign_page(sign) or ("", {})
    meanings = data["meanings"]
    assert isinstance(meanings, list)
    assert f" {sign} " in meanings[0]["text"]
    command = text.rpartition("\ntry  ")[2]
    assert f" {sign} " in command
    assert main(shlex.split(command)[1:]) == 0


def test_words() -> None:
    for word, text in (
        ("sum", "`+ij~i`"),
        ("argmax", ">@ij~i"),
        ("tanh", "^ij~ij"),
        ("int64", "i64"),
        ("tril", "ij[j<=i]~ij"),
        ("unfold", "+(i+k:3)~i"),
        ("sub", "ij-ij~ij"),
        ("np.sum", "`+ij~i`"),
        ("torch.nn.functional.relu", "`>ij~ij`"),
    ):
        found = word_page(word)
        assert found is not None
        assert text in found[0]
    assert word_page("nothing") is None


@pytest.mark.parametrize("word", sorted({*AXES, *PLAIN}))
def test_names_of_std(word: str) -> None:
    text, _ = word_page(word) or ("", {})
    assert "\nstd  " in f"\n{text}"
    command = text.rpartition("\ntry  ")[2]
    assert main(shlex.split(command)[1:]) == 0


@pytest.mark.parametrize("entry", ENTRIES, ids=[each.names[0] for each in ENTRIES])
def test_an_entry_of_the_glossary(entry: Entry, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of its names asks for it; its programs can be read, its command works, and its related words are there."""
    for name in entry.names:
        for asked in (name, name.upper() if len(name) > 1 else name):
            told = word_page(asked)
            assert told is not None
            assert entry.page() in told[0] or asked.lower() in NAMES
    for program in re.findall(r"`([^` ]*\w~[^`]*)`", entry.page()):
        text_program(program)
    for word in entry.related:
        assert sign_page(word) or word_page(word), word
    if entry.tried:
        assert main(shlex.split(entry.tried)[1:]) == 0
        assert capsys.readouterr().out
    assert all(len(line) <= 80 for line in entry.page().splitlines())


EXAMPLES = [
    (each.names[0], example) for each in ENTRIES for example in re.findall(r"`([^`]+)`", each.says)
]
DEFINITIONS = [one for one in EXAMPLES if one[1].startswith(("op ", "cd "))]
STATEMENTS = [one for one in EXAMPLES if one[1].startswith(("for ", "backprop(", "sgd("))]
PROGRAMS = [
    one
    for one in EXAMPLES
    if re.match(r"(?:einsum|einx\.\w+|elementwise)\(|[^=]*\w~", one[1]) and one not in DEFINITIONS
]


@pytest.mark.parametrize(("name", "example"), DEFINITIONS + STATEMENTS + PROGRAMS)
def test_an_example_of_the_glossary_is_read_as_it_stands(name: str, example: str) -> None:
    """Pasted on one line, into a file that has what it calls."""
    file = "use nn, optim\nop net(x) = linear(x; 4)\n"
    if (name, example) in PROGRAMS:
        text_program(example)
    elif (name, example) in DEFINITIONS:
        module(f"{file}{example}\n")
    else:
        is_call = example.startswith("sgd")
        statement = f"for p in params(loss) {{ {example} }}" if is_call else example
        module(f"{file}cd g(x) {{ loss = net(x); {statement}; return loss }}\n")


@pytest.mark.parametrize(
    "text", [each[0] for rows in OTHERS.values() for each in rows if re.search(r"\w~.* ", each[0])]
)
def test_an_example_of_a_sign_is_read_as_it_stands(text: str) -> None:
    text_program(text)


@pytest.mark.parametrize(
    "word", ["axes", "core", "Tile", "coalesce", "cores", "shared-memory", "registers"]
)
def test_a_word_is_known_in_other_forms(word: str) -> None:
    assert word_page(word) is not None


@pytest.mark.parametrize(
    "word",
    [
        "block", "thread", "warp", "register", "shared memory", "SM", "occupancy", "bank conflict", "coalescing",
        "tensor core", "barrier", "stream", "launch", "grid", "role", "gpu", "cuda", "kernel", "std", "params",
        "backprop", "gradient", "epoch", "batch", "loss", "optimizer", "logits", "embedding", "head", "restrict",
        "SIMD", "cache", "OpenMP", "workspace", "alignment", "histogram", "meshgrid", "linspace", "sort", "argsort",
        "cumsum", "where", "gather", "m16", "scatter", "pad", "roll", "flip", "tril", "one_hot", "topk",
    ],
)  # fmt: skip
def test_words_that_users_ask_for(word: str) -> None:
    assert word_page(word) is not None


def test_all_that_is_explained_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """``i explain`` alone lists words; each of them has a page."""
    assert main(["explain"]) == 0
    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines())
    assert main(["explain", "words", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["words"]
    assert {"Warp", "Shared memory", "softmax", "nn"} <= {
        each for words in listed.values() for each in words
    }
    for words in listed.values():
        for word in words:
            assert word in text.replace("\n  ", " ")
            assert sign_page(word) or word_page(word), word


@pytest.mark.parametrize(
    ("word", "help_line"),
    [
        ("occupanci", "did you mean `i explain Occupancy`?"),
        ("bank conflicst", "did you mean `i explain bank conflict`?"),
        ("foo", "`i explain words` lists"),
        ("foo bar", "`i explain words` lists"),
    ],
)
def test_words_without_a_page(
    word: str, help_line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", word]) != 0
    error = capsys.readouterr().err
    assert error.startswith("error[E0401]")
    assert help_line in error


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("convolution", "(i+k)*k~ik >> +ik~i"),
        ("sort", 'einx.sort("... [c]")'),
        ("median", "with NumPy"),
        ("clip", "min(max(x, a), b)"),
        ("pooling", "max_pool2d"),
        ("adam", "use optim\ncd adam(p; lr"),
        ("shared memory", "`0:s2`"),
        ("std", "mean_pool2d"),
        ("dropout", "use nn\nop dropout(x, step; rate"),
        ("nn", "op linear(x; out)"),
        ("optim", "cd adam(p; lr"),
        ("cd", "backprop(loss)"),
        ("batch size", "axis 0"),
    ],
)
def test_words_with_another_answer(word: str, says: str) -> None:
    told = word_page(word)
    assert told is not None
    assert says in told[0]


def test_programs_for_functions_that_are_not_here() -> None:
    x = RANDOM.random((3, 5), np.float32)
    programs = re.findall(r"`([^`]*~[^`]*)`", MOVES["cumsum"])
    assert len(programs) == 2
    for program in programs:
        np.testing.assert_allclose(ilang.i(program)(x[0]), np.cumsum(x[0]), rtol=1e-6)
    squares = ((x[:, None] - x) ** 2).sum(2)
    distance = re.search(r": `(.*)`", MOVES["distance"])
    assert distance is not None
    np.testing.assert_allclose(ilang.i(distance[1])(x, x), squares, rtol=1e-5)
    padded = re.search("`(.*)`", MOVES["pad"])
    assert padded is not None
    np.testing.assert_array_equal(ilang.i(padded[1])(x), np.pad(x, ((0, 0), (1, 2))))
    for name, arrays, result in (
        ("linspace", (), np.linspace(0, 1, 11, dtype=np.float32)),
        ("histogram", (ARRAYS["ids"] % 4,), np.bincount(ARRAYS["ids"] % 4, minlength=4)),
        ("meshgrid", (x[0], x[1]), np.add(*np.meshgrid(x[0], x[1], indexing="ij"))),
    ):
        written = re.search("`(.*?)`", MOVES[name])
        assert written is not None
        np.testing.assert_allclose(ilang.i(written[1])(*arrays), result, rtol=1e-6)
    for name, wanted in (("sort", np.sort(x)), ("flip", x[:, ::-1]), ("argsort", np.argsort(x)),
                         ("roll", np.roll(x, 1, 1)), ("sin", np.sin(x))):  # fmt: skip
        program = re.search("`(.*)`", MOVES[name])
        assert program is not None
        np.testing.assert_allclose(ilang.i(program[1])(x), wanted, rtol=1e-6)


def test_columns_of_the_cheat_sheet() -> None:
    assert cheat_sheet(2) in (word_page("einops") or ("",))[0]
