"""Every command with every option on every sample: ``python tests/property/commands.py --count 1000``.

A command gives a result, or an answer with a code; an internal error is neither. The suite runs some of these
commands for each sample, other ones for each, so that all options are among them.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from ilang.core.machine import MACHINES  # noqa: E402 - found through the line above
from ilang.core.pipeline import GRADIENTS, stages_of  # noqa: E402 - as above
from tests.unit.icli.front import i  # noqa: E402 - as above

SAMPLES = sorted((ROOT / "samples").glob("*.i"))
INTERNAL = 70
"""The status of an internal error."""


def given(sample: Path) -> list[str]:
    """The arrays that a sample names as its inputs."""
    return re.findall(r"^# in \w+ = (.*)$", sample.read_text("utf-8"), re.MULTILINE)


def commands(sample: Path) -> list[list[str]]:
    """The commands on a sample: each with no option, with each option alone, and with some pairs of them."""
    file = str(sample)
    words = [["explain", file, *each] for each in _explained()]
    words += [["grad", file, *each] for each in _differentiated()]
    words += [
        ["check", file, *each]
        for each in ([], ["--json"], ["--shape", "x=8|3"], ["--config", "n=2"])
    ]
    words += [["fmt", file], ["fmt", "--check", file], ["repl", file]]
    arrays = given(sample)
    targets: Sequence[list[str]] = (
        [],
        ["--target", "c"],
        ["--target", "numpy"],
        ["--target", "cuda"],
        ["--seed", "1"],
    )
    words += [
        ["run", file, *arrays, *each]
        for each in (*targets, ["--shape", "x=3"], ["--config", "n=2"])
    ]
    words += [["run", file, *arrays[1:]], ["run", file, *arrays, "--load", "none.npz"]]
    for each in (
        [],
        ["--target", "c"],
        ["--prefix", "none"],
        ["--prefix", "my"],
        ["--shape", "x=3"],
    ):
        words.append(["build", file, "-o", "out", *each])
    words.append(["build", file, "-o", "out", "--target", "cuda"])
    for option in (
        ["--epochs", "1"],
        ["--batch", "2"],
        ["--no-shuffle"],
        ["--debug-nan"],
        ["--threads", "2"],
    ):
        words.append(["train", file, "--data", "x=none.npy", *option])
    return words


def _explained() -> Iterator[list[str]]:
    """Options of ``i explain``."""
    yield from ([], ["-v"], ["--json"], ["--schedule"], ["--json", "-v"], ["--emit", GRADIENTS])
    yield from (["--shape", "3x4"], ["--def", "main"], ["--config", "n=2"], ["--emit", "none"])
    for target, machine in MACHINES.items():
        for stage in (*stages_of(machine), target):
            yield ["--target", target, "--emit", stage]
        yield ["--target", target, "--schedule"]
        yield ["--target", target, "-v"]


def _differentiated() -> Iterator[list[str]]:
    """Options of ``i grad``."""
    yield from ([], ["--values"], ["--check"], ["--json"], ["--wrt", "x"], ["--shape", "3x4"])
    for stage in stages_of(MACHINES["c"]):
        yield ["--emit", stage]


def chosen(sample: Path, count: int) -> list[list[str]]:
    """So many of the commands on a sample, spread over all of them; those of other samples are other ones."""
    every, number = commands(sample), SAMPLES.index(sample)
    step = max(1, len(every) // count)
    return every[number % step :: step][:count]


def failed(words: Sequence[str]) -> str | None:
    """What an internal error of a command says; None where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        done = i(*words, cwd=folder, input="")
    told = done.stderr + done.stdout
    if done.returncode in range(INTERNAL) and "Traceback" not in told:
        return None
    return f"i {' '.join(words)}: status {done.returncode}\n{told[-1000:]}"


def main() -> None:
    """Run commands; print those that fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="commands on each sample")
    parser.add_argument("--sample", default="", help="samples whose name has this")
    asked = parser.parse_args()
    failures = 0
    for sample in SAMPLES:
        for words in chosen(sample, asked.count) if asked.sample in sample.name else []:
            fault = failed(words)
            if fault is not None:
                failures += 1
                print(fault, flush=True)
    print(f"{failures} internal errors")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
