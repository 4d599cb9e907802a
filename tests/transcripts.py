r"""Run shell transcripts: commands, then what they print, then `[status]` when that is not 0.

A transcript is a `tests/cli/*.console` file, where `$ ` stands before a command, or all ```bash blocks of one
Markdown page, which can be pasted into a shell as they stand: `#> ` stands before each line of output.
Blocks that must not run (installation, `make`) are fenced as ```sh instead.

- The commands of one document share a fresh folder that holds a copy of `samples/`.
- What they compile is optimised by nobody: they show values, not times.
- `bash -c` runs each of them, but what is one command `i` alone, which is a fork (`forked.py`).
- In a file, a line `> more` continues a command that ends with `\` or opens a here-document. On a page, all lines
  before an output are given to one shell. Standard output comes first, then standard error.
- `...` alone on a line stands for any lines, `…` within a line for any text.
- A `# comment` after a blank line and directly before a command belongs to the reader.
"""

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests import forked, unoptimised

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300  # for one command, a cold compile included

FENCE = re.compile(
    r"^(?P<indent>[ \t]*)```bash\n(?P<body>.*?)^(?P=indent)```[ \t]*$", re.DOTALL | re.MULTILINE
)
NOTE = re.compile(r"(?:\A|\n)\n+(?:# .*\n)+\n*\Z")
CONTINUES = re.compile(r"\\\Z|<<-?\s*['\"]?[A-Z]{2}")
QUOTED = re.compile(r"""\"[^"$`\\]*\"|'[^']*'""")
OUTPUT = "#> "
"""What stands before each line of output on a page: a comment to a shell."""
READ_BY_SHELLS = set("|&;<>$`\\\"'#~*?[]{}()!=\n")
"""What means something to a shell outside of quotes; a line without any that begins with `i` is that one command."""
STEADY = {"TERM": "dumb", "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT)}
UNSTEADY = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES")


@dataclass(frozen=True)
class Step:
    """One command: the lines it is written on, its output, and the blank lines and notes after."""

    written: str
    command: str
    expected: str
    rest: str


def documents() -> list[Path]:
    """Every file with something to run, in a fixed order."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("samples/**/*.md")]
    runnable = [page for page in pages if page.exists() and FENCE.search(page.read_text("utf-8"))]
    return sorted(runnable) + sorted(ROOT.glob("tests/cli/*.console"))


def replay(document: Path) -> str:
    """Run a document and return it as it should read: unchanged where the output agrees."""
    text = document.read_text("utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder, environment = prepare(Path(name))
        if document.suffix == ".console":
            return replay_block(text, folder, environment)

        def rewrite(match: re.Match[str]) -> str:
            indent, body = match["indent"], match["body"]
            plain = re.sub(f"^{indent}", "", body, flags=re.MULTILINE)
            fresh = replay_steps(pasted_steps(plain), folder, environment, OUTPUT)
            fresh = re.sub(r"^(?=.)", indent, fresh, flags=re.MULTILINE)
            return f"{indent}```bash\n{fresh}{indent}```"

        return FENCE.sub(rewrite, text)


def prepare(folder: Path) -> tuple[Path, dict[str, str]]:
    """Lay out the working folder and an environment whose `i` and `python` are the ones under test."""
    work, tools = folder / "work", folder / "bin"
    work.mkdir()
    tools.mkdir()
    if (ROOT / "samples").exists():
        shutil.copytree(
            ROOT / "samples", work / "samples", ignore=shutil.ignore_patterns("__pycache__")
        )
    python = shlex.quote(sys.executable)
    for name, command in {"i": f"{python} -m ilang", "python": python, "python3": python}.items():
        launcher = tools / name
        launcher.write_text(f'#!/bin/sh\nexec {command} "$@"\n', "utf-8")
        launcher.chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if key not in UNSTEADY}
    return work, kept | STEADY | {"PATH": f"{tools}{os.pathsep}{unoptimised.path()}"}


def replay_block(block: str, folder: Path, environment: dict[str, str]) -> str:
    """Run the steps of one block in order."""
    start = re.search(r"^\$ ", block, re.MULTILINE)
    if start is None:
        return block
    head = block[: start.start()]
    return head + replay_steps(steps(block[start.start() :]), folder, environment)


def replay_steps(
    block: Iterable[Step], folder: Path, environment: dict[str, str], mark: str = ""
) -> str:
    """Run steps in order, and write each with its output, whose lines begin with a mark."""
    parts = []
    for step in block:
        actual = execute(step.command, folder, environment)
        agrees = any(matches(text, actual) for text in (step.expected, step.expected + step.rest))
        shown = step.expected if agrees else merge(step.expected, actual)
        lines = shown.splitlines(keepends=True)
        marked = "".join(
            f"{mark}{line}" if line.strip() else f"{mark.rstrip()}\n" for line in lines
        )
        parts += [step.written, marked if mark else shown, step.rest]
    return "".join(parts)


def pasted_steps(block: str) -> Iterator[Step]:
    """Cut a block of a page where an output ends: all lines above the output are one script."""
    lines, written = re.findall(r".*\n", block), ""
    for is_output, group in itertools.groupby(lines, lambda line: line.startswith(OUTPUT.rstrip())):
        if not is_output:
            written = "".join(group)
            continue
        yield pasted_step(
            written, "".join(line.removeprefix("#>").removeprefix(" ") for line in group)
        )
        written = ""
    if written:
        yield pasted_step(written, "")


def pasted_step(written: str, expected: str) -> Step:
    """A script as it stands on a page. Without notes it may be one command `i`, which is a fork."""
    code = re.sub(r"\A(?:(?:#.*)?\n)+", "", written)
    return Step(written, code.rstrip("\n"), expected, "")


def steps(block: str) -> Iterator[Step]:
    """Cut a block that begins with `$ ` into its commands."""
    chunks = re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]
    for position, chunk in enumerate(chunks, start=1):
        lines = chunk.splitlines(keepends=True)
        count = 1
        while lines[count:] and lines[count].startswith("> "):
            if not CONTINUES.search("".join(lines[:count]).rstrip("\n")):
                break
            count += 1
        body = "".join(lines[count:])
        note = NOTE.search(body) if position < len(chunks) else None
        output = (body[: note.start()] if note else body).rstrip("\n")
        expected = output + "\n" if output else ""
        yield Step(
            written="".join(lines[:count]),
            command="".join(line[2:] for line in lines[:count]),
            expected=expected,
            rest=body[len(expected) :],
        )


def execute(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Run one command and return what a reader of the terminal would see."""
    plain = not READ_BY_SHELLS & set(QUOTED.sub("", command.strip()))
    words = shlex.split(command) if plain and forked.SERVES else []
    if words[:1] == ["i"]:
        done = forked.run(words[1:], environment, folder)
    else:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    shown = "".join(
        text if text.endswith("\n") or not text else text + "\n"
        for text in (done.stdout, done.stderr)
    ).rstrip("\n")
    status = f"[{done.returncode}]" if done.returncode else ""
    return "".join(f"{part}\n" for part in (shown, status) if part)


def matches(expected: str, actual: str) -> bool:
    """Compare, reading `...` and `…` in the expected text as anything."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace("…", ".*?") + r"\n"
        for line in expected.splitlines()
    )
    return re.fullmatch(pattern, actual) is not None


def merge(expected: str, actual: str) -> str:
    """Take the actual lines, but keep a line with `…` wherever it still describes one."""
    patterns = [f"{line}\n" for line in expected.splitlines() if "…" in line]
    return "".join(
        next((pattern for pattern in patterns if matches(pattern, line)), line)
        for line in actual.splitlines(keepends=True)
    )
