"""The pages agree with the tables of the code, and their Python examples give what they show.

`tests/cli` runs the ```bash blocks. Here are the ```pycon blocks, where the examples of one page share their names, and
the ```python blocks, each of which is a program that asserts what it shows, on the emulator instead of a GPU.
"""

import contextlib
import doctest
import io
import re
import textwrap
from pathlib import Path

import pytest

from ilang.codegen.targets.c_entry import STATUS, STATUS_WORDS
from ilang.core.dtype import DTYPES
from ilang.core.einx_ops import EINX_OPS
from ilang.core.ir import primitives
from ilang.core.library import INNER
from ilang.core.notation.files.libraries import defined_in
from ilang.core.notation.index.schedule_rules import LOOP_ROLES, SITE_ROLES
from ilang.core.notation.reader import RESERVED
from ilang.core.ops import INFINITY, OPS, PRIMITIVES, SYMBOLS
from ilang.core.pipeline import STEPS
from ilang.icli import colon
from ilang.icli.commands import COMMANDS
from tests.rewritten import settle

ROOT = Path(__file__).resolve().parents[2]
README, LANGUAGE, ARCHITECTURE = (
    ROOT / name for name in ("README.md", "docs/language.md", "docs/architecture.md")
)
README_LINES = 115
EXAMPLES = re.compile(r"^```pycon\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
PROGRAM = re.compile(r"^ *```python\n(?P<body>.*?)^ *```$", re.DOTALL | re.MULTILINE)
FENCED = re.compile(r"^ *```(?P<kind>[^\n]*)\n.*?^ *```$", re.DOTALL | re.MULTILINE)
KINDS = {"bash", "pycon", "python", "sh", ""}
"""Kinds of blocks. Those that are `sh` need a network, a GPU, MPI or minutes; those of no kind are no program."""
ROW = re.compile(r"^\| `([\w/]+)/` \| (.*) \|$", re.MULTILINE)
"""A row of the code map: a folder, and what is in it."""
DIVIDER = re.compile(r"^\|[-| ]+\|$")

PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = [
    pytest.param(textwrap.dedent(match["body"]), id=f"{page.name}-{number}")
    for page in PAGES
    for number, match in enumerate(PROGRAM.finditer(page.read_text("utf-8")))
]


def table(page: Path, first: str) -> list[list[str]]:
    """The rows of the one table whose heading begins with a cell, `code` marks and escapes taken off."""
    lines = page.read_text("utf-8").splitlines()
    (start,) = [n for n, line in enumerate(lines) if line.startswith(f"| {first} |")]
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        rows.append([cell.replace("\\|", "|").strip().strip("`") for cell in cells])
    assert DIVIDER.match(lines[start + 1])
    return rows


def replay(text: str) -> str:
    """A page with every example as it is now."""
    names: dict[str, object] = {}

    def rewrite(match: re.Match[str]) -> str:
        return f"```pycon\n{run(match['body'], names)}```"

    return EXAMPLES.sub(rewrite, text)


def run(body: str, names: dict[str, object]) -> str:
    """One block: its lines as they are, and what each prints now."""
    parts: list[str] = []
    for piece in doctest.DocTestParser().parse(body):
        if isinstance(piece, str):
            parts.append(piece)
            continue
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(compile(piece.source, "<example>", "single"), names)
        first, *more = piece.source.splitlines(keepends=True)
        parts += [f">>> {first}", *(f"... {line}" for line in more), shown.getvalue()]
    return "".join(parts)


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if EXAMPLES.search(page.read_text("utf-8"))],
    ids=lambda page: page.name,
)
def test_examples(page: Path, update: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    settle(page, replay(page.read_text("utf-8")), update)


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize("text", PROGRAMS)
def test_programs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in re.findall(r"^import (torch|jax)$", text, re.MULTILINE):
        pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.chdir(tmp_path)
    exec(compile(text, "<program of a page>", "exec"), {})


def test_blocks_are_of_a_known_kind() -> None:
    """So that none is left out of the tests by the name that it has."""
    kinds = {
        page.name: {match["kind"] for match in FENCED.finditer(page.read_text("utf-8"))} - KINDS
        for page in PAGES
    }
    assert {name: kind for name, kind in kinds.items() if kind} == {}


def test_decisions_are_listed(update: bool) -> None:
    folder = ROOT / "docs" / "decisions"
    lines = [
        "# Decisions",
        "",
        "A page for each decision that would surprise a newcomer, with what was weighed.",
        "",
    ]
    for page in sorted(folder.glob("0*.md")):
        number, _, title = (
            page.read_text("utf-8").partition("\n")[0].removeprefix("# ").partition(": ")
        )
        lines.append(f"- [{number}]({page.name}): {title}")
    settle(folder / "README.md", "\n".join(lines) + "\n", update)


def test_pages_are_in_the_navigation_of_the_site() -> None:
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    pages = [page for page in PAGES if "decisions" not in page.parts]
    missing = {page.relative_to(ROOT).as_posix() for page in pages} - {*listed}
    assert missing == set(), "name a page in mkdocs.yml, where a reader should meet it"
    assert all((ROOT / page).is_file() for page in listed)


LINK = re.compile(r"(?<!!)\[[^]\n]*\]\((?P<path>[^)#:\s]*)(?:#(?P<anchor>[^)\s]*))?\)")


def test_links_lead_somewhere() -> None:
    """`make site` says the same; where it is not installed, this looks at files and headings."""
    dead = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "samples" / "README.md"]:
        text = re.sub(
            r"^ *```.*?^ *```|`[^`\n]*`",
            "",
            page.read_text("utf-8"),
            flags=re.DOTALL | re.MULTILINE,
        )
        for match in LINK.finditer(text):
            target = (page.parent / match["path"]) if match["path"] else page
            if not target.is_file() or (match["anchor"] and match["anchor"] not in anchors(target)):
                dead.append(f"{page.name}: {match[0]}")
    assert dead == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page: those that it has, and those that GitHub makes of its headings."""
    text = page.read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()) for heading in headings)
    return {*re.findall(r'<a id="(.*?)">', text), *(re.sub(r"\s", "-", each) for each in plain)}


def test_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= README_LINES


def test_operators() -> None:
    ends = {INFINITY: "∞", -INFINITY: "−∞"}
    expected = []
    for op in OPS.values():
        identity = "" if op.identity is None else ends.get(op.identity) or f"{op.identity:g}"
        expected.append([op.symbol, op.name, op.binary is not None, identity])
    rows = table(LANGUAGE, "op")
    assert [[symbol, name, bool(two), end] for symbol, name, two, _, end in rows] == expected
    assert all(one for _, _, _, one, _ in rows)


def test_status_codes() -> None:
    rows = [[str(code), STATUS_WORDS[code], says] for code, says in STATUS.items()]
    assert table(LANGUAGE, "status") == rows


def test_pipeline() -> None:
    rows = [[step.takes, step.gives, step.module, step.summary] for step in STEPS]
    assert table(ARCHITECTURE, "takes") == rows


def named_modules(page: str) -> dict[str, list[str]]:
    """The modules that the rows of the code map name, by folder."""
    code_map = page.partition("## Code map")[2].partition("### `tests/`")[0]
    named: dict[str, list[str]] = {}
    for heading in re.split(r"^### ", code_map, flags=re.MULTILINE)[1:]:
        layer = heading[1 : heading.index("/")]
        for folder, says in ROW.findall(heading):
            path = layer if folder == layer else f"{layer}/{folder}"
            named.setdefault(path, []).extend(re.findall(r"`(\w+\.py)`", says))
    return named


def test_the_code_map_names_every_module_once() -> None:
    """Each in a row of its folder, if it is no step of the pipeline: those are in the table of steps."""
    named = named_modules(ARCHITECTURE.read_text("utf-8"))
    steps = {step.module for step in STEPS}
    there: dict[str, list[str]] = {}
    for layer in ("core", "codegen", "icli"):
        for path in (ROOT / layer).rglob("*.py"):
            place = path.parent.relative_to(ROOT).as_posix()
            if path.name != "__init__.py" and f"{place}/{path.name}" not in steps:
                there.setdefault(place, []).append(path.name)
    listed = {
        place: sorted(name for name in names if f"{place}/{name}" not in steps)
        for place, names in named.items()
    }
    assert listed == {place: sorted(names) for place, names in there.items()}
    assert all((ROOT / step).exists() for step in steps)


def test_commands() -> None:
    listed = " ".join(row[0] for row in table(LANGUAGE, "command"))
    assert all(f"i {command}" in listed for command in COMMANDS)


def test_words_of_the_language() -> None:
    text = LANGUAGE.read_text("utf-8")
    assert f"{', '.join(DTYPES[:-1])} and {DTYPES[-1]}." in text
    line = re.search(r"^- The words `(.+?)` name nothing else", text, re.MULTILINE)
    assert line
    assert set(line[1].split()) == RESERVED
    for role, says in {**LOOP_ROLES, **SITE_ROLES}.items():
        assert f"`{role}` {says}" in text


def words_of(page: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", (ROOT / "docs" / page).read_text("utf-8")))


def test_pages_list_the_functions_that_messages_offer() -> None:
    """Primitives, libraries, kernels, operations in einx notation, and commands of the REPL."""
    defined = {part for part, library in defined_in().items() if part not in INNER}
    assert {*primitives.PRIMITIVES, *defined} <= words_of("functions.md")
    symbols = {*SYMBOLS, *PRIMITIVES} - {*OPS}
    assert symbols <= words_of("elementwise.md")
    assert {*EINX_OPS} <= words_of("einx.md")
    text = LANGUAGE.read_text("utf-8")
    assert [
        name for name in colon.COMMANDS if f":{name} " not in text and f":{name}`" not in text
    ] == []


def test_inner_definitions_are_those_of_libraries() -> None:
    assert defined_in().keys() >= INNER
    assert not INNER & words_of("functions.md")
