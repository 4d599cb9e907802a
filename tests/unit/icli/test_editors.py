"""The one table of tokens, and the grammars that are written out of it."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from ilang.icli.editors import files
from ilang.icli.highlight import TOKENS, tokens
from ilang.icli.lexer import ILexer
from tests.unit.icli.front import ROOT

EDITORS = ROOT / "docs" / "editors"
SAMPLE = """\
# in x = [1]
use nn, std
softmax = (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij
op layer(x; hid = 3) = ?/("w" * x + "b" hid) *. true
conv(x, y) = nc(2y+u-1)(2x+v-1)*ocuv~noyxcuv | y:4 | n o y' x
h = i@i~(v:10) & f32 | 2.5e-3
cd step(x) {
  for p in params(loss) { p =- lr *. p.grad }
  y = exp(x) + layer(x) # a comment "with quotes"
}
t = oc00~oc >> i("+ij~i")
e = einx.sum("a [b]") >> ij[j<=i]~ij
"""
TEXT = SAMPLE + "".join(path.read_text("utf-8") for path in sorted((ROOT / "samples").glob("*.i")))
KINDS = {rule.scope: rule.kind for rule in TOKENS}


def kinds(line: str) -> list[str]:
    """The kind of each character of a line; of what no rule has, nothing."""
    return [
        "" if kind == "other" else kind
        for kind, start, end in tokens(line)
        for _ in range(start, end)
    ]


def test_what_is_of_which_kind() -> None:
    told = {
        kind: {line[a:b] for line in SAMPLE.splitlines() for k, a, b in tokens(line) if k == kind}
        for kind in {rule.kind for rule in TOKENS}
    }
    assert told["definition"] == {"softmax", "layer", "conv", "h", "step", "t", "e"}
    assert told["axis"] >= {"ij", "nc", "ocuv", "noyxcuv", "v", "oc", "j"}
    assert told["keyword"] == {"use", "op", "cd", "for", "in", "params"}
    assert told["text"] == {'"w"', '"b"', '"+ij~i"', '"a [b]"'}
    assert told["number"] >= {"3", "2", "1", "4", "10", "2.5e-3", "00"}
    assert told["builtin"] == {"I", "exp", "i", "einx"}
    assert told["member"] == {"grad", "sum"}
    assert told["call"] == {"layer"}
    assert told["wire"] == {">>", "&", "|"}
    assert told["comment"] == {"# in x = [1]", '# a comment "with quotes"'}


@pytest.mark.parametrize("path", files())
def test_files_are_as_the_table_says(path: str) -> None:
    assert (EDITORS / path).read_text("utf-8") == files()[path], "`make editors` writes them"


def test_a_textmate_grammar_colors_as_the_repl_does() -> None:
    grammar = json.loads((EDITORS / "vscode/i.tmLanguage.json").read_text("utf-8"))
    rules = [(each["name"], re.compile(each["match"], re.ASCII)) for each in grammar["patterns"]]
    for line in TEXT.splitlines():
        shown = [""] * len(line)
        at = 0
        while (
            True
        ):  # the first match in the line, and of several at one place that of the first rule
            found = [
                (m.start(), n, m) for n, (_, r) in enumerate(rules) if (m := r.search(line, at))
            ]
            if not found:
                break
            _, number, match = min(found, key=lambda each: each[:2])
            kind = KINDS[rules[number][0].removesuffix(".ilang")]
            shown[match.start() : match.end()] = [kind] * len(match[0])
            at = match.end()
        assert shown == kinds(line), line


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
def test_vim_colors_as_the_repl_does(tmp_path: Path) -> None:
    (tmp_path / "a.i").write_text(TEXT, "utf-8")
    (tmp_path / "dump.vim").write_text(
        f"""\
set nocompatible encoding=utf-8 synmaxcol=0
set runtimepath^={EDITORS}/vim
syntax on
edit {tmp_path}/a.i
let out = [&filetype]
for l in range(1, line('$'))
  call add(out, join(map(range(1, len(getline(l))), {{_, c -> synIDattr(synID(g:l, c, 1), 'name')}}), ','))
endfor
call writefile(out, '{tmp_path}/out')
qa!
""",
        "utf-8",
    )
    command = ["vim", "-es", "-u", "NONE", "-i", "NONE", "-n", "-S", str(tmp_path / "dump.vim")]
    subprocess.run(command, check=False, timeout=120, stdin=subprocess.DEVNULL)
    filetype, *lines = (tmp_path / "out").read_text("utf-8").splitlines()
    assert filetype == "ilang"
    for line, shown in zip(TEXT.splitlines(), lines, strict=True):
        if line.isascii():
            groups = [name.removeprefix("ilang").lower() for name in shown.split(",")]
            assert groups == (kinds(line) or [""]), line


def test_pygments_knows_the_language() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pygments.lexers"] == {"ilang": "ilang.icli.lexer:ILexer"}
    shown = list(ILexer().get_tokens(SAMPLE))
    assert "".join(text for _, text in shown) == SAMPLE
    named = {(str(kind), text) for kind, text in shown}
    assert {
        ("Token.Keyword", "op"),
        ("Token.Name.Function", "softmax"),
        ("Token.Name.Variable", "noyxcuv"),
        ("Token.Literal.Number", "2.5e-3"),
        ("Token.Comment.Single", "# in x = [1]"),
    } <= named


def test_lines_are_read_in_linear_time() -> None:
    for line in ("i" * 20_000, "i+" * 20_000, "(i" * 20_000, '"' * 20_000, "x(" * 20_000 + "~"):
        assert sum(end - start for _, start, end in tokens(line)) == len(line)


def test_the_folder_of_vs_code_names_its_files() -> None:
    folder = EDITORS / "vscode"
    package = json.loads((folder / "package.json").read_text("utf-8"))
    grammar = package["contributes"]["grammars"][0]
    language = package["contributes"]["languages"][0]
    for path in (package["main"], grammar["path"], language["configuration"]):
        assert (folder / path).is_file(), path
    text = json.loads((folder / grammar["path"]).read_text("utf-8"))
    assert text["scopeName"] == grammar["scopeName"]
    if (node := shutil.which("node")) is not None:
        subprocess.run([node, "--check", str(folder / "extension.js")], check=True, timeout=120)
