"""Train the samples of this folder with `i train`, and measure what they have learned on data that was held back.

    python samples/training/train.py [moons] [digits] [digits_conv]

Writes data, checkpoints and curves to `build/training`. Exit status: 0 all is well; 1 less is learned than is promised.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ilang import load

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "training"

Floats = NDArray[np.float32]


class Data(NamedTuple):
    """Examples `x [n, ...]`, what is meant by them `t [n, ...]`, and as much that is held back."""

    x: Floats
    t: Floats
    held_x: Floats
    held_t: Floats


class Sample(NamedTuple):
    """A sample: what is trained, how, and the share of held-back examples that it gets right at least."""

    model: str
    options: tuple[str, ...]
    promised: float


SAMPLES = {
    "moons": Sample("moons", ("--epochs", "40"), 0.98),
    "digits": Sample("digits", ("--epochs", "40"), 0.97),
    "digits_conv": Sample("digits", ("--epochs", "20"), 0.98),
}


def moons(count: int = 2000, seed: int = 7) -> Data:
    """Points on two half circles, with some noise, and on which they are."""
    draw = np.random.default_rng(seed)
    which = np.arange(count) % 2
    angle = draw.uniform(0, np.pi, count)
    across = np.where(which, 1 - np.cos(angle), np.cos(angle))
    up = np.where(which, 0.5 - np.sin(angle), np.sin(angle))
    x = (np.stack([across, up], axis=1) + draw.normal(0, 0.1, (count, 2))).astype(np.float32)
    t = which.astype(np.float32)[:, None]
    half = count // 2
    return Data(x[:half], t[:half], x[half:], t[half:])


def digits() -> Data:
    """1,347 images of digits and each moved by half a pixel to all sides, `x [n, 64]`, `t [n, 10]`; 450 held back."""
    place = HERE.parent / "digits" / "train.py"
    specification = importlib.util.spec_from_file_location("digits_train", place)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["digits_train"] = module
    specification.loader.exec_module(module)
    split, one = module.load_split(), np.eye(10, dtype=np.float32)
    images = np.pad(split.x.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    sides = ((0, 1), (2, 1), (1, 0), (1, 2))
    moved = [(split.x.reshape(-1, 8, 8) + images[:, y : y + 8, x : x + 8]) / 2 for y, x in sides]
    x = np.concatenate([split.x, *(each.reshape(-1, 64) for each in moved)])
    return Data(x, np.tile(one[split.y], (5, 1)), split.held_x, one[split.held_y])


def data_of(name: str) -> Data:
    """The data of a sample."""
    return moons() if name == "moons" else digits()


def trained(name: str, data: Data, folder: Path, options: Sequence[str]) -> Path:
    """Train a sample by `i train`; the checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{name}.npz", x=data.x, t=data.t)
    np.savez(folder / f"{name}_held_back.npz", x=data.held_x, t=data.held_t)
    command = ["train", os.path.relpath(HERE / f"{name}.i", folder), "--data", f"{name}.npz"]
    command += ["--val", f"{name}_held_back.npz", "--curve", f"{name}.svg", *options]
    print(f"\n$ i {shlex.join(command)}", flush=True)
    subprocess.run([sys.executable, "-m", "ilang", *command], cwd=folder, check=True)
    return folder / f"{name}.safetensors"


def right(name: str, data: Data, checkpoint: Path) -> float:
    """The share of held-back examples that a trained sample gets right."""
    axes = ",".join(map(str, data.held_x.shape[1:]))
    shapes = {"x": f"{len(data.held_x)}|{axes}"}
    session = load(HERE / f"{name}.i").session(SAMPLES[name].model, shapes)
    session.load(checkpoint)
    answer = session(data.held_x)
    if answer.shape[1] == 1:
        return float(np.mean((answer > 0.5) == (data.held_t > 0.5)))
    return float(np.mean(answer.argmax(axis=1) == data.held_t.argmax(axis=1)))


def boundary(checkpoint: Path, columns: int = 64, rows: int = 20) -> str:
    """The plane as the moons' model sees it: `#` and `.` on either side, `o` where it is hardly sure."""
    across, up = np.meshgrid(np.linspace(-1.5, 2.5, columns), np.linspace(1.25, -0.75, rows))
    points = np.stack([across.ravel(), up.ravel()], axis=1).astype(np.float32)
    session = load(HERE / "moons.i").session("moons", {"x": f"{len(points)}|2"})
    session.load(checkpoint)
    sure = session(points).reshape(rows, columns)
    signs = np.where(np.abs(sure - 0.5) < 0.35, "o", np.where(sure > 0.5, "#", "."))
    return "\n".join("".join(row) for row in signs)


def main(names: Sequence[str]) -> int:
    """Train samples one after the other."""
    status = 0
    for name in names or SAMPLES:
        if name not in SAMPLES:
            print(f"train: no sample {name}; there are {', '.join(SAMPLES)}", file=sys.stderr)
            return 2
        sample, data, began = SAMPLES[name], data_of(name), time.perf_counter()
        checkpoint = trained(name, data, BUILD, sample.options)
        share, seconds = right(name, data, checkpoint), time.perf_counter() - began
        if name == "moons":
            print(boundary(checkpoint))
        print(
            f"{name}: {share:.2%} of {len(data.held_x)} held-back examples, after {seconds:.1f} s"
        )
        if share < sample.promised:
            print(f"train: {sample.promised:.0%} were promised", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
