"""Commands under attack: ``python tests/property/output_attacks.py --seed 7 --count 100``.

Each attack is drawn from its seed: a command whose outputs are aimed at its inputs, at each other, at files of others,
by other paths and by links, at folders and at what cannot be written; ``--interrupted`` sends it Ctrl-C as well. A file
is lost by none of them: it is as it was, or another file of its own kind, which the command was asked to write.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import io
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.unit.icli.front import ENTRY, environment, i  # noqa: E402 - found through the line above

MODEL = """
# a step of training
op net(x) = "w" *   x + "b" 2 + file("bias.npy")

# its comment
cd step(x, t; lr = 0.01) {
  d = net(x) - t
  loss = d *. d ++ "...|... => 0"
  backprop(loss)
  for p in params(loss) { p =- lr *. p.grad }
  return loss
}
"""
SUMS = "# a sum\n# in x = [[1, 2], [3, 4]]\n# out = [0, 7]\nf(x)   = (+ij~i)(x)\n"
Contents = dict[str, tuple[object, ...]]
UNHEARD = re.compile(r"^Exception ignored in: .*\n(?:.*\n)*?KeyboardInterrupt: *$", re.MULTILINE)
"""A Ctrl-C that Python does not hand on: it came in what it calls as an object goes."""
NOT_BEGUN = re.compile(r"<frozen site>|File \"<string>\", line 1, in <module>\n(?!.*in main$)")
"""Words of a Python that had not called the command yet."""
SHAPES = ("--def", "net", "--shape", "x=4|3")


@functools.cache
def originals() -> Path:
    """A folder with files of every kind that commands read and write."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    draw = np.random.default_rng(0)
    x, t = draw.standard_normal((8, 3), np.float32), draw.standard_normal((8, 2), np.float32)
    for name in ("d.npz", "v.npz"):
        np.savez(folder / name, x=x, t=t)
    np.save(folder / "x.npy", x[:4])
    np.save(folder / "bias.npy", np.ones((4, 2), np.float32))
    texts = {
        "m.i": MODEL,
        "s.i": SUMS,
        "g.i": "g = -i~i\n",
        "note.txt": "mine",
        "Makefile": "all:\n",
    }
    for name, text in {**texts, "drawing.svg": "<svg><!-- mine --></svg>", "empty": ""}.items():
        (folder / name).write_text(text, "utf-8")
    header = b'{"__metadata__":{"format":"pt"}}'
    (folder / "foreign.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    train = ("train", "m.i", "--data", "d.npz", "--batch", "4")
    done = i(*train, "--save", "old.npz", "--log", "log", "--curve", "curve.svg", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert i(*train, "--save", "old.safetensors", cwd=folder).returncode == 0
    assert i("build", "g.i", "-o", "project", cwd=folder).returncode == 0
    assert i("build", "g.i", "-o", "edited", cwd=folder).returncode == 0
    with (folder / "edited" / "g.c").open("a", encoding="utf-8") as file:
        file.write("/* mine */\n")
    return folder


def prepare(folder: Path) -> None:
    """These files, links to them, folders, and what is neither."""
    shutil.copytree(originals(), folder, dirs_exist_ok=True)
    (folder / "some").mkdir()
    (folder / "some" / "m.i").write_text("mine = +ij~i\n", "utf-8")
    (folder / "closed").mkdir(mode=0o555)
    (folder / "nowhere").symlink_to("missing/file")
    os.mkfifo(folder / "pipe")
    for name in ("m.i", "s.i", "d.npz", "x.npy", "old.npz", "log", "curve.svg", "note.txt"):
        (folder / f"soft_{name}").symlink_to(name)
        os.link(folder / name, folder / f"hard_{name}")
    (folder / "soft_project").symlink_to("project")


def contents(folder: Path) -> Contents:
    """All that stands in a folder, by path."""
    found: Contents = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        kind = stat.S_IFMT(mode)
        name = str(path.relative_to(folder))
        if stat.S_ISLNK(mode):
            found[name] = kind, os.readlink(path)  # noqa: PTH115 - as it is written
        else:
            found[name] = kind, path.read_bytes() if stat.S_ISREG(mode) else b""
    return found


def kind_of(data: object) -> str:
    """The kind of a file, told by its content alone."""
    assert isinstance(data, bytes)
    if not data:
        return "empty"
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
        return "checkpoint" if "__metadata__.npy" in names else "arrays"
    if data.startswith(b"\x93NUMPY"):
        np.load(io.BytesIO(data))
        return "array"
    if b'"definition"' in data[:4096]:
        length = int.from_bytes(data[:8], "little")
        ends = [
            e["data_offsets"][1] for k, e in json.loads(data[8 : 8 + length]).items() if k[0] != "_"
        ]
        assert len(data) == 8 + length + max(ends), "a checkpoint that is not whole"
        return "checkpoint"
    if data.startswith((b'{"step"', b'{"epoch"')):
        return "log"
    if data.startswith(b"<svg") and b"mine" not in data:
        return "curve"
    return "project" if b"i build" in data and b"mine" not in data else "text"


class Attack:
    """One command, and what it may write."""

    def __init__(self, draw: random.Random, folder: Path) -> None:
        """Draw the command."""
        self.draw, self.folder = draw, folder
        self.text, self.rewritten = "", ""
        self.places = sorted(
            {*contents(folder), ".", "new.npz", "new", "new.npy", "new.safetensors"}
        )
        choices: list[Callable[[], list[str]]] = [self.train, self.train, self.run, self.run]
        self.words = draw.choice([*choices, self.build, self.layout, self.update, self.repl])()

    def place(self, *endings: str) -> str:
        """A place in or out of the folder, in some spelling; often one of an ending."""
        draw = self.draw
        name = draw.choice([each for each in self.places if each.endswith(endings)] or self.places)
        name = name if draw.randrange(4) else draw.choice(self.places)
        spellings = ["{0}"] * 4 + [
            "./{0}",
            "{1}/{0}",
            "../{2}/{0}",
            "some/../{0}",
            "{0}/more",
            "no/{0}",
        ]
        spelled = draw.choice(spellings).format(name, self.folder, self.folder.name)
        others = [
            "",
            "/dev/null",
            "/dev/full",
            "/proc/x.npz",
            "note.txt/x.npy",
            "\u00fc\n.npz",
            "closed/x.npz",
        ]
        return spelled if draw.randrange(8) else draw.choice(others)

    def train(self) -> list[str]:
        """`i train` with some outputs, or a resumed one."""
        words = [
            "train",
            self.draw.choice(["m.i", "soft_m.i", "hard_m.i"]),
            "--data",
            "d.npz",
            "--batch",
            "4",
        ]
        for option, endings in (
            ("--save", (".npz", ".safetensors")),
            ("--log", ("log",)),
            ("--curve", (".svg",)),
        ):
            place = self.place(*endings)
            if self.draw.randrange(2) and not (option == "--log" and "pipe" in place):
                words += [option, place]
        if not self.draw.randrange(4):
            words += [
                "--resume",
                self.draw.choice(["old.npz", "old.safetensors", "soft_old.npz"]),
                "--epochs",
                "2",
            ]
        return words

    def run(self) -> list[str]:
        """`i run` with a place for its results."""
        programs = (
            ["+ij~i", "x.npy"],
            ["+ij~i & >ij~i", "x.npy"],
            ["+ij~i", "d.npz:x"],
            ["s.i", "x.npy"],
        )
        net = ["m.i", "x.npy", *SHAPES, "--load", "old.npz"]
        return ["run", *self.draw.choice([*programs, net]), "-o", self.place(".npy", ".npz")]

    def build(self) -> list[str]:
        """`i build` into some folder."""
        folders = [
            "project",
            "edited",
            "soft_project",
            "some",
            ".",
            "closed",
            "closed/new",
            "fresh/er",
        ]
        place = self.draw.choice(folders) if self.draw.randrange(3) else self.place()
        return ["build", self.draw.choice(["g.i", "s.i", "m.i"]), "-o", place]

    def layout(self) -> list[str]:
        """`i fmt` of files and folders."""
        self.rewritten = self.place(".i")
        return ["fmt", self.rewritten]

    def update(self) -> list[str]:
        """`i test --update` of files and folders."""
        self.rewritten = self.place(".i")
        return ["test", "--update", self.rewritten]

    def repl(self) -> list[str]:
        """`:save` in the REPL."""
        place = self.place(".i").replace("\n", " ")
        self.text = f"g = -i~i\nf(x) = (+ij~i)(x)\n:save {place}\n"
        return ["repl", *self.draw.choice([[], ["g.i"]])]

    def outputs(self) -> set[str]:
        """The files, as the file system has them, that the command was asked to write."""
        options = ("--save", "--log", "--curve", "-o", "--resume")
        words = [self.words[n + 1] for n, word in enumerate(self.words[:-1]) if word in options]
        words += [self.rewritten, self.text.partition(":save ")[2].rstrip("\n")]
        return {os.path.realpath(self.folder / each) for each in words if each and "\0" not in each}

    def complaints(self, before: Contents, after: Contents) -> list[str]:
        """What is lost or left over."""
        wrong, outputs = [], self.outputs()
        grown = {n for n in before if n.endswith("log")} if "--log" in self.words else set()
        rewrites = self.words[0] in ("fmt", "test", "repl")
        for name, was in before.items():
            now, real = after.get(name), os.path.realpath(self.folder / name)
            if now == was:
                continue
            if now is None or now[0] != was[0]:
                wrong.append(f"{name} is gone")
            elif name not in grown and not any(
                real == each or real.startswith(f"{each}/") for each in outputs
            ):
                wrong.append(f"{name} changed, and is no output")
            elif kind_of(was[1]) not in ("empty", kind_of(now[1])):
                wrong.append(f"{name} was {kind_of(was[1])}, and is {kind_of(now[1])}")
            elif kind_of(was[1]) == "text" and not rewrites:
                wrong.append(f"{name} is of its user, and was replaced")
        for name in after.keys() - before.keys():
            real = os.path.realpath(self.folder / name)
            usual = (
                name in ("m.safetensors", "soft_m.safetensors", "hard_m.safetensors")
                and self.words[0] == "train"
            )
            if not usual and not any(
                e == real or real.startswith(f"{e}/") or e.startswith(f"{real}/") for e in outputs
            ):
                wrong.append(f"{name} is left over")
            elif after[name][0] == stat.S_IFREG:
                kind_of(after[name][1])
        return wrong


def attack(seed: int, interrupted: bool) -> str | None:
    """Attack once; what is wrong, or None."""
    draw = random.Random(f"{seed} {interrupted}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        prepare(folder)
        attacked, before = Attack(draw, folder), contents(folder)
        status, told = _signalled(attacked, draw) if interrupted else _run(attacked)
        after = contents(folder)
        try:
            wrong = attacked.complaints(before, after)
        except Exception as failure:
            wrong = [f"a file is broken: {failure}"]
    early = (-signal.SIGINT,) if interrupted else ()  # before Python listens
    if status not in (0, 1, 2, 3, 130, *early) or "Traceback" in told:
        wrong.append(f"status {status}")
    if status in (1, 2, 3) and "error[" in told and "help:" not in told:
        wrong.append("no help")
    return (
        None
        if not wrong
        else f"i {' '.join(attacked.words)} {attacked.text!r}: {'; '.join(wrong)}\n{told[-800:]}"
    )


def _run(attacked: Attack) -> tuple[int, str]:
    done = i(*attacked.words, cwd=attacked.folder, input=attacked.text)
    return done.returncode, done.stdout + done.stderr


def _signalled(attacked: Attack, draw: random.Random) -> tuple[int, str]:
    """The status and the words of a command that gets Ctrl-C after a random time."""
    words = [sys.executable, "-c", ENTRY, *attacked.words]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(words, cwd=attacked.folder, env=environment(), text=True, **pipes)
    assert process.stdin is not None
    process.stdin.write(attacked.text)
    process.stdin.close()
    process.stdin = None
    time.sleep(draw.uniform(0.02, 1.5))
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=300)
    if NOT_BEGUN.search(told):
        return 130, out
    return process.returncode, out + UNHEARD.sub("", told)


def main() -> None:
    """Attack with some seeds; print what goes wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=100, help="attacks")
    parser.add_argument("--interrupted", action="store_true", help="send Ctrl-C as well")
    asked = parser.parse_args()
    failures = 0
    for seed in range(asked.seed, asked.seed + asked.count):
        wrong = attack(seed, asked.interrupted)
        if wrong is not None:
            failures += 1
            print(f"seed {seed}: {wrong}", flush=True)
    print(f"{failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
