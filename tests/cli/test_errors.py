"""Every code of ``icli/errors.md``: its bad example ends with it, its good example succeeds, the product raises it."""

from __future__ import annotations

import gc
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ilang import Error
from ilang.icli.main import main
from tests.transcripts import execute, prepare

pytestmark = pytest.mark.usefixtures("compiled_quickly")

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "icli" / "errors.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (E\d{4}) · .+$", re.MULTILINE)
RAISED = re.compile(r'"(E\d{4})"')
BUGS = {
    "E9900",
    "E9901",
    "E9902",
    "E9903",
    "E9904",
    "E9905",
    "E9906",
    "E9907",
    "E9910",
    "E9911",
    "E9912",
}
"""Our own bugs: no input leads there."""


def sections() -> dict[str, str]:
    parts = SECTION.split(PAGES)
    assert len(set(parts[1::2])) == len(parts[1::2]), "a code means one thing"
    return dict(zip(parts[1::2], parts[2::2], strict=True))


STEP = re.compile(
    r"^```i (?P<name>\S+)\n(?P<file>.*?)^```$|^(?P<kind>bad|good): (?P<line>[^\n]+)$"
    r"|^```python\n# (?P<python>bad|good)\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
"""A section in order: a file, a command line, a piece of Python."""
QUOTED = re.compile(r"""\"[^"$`\\]*\"|'[^']*'""")
READ_BY_SHELLS = set("|&;<>$`\\\"'")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own to be in; the command line is set up for a process of its own, which ends with it."""
    threshold = gc.get_threshold()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    gc.set_threshold(*threshold)


@pytest.mark.parametrize("code", sorted(set(sections()) - BUGS))
def test_examples_of_a_code(code: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = set()
    for step in STEP.finditer(sections()[code]):
        refused = code if "bad" in (step["kind"], step["python"]) else None
        if step["name"]:
            (here / step["name"]).write_text(step["file"], encoding="utf-8")
        elif step["kind"]:
            seen.add(step["kind"])
            command(step["line"], refused, capsys)
        else:
            seen.add(step["python"])
            python(step["code"], refused)
    assert seen == {"bad", "good"}, "a section shows what is refused and what is not"


def command(line: str, code: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    """A command line ends with a code, or well."""
    assert not READ_BY_SHELLS & set(QUOTED.sub("", line)), "an example is one command, in any shell"
    name, *tokens = shlex.split(line)
    assert name == "i"
    status = main(tokens)
    said = capsys.readouterr().err
    if code is None:
        assert status == 0, (line, said)
    else:
        assert f"error[{code}]" in said, (line, said)
        assert "\nhelp: " in said, (line, said)
        assert status in (1, 2, 3)


MALFORMED = (
    *(
        "",
        "?~ij",
        "#",
        "ij~",
        "ij~~i",
        "+~i",
        "~.",
        "ij~i)",
        "(ij~i",
        "((ij~i) >> -i~i",
        "()",
        "(2i~i",
    ),
    *(
        "ij~i >>",
        ">> ij~i",
        "ij~i & & ij~i",
        "ij~i ij~i",
        "ij~i 2",
        "~",
        "f(x) = ",
        "a =",
        "foo",
        "f(+ij~i",
    ),
    *(
        'i("ij~i"',
        "i('ij~i)",
        'i("ij~i" 2)',
        "einsum(ij)",
        'einsum("ij',
        'einsum("ij=>i"',
        "elementwise(x)",
    ),
    *(
        'einx.sum("a [b]',
        'einx.sum("a [b]"',
        'einx.sum("a [b]" 2)',
        'einx.reduce("a [b]", op=(+i~.',
    ),
    *(
        "ij~ij | i:0 | i j",
        "ij~ij | i:a | i j",
        "ij~ij | i: | i j",
        "ij~ij | ,i:2 | i j",
        "ij~ij || i i j",
    ),
    *(
        "ij~ij || i j 0 0",
        "ij~ij || i j | i:p,i:v",
        "ij~ij | i:65536:65536 | i i' i'' j",
        "ij~ij | i:2 |  | i",
    ),
    *(
        "9999999999i~i",
        "(i+)j~ij",
        "(0i+j:3)j~ij",
        "(i+j:0)j~ij",
        "(i j)~i",
        "ij[j<=i j]~ij",
        "ij[j/i]~ij",
        "(i:)~i",
        "@~i",
        "@(i*2)~i",
        "@(i:10~i",
        "i@~i",
    ),
    *(
        "(I | 1e999) >> i*.~i",
        "1. >> i~i",
        "i*~i",
        "i**2~i",
        "x[0]~i",
        "f(x) = { y = (-i~i)(x)",
        "f(x) = g(x",
    ),
    *(
        "f(x) = (-i~i)(x) 2",
        "f(x) = g(x)",
        "f(x) = y",
        "f(x[99999999999999999999]) = -x~x",
        "op f(x) = x",
    ),
)
"""Texts that no reader takes."""
MALFORMED_FILES = (
    *("op f(x) = repeat(x hid) { x }", "op f(x) = repeat(x; h i 3) { x }", "op f(x) = tanh(x in)"),
    *(
        "op f(x) = x *",
        "op f(x) = (x",
        "op f(x) = g(x)",
        "op f(x) = x + y",
        "op f(x) {",
        "op f(x) = [1; 2",
        "op f(x",
    ),
    *(
        "op f(x; a = 1e999) = x *. a",
        "op f(x) = x *. 1e999",
        'op f(x) = "w',
        "op f(x[99999999999999999999]) = x",
    ),
    *(
        "op f(x['' 3]) = x",
        "cd f(x) { y =: }",
        "cd f(x) { x =- ",
        "cd f(x) { for p in x }",
        "use",
        "use nothing",
        "x",
    ),
    *(
        "let x = 3",
        "hello world",
        "a b = 3",
        "f(x = 3",
        "= 3",
        "op = 3",
        "cd 3",
        "f(x[n) = -i~i",
        "f(x,,y) = ij~i",
    ),
)
"""The same of files."""


@pytest.mark.parametrize("text", MALFORMED)
def test_what_cannot_be_read_comes_with_help(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--", text]) in (1, 2)
    assert re.search(
        r"^error\[E0\d+\]: .+^help: ", capsys.readouterr().err, re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("text", MALFORMED_FILES)
def test_files_that_cannot_be_read_come_with_help(
    text: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "m.i").write_text(f"{text}\n", encoding="utf-8")
    assert main(["check", "m.i"]) == 1
    said = capsys.readouterr().err
    assert said.count("\nerror[") + said.startswith("error[") == said.count("\nhelp: "), said


def python(block: str, code: str | None) -> None:
    """A piece of Python raises an error with a code, or nothing."""
    work = compile(block, "<example>", "exec")
    if code is None:
        exec(work, {})
        return
    with pytest.raises(Error) as caught:
        exec(work, {})
    assert caught.value.code == code, block


FAMILIES = {code[:3]: code for code in sorted(set(sections()) - BUGS, reverse=True)}
"""The first code of each hundred."""


@pytest.mark.parametrize("code", FAMILIES.values())
def test_examples_as_processes(code: str, tmp_path: Path) -> None:
    """What the examples do in this process they do in a shell."""
    folder, environment = prepare(tmp_path)
    for step in STEP.finditer(sections()[code]):
        if step["name"]:
            (folder / step["name"]).write_text(step["file"], encoding="utf-8")
        elif step["kind"]:
            said = execute(step["line"], folder, environment)
            assert (f"error[{code}]" in said) == (step["kind"] == "bad"), said
            assert bool(re.search(r"^\[[123]\]$", said, re.MULTILINE)) == (step["kind"] == "bad")


def test_every_code_that_is_raised_has_a_section() -> None:
    raised = set()
    for folder in ("core", "codegen", "icli", "ilang"):
        for path in (ROOT / folder).rglob("*.py"):
            raised |= set(RAISED.findall(path.read_text(encoding="utf-8")))
    assert raised - BUGS == set(sections()) - BUGS


def test_sections_are_sorted() -> None:
    found = list(sections())
    assert found == sorted(found)
