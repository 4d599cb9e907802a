"""Every command with every option on every sample: ``python tests/property/commands.py --count 1000``.

A command gives a result, or an answer with a code; an internal error is neither. The suite runs some of these
commands for each sample, other ones for each, so that all options are among them.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from ilang.core.machine import MACHINES  # noqa: E402 - found through the line above
from ilang.core.pipeline import GRADIENTS, stages_of  # noqa: E402 - as above
from tests.property.output_attacks import originals  # noqa: E402 - as above
from tests.unit.icli.front import i  # noqa: E402 - as above

SAMPLES = [*sorted((ROOT / "samples").glob("*.i")), Path("m.i")]
"""The programs: samples, and one that lies beside its data, where every command runs."""
INTERNAL = 70
"""The status of an internal error."""
TARGETS = "c", "numpy", "cuda"
FLAG = ("",)
"""The values of an option that takes none."""
EVERYWHERE: dict[str, Sequence[str]] = {"--color": ("always", "sometimes"), "--help": FLAG}
"""Options of all commands."""
OPTIONS: dict[str, dict[str, Sequence[str]]] = {
    "explain": {
        "--def": ("main", "net"),
        "--shape": ("3x4", "x=4|3", "."),
        "--config": ("n=2",),
        "--target": ("c", "cuda", "none"),
        "--loops": FLAG,
        "--emit": ("c", "cuda", "none", GRADIENTS.stage),
        "--schedule": FLAG,
        "--verbose": FLAG,
        "--why": FLAG,
        "--ascii": FLAG,
        "--width": ("40", "0", "many"),
        "--html": ("page.html", "x.npy", "no/page.html"),
        "--json": FLAG,
    },
    "run": {
        "--def": ("net", "main"),
        "--shape": ("x=3", "x=4|3"),
        "--config": ("n=2",),
        "--load": ("old.npz", "none.npz", "x.npy"),
        "--seed": ("1", "-1"),
        "-o": ("out.npy", "out.npz", "out.txt", "out.csv", "out.json", "-"),
        "--csv": FLAG,
        "--json": FLAG,
        "--precision": ("3", "-1"),
        "--all": FLAG,
        "--threads": ("2", "0"),
        "--target": TARGETS,
        "--emulate": FLAG,
    },
    "train": {
        "--def": ("step", "main"),
        "--data": ("d.npz", "x=x.npy", "none.npz"),
        "--epochs": ("2", "0"),
        "--batch": ("2", "9"),
        "--config": ("lr=0.1",),
        "--val": ("v.npz", "x=none.npy"),
        "--save": ("new.npz", "new.safetensors", "no/new.npz"),
        "--save-every": ("2", "0"),
        "--resume": ("old.npz", "d.npz", "none.npz"),
        "--seed": ("1",),
        "--no-shuffle": FLAG,
        "--log": ("log", "new.json"),
        "--curve": ("curve.svg", "no/curve.svg"),
        "--debug-nan": FLAG,
        "--threads": ("2", "0"),
        "--ranks": ("2", "0"),
        "--target": TARGETS,
        "--emulate": FLAG,
    },
    "build": {
        "--load": ("old.npz", "none.npz", "x.npy"),
        "--target": ("c", "cuda", "numpy"),
        "-o": ("out", "project", "x.npy"),
        "--def": ("net", "main"),
        "--shape": ("x=3", "x=4|3"),
        "--prefix": ("none", "my", "1"),
        "--threads": ("1", "2"),
        "--wheel": ("my==1", "my"),
        "--config": ("n=2",),
    },
    "check": {
        "--json": FLAG,
        "--def": ("main",),
        "--target": ("c", "cuda"),
        "--shape": ("x=8|3", "3"),
        "--config": ("n=2",),
    },
    "test": {
        "--json": FLAG,
        "--def": ("main",),
        "--update": FLAG,
        "--target": TARGETS,
        "--emulate": FLAG,
    },
    "fmt": {"--check": FLAG, "--diff": FLAG},
    "grad": {
        "--def": ("main",),
        "--shape": ("3x4", "."),
        "--wrt": ("x", "in0"),
        "--values": FLAG,
        "--check": FLAG,
        "--emit": ("shapes", "loops", "c", "cuda", *stages_of(MACHINES["c"])),
        "--json": FLAG,
    },
    "graph": {
        "--def": ("main", "net"),
        "--shape": ("3x4", "x=4|3", "."),
        "--config": ("n=2",),
        "--target": ("c", "cuda", "none"),
        "--emit": ("graph", "shapes", "schedule", "loops"),
        "--format": ("text", "svg", "mermaid", "dot", "png"),
        "-o": ("flow.svg", "flow.mmd", "flow.dot", "flow.txt", "flow.png", "x.npy"),
        "--ascii": FLAG,
        "--json": FLAG,
    },
    "diff": {
        "--def": ("main", "net"),
        "--shape": ("3x4", "x=4|3", "."),
        "--config": ("n=2",),
        "--target": ("c", "cuda", "none"),
        "--to-def": ("main", "net"),
        "--to-shape": ("4x5", "x=5|3", "."),
        "--to-target": ("cuda", "none"),
        "--unscheduled": FLAG,
        "--schedule": FLAG,
        "--emit": ("formula", "work", "graph", "loops", "c", "cuda", "none"),
        "--json": FLAG,
    },
    "tune": {
        "--def": ("main",),
        "--shape": ("3x4", "."),
        "--target": ("c", "cuda"),
        "--emulate": FLAG,
        "--time": ("1", "0"),
        "--write": FLAG,
        "--json": FLAG,
    },
    "lsp": {},
    "learn": {"--list": FLAG},
    "repl": {},
    "doctor": {"--json": FLAG},
    "completion": {},
}
"""Every option of every command, with the values that are tried; a test compares it with the options that there are."""
TOGETHER: dict[str, Sequence[Sequence[str]]] = {
    "explain": (
        ["--json", "--verbose"],
        ["--loops", "--ascii"],
        ["--html", "page.html", "--target", "cuda"],
        *(
            ["--target", target, *more]
            for target, machine in MACHINES.items()
            for more in (
                *(["--emit", stage] for stage in (*stages_of(machine), target)),
                ["--schedule"],
                ["--verbose"],
                ["--loops"],
                ["--json"],
            )
        ),
    ),
    "run": (
        ["--target", "cuda", "--emulate"],
        ["--def", "net", "--shape", "x=4|3", "--load", "old.npz"],
        ["--def", "net", "--shape", "x=4|3", "--load", "old.npz", "-o", "out.npz"],
    ),
    "train": (
        ["--target", "cuda", "--emulate"],
        ["--resume", "old.npz", "--epochs", "2", "--log", "log", "--curve", "curve.svg"],
        ["--val", "v.npz", "--save", "new.npz", "--log", "new", "--curve", "new.svg"],
        ["--debug-nan", "--config", "lr=1e30"],
    ),
    "build": (
        ["--target", "cuda", "--prefix", "my"],
        ["--def", "net", "--shape", "x=4|3"],
        ["--def", "net", "--shape", "x=4|3", "--load", "old.npz"],
    ),
    "test": (["--target", "cuda", "--emulate"], ["--update", "--json"]),
    "graph": (["--def", "net", "--shape", "x=4|3", "--format", "svg"], ["--target", "cuda"]),
    "diff": (
        ["--unscheduled", "--emit", "loops"],
        ["--def", "net", "--shape", "x=4|3", "--to-shape", "x=5|3"],
        ["--unscheduled", "--to-target", "cuda", "--json"],
    ),
    "grad": (["--json", "--values"], ["--check", "--wrt", "in0"]),
}
"""Options that mean something together alone."""


def given(sample: Path) -> list[str]:
    """The arrays that a sample names as its inputs."""
    if not sample.is_absolute():
        return ["x.npy"]
    return re.findall(r"^# in \w+ = (.*)$", sample.read_text("utf-8"), re.MULTILINE)


def commands(sample: Path) -> list[list[str]]:
    """The commands on a sample: each with no option, with each option alone, and with some pairs of them."""
    operands = {
        "run": [str(sample), *given(sample)],
        "train": [str(sample), "--data", "d.npz", "--batch", "4"],
        "completion": [("bash", "zsh", "fish", "none")[SAMPLES.index(sample) % 4]],
        "doctor": [],
    }
    words = [["run", str(sample), *given(sample)[1:]]]
    for command, options in OPTIONS.items():
        begun = [command, *operands.get(command, [str(sample)])]
        words.append(begun)
        for option, values in {**options, **EVERYWHERE}.items():
            again = option in begun
            rest = begun[: begun.index(option)] if again else begun
            words += [[*rest, option, *([value] if value else [])] for value in values]
        words += [[*begun, *together] for together in TOGETHER.get(command, ())]
    return words


def chosen(sample: Path, count: int) -> list[list[str]]:
    """So many of the commands on a sample, spread over all of them; those of other samples are other ones."""
    every, number = commands(sample), SAMPLES.index(sample)
    step = max(1, len(every) // count)
    return every[number % step :: step][:count]


def failed(words: Sequence[str]) -> str | None:
    """What an internal error of a command says; None where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(originals(), folder, dirs_exist_ok=True)
        if words[0] == "test" and "--update" in words:
            words = [
                shutil.copy(word, folder) if word.endswith(".i") and "/" in word else word
                for word in words
            ]
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
