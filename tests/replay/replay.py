"""What the compiler writes of many programs, each text as a hash: what shows whether a change changed any of it.

``programs/GROUP.txt`` holds a program a line (``subjects.py``); ``hashes/GROUP.txt`` has a part for each text that is
made on the way down (``texts.py``), with a hash for each program, in the order of the lines. A refactoring leaves the
hashes as they are; one that takes a stage away takes its part away, one that renames a stage renames its part. A change
that is meant shows in its commit which programs it touched, and from where on (``pytest --update``).

    python tests/replay/replay.py                       what differs from the hashes, and from where on
    python tests/replay/replay.py --against ../main     what differs from another checkout, with the first difference
    python tests/replay/replay.py samples --only conv   of one group alone, and of programs with a word in their lines
    python tests/replay/replay.py --deep                of all groups
    python tests/replay/replay.py samples --only conv --texts c/fused    a text itself
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.replay.subjects import DEEP, Subject, group_names, lines_of  # noqa: E402 - found through the line above
from tests.replay.texts import Texts, texts_of  # noqa: E402

HASHES = Path(__file__).with_name("hashes")
DIGITS = 6
IN_A_ROW = 12
NONE = "-" * DIGITS
"""Stands where a program has no such text."""
MOST_LINES = 60
"""Lines of a difference that are shown."""
MOST_PROGRAMS = 20
"""Programs that are named where more differ."""


def hashed(texts: Texts) -> Texts:
    """The hash of each text."""
    return {
        name: hashlib.sha256(text.encode()).hexdigest()[:DIGITS] for name, text in texts.items()
    }


def written(rows: Sequence[Texts]) -> str:
    """A file of hashes, those of each program given."""
    lines: list[str] = []
    for name in _in_order(rows):
        hashes = [row.get(name, NONE) for row in rows]
        lines.append(f"[{name}]")
        lines += [
            f"{first + 1:4} {' '.join(hashes[first : first + IN_A_ROW])}"
            for first in range(0, len(hashes), IN_A_ROW)
        ]
    return "\n".join(lines) + "\n"


def _in_order(rows: Sequence[Texts]) -> list[str]:
    """The names of all texts, each after those that stand before it in the programs that have most."""
    names: list[str] = []
    for row in sorted(rows, key=len, reverse=True):
        place = 0
        for name in row:
            if name in names:
                place = names.index(name) + 1
            else:
                names.insert(place, name)
                place += 1
    return names


def read(text: str, count: int) -> list[Texts]:
    """The hashes of each of so many programs, from a file of them."""
    rows: list[Texts] = [{} for _ in range(count)]
    name, number = "", 0
    for line in text.splitlines():
        if line.startswith("["):
            name, number = line[1:-1], 0
            continue
        for word in line.split()[1:]:
            if word != NONE and number < count:
                rows[number][name] = word
            number += 1
    return rows


def first_difference(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """The first text that two have in common and that is not the same, or that only one of them has."""
    for name in now:
        if name in before and before[name] != now[name]:
            return name
    return next((name for name in {**now, **before} if (name in now) != (name in before)), None)


def report(lines: Sequence[str], before: Sequence[Texts], now: Sequence[Texts]) -> str:
    """The programs that differ, and from where on; empty where none does."""
    places = map(first_difference, before, now)
    differing = [
        (number, line, place)
        for number, (line, place) in enumerate(zip(lines, places, strict=True), 1)
        if place is not None
    ]
    if not differing:
        return ""
    counts = Counter(place for _, _, place in differing)
    says = [f"{len(differing)} of {len(lines)} programs differ; where they begin to:"]
    says += [f"  {name}: {count}" for name, count in counts.items()]
    says += [
        f"program {number}, from {place} on: {line[:150]}"
        for number, line, place in differing[:MOST_PROGRAMS]
    ]
    if MOST_PROGRAMS < len(differing):
        says.append(f"and {len(differing) - MOST_PROGRAMS} more")
    return "\n".join(says)


def replayed(group: str) -> tuple[Path, str, str]:
    """The file of hashes of a group, its text as it would be now, and what differs from the one that there is."""
    lines = lines_of(group)
    now = [hashed(texts_of(Subject.read(line))) for line in lines]
    path = HASHES / f"{group}.txt"
    before = read(path.read_text("utf-8") if path.exists() else "", len(lines))
    return path, written(now), report(lines, before, now)


# -- the command -------------------------------------------------------------------------------------------------------


def _elsewhere(checkout: Path) -> subprocess.Popen[str]:
    """The process that makes the texts of some programs in another checkout."""
    python = checkout / ".venv" / "bin" / "python"
    script = checkout / "tests" / "replay" / "replay.py"
    if not script.exists():
        sys.exit(f"{script} is not there: give the folder of another checkout that replays")
    command = [str(python) if python.exists() else sys.executable, str(script), "--json"]
    return subprocess.Popen(
        command, cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _compared(line: str, theirs: Texts, ours: Texts) -> Iterator[str]:
    """What differs between two checkouts of one program: the first text that does, line by line."""
    name = first_difference(theirs, ours)
    if name is None:
        return
    yield f"\n=== {line[:200]}"
    yield f"--- from {name} on"
    if name not in theirs or name not in ours:
        yield f"{name} is in {'this checkout' if name in ours else 'the other one'} alone"
        return
    before, now = theirs[name].splitlines(), ours[name].splitlines()
    diff = [*difflib.unified_diff(before, now, "there", "here", lineterm="")]
    yield from diff[:MOST_LINES]
    if MOST_LINES < len(diff):
        yield f"... and {len(diff) - MOST_LINES} lines more"


def against(checkout: Path, lines: Sequence[str]) -> int:
    """Print what differs between this checkout and another; the number of programs that do."""
    with _elsewhere(checkout) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(list(lines)))
        process.stdin.close()
        ours = [texts_of(Subject.read(line)) for line in lines]
        answer = process.stdout.read()
    if process.returncode != 0:
        sys.exit(f"{checkout} makes no texts of these programs")
    theirs = json.loads(answer)
    for line, before, now in zip(lines, theirs, ours, strict=True):
        for text in _compared(line, before, now):
            print(text)
    print(report(lines, theirs, ours) or f"{len(lines)} programs, and nothing differs")
    return sum(before != now for before, now in zip(theirs, ours, strict=True))


def _chosen(groups: Sequence[str], deep: bool, word: str) -> list[str]:
    names = groups or [name for name in group_names() if deep or not name.startswith(DEEP)]
    return [line for name in names for line in lines_of(name) if word in line]


def main() -> int:
    """Compare with the hashes, or with another checkout."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(group_names())}")
    parser.add_argument("--deep", action="store_true", help="all groups")
    parser.add_argument("--only", default="", metavar="WORD", help="programs with it in their line")
    parser.add_argument("--against", type=Path, metavar="PATH", help="another checkout")
    parser.add_argument("--texts", metavar="NAME", help="print texts of a name, or `all`")
    parser.add_argument("--json", action="store_true", help="texts of lines on standard input")
    given = parser.parse_args()
    if given.json:
        answer = [texts_of(Subject.read(line)) for line in json.loads(sys.stdin.read())]
        json.dump(answer, sys.stdout)
        return 0
    if given.texts:
        for line in _chosen(given.groups, given.deep, given.only):
            for name, text in texts_of(Subject.read(line)).items():
                if given.texts in (name, "all"):
                    print(f"=== {name} of {line[:150]}\n{text}")
        return 0
    if given.against:
        lines = _chosen(given.groups, given.deep, given.only)
        return 1 if against(given.against.resolve(), lines) else 0
    differing = 0
    for group in given.groups or [n for n in group_names() if given.deep or DEEP not in n]:
        _, _, says = replayed(group)
        differing += bool(says)
        print(f"{group}: {says or 'nothing differs'}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
