"""Definitions, inputs and axes with the names of what our own text of C and CUDA has: projects pass their tests."""

from __future__ import annotations

import functools
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ilang.codegen.targets import c, c_library, cuda, cuda_library, library
from ilang.codegen.targets.library import PREFIX
from ilang.core import pipeline
from ilang.core.machine import CPU, GPU
from ilang.core.notation.reader import RESERVED
from ilang.icli.main import main

TEXTS = (
    "ik*kj~ijk >> +ijk~ij",
    "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij",
    "ij~ji",
    "+(i+u:3)j~ij",
    "bt@vd~btd",
)
DRAWN = 30
"""Words of a batch."""
NVCC = f"NVCC={sys.executable} -m ilang.codegen.emulator.nvcc"
PREFIXES = ("mm", "none", "il", "n", "test", "start")


@functools.cache
def words() -> tuple[str, ...]:
    """Each word of our headers, and of some programs in C and CUDA, that may be a name in a text."""
    texts = [part.text for part in (*c_library.parts(CPU), *cuda_library.parts())]
    for machine, emit in ((CPU, c.emit), (GPU, cuda.emit)):
        for text in TEXTS:
            graph = pipeline.graph_of(pipeline.text_component(text), "emitted")
            texts.append(emit(pipeline.lower(pipeline.infer(graph), machine)))
    found = {
        word
        for text in texts
        for word in re.findall(r"\b[A-Za-z]\w*\b", library.COMMENT.sub(" ", text), re.ASCII)
    }
    return tuple(
        sorted(word for word in found - RESERVED if not word.startswith((PREFIX, "emitted")))
    )


def program(draw: random.Random) -> Iterator[str]:
    """Definitions of some words, with inputs and axes of some; none is a prefix, which parts of others begin with."""
    for name in draw.sample([word for word in words() if word not in PREFIXES], DRAWN):
        first, second, axis = draw.sample(words(), 3)
        yield f"{name}({first}[{axis}], {second}[{axis}]) = i*i~i >> +i~."


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.batches(2)
@pytest.mark.parametrize("target", ["c", "cuda"])
def test_words_of_our_own_text_are_names(target: str, batch: int, tmp_path: Path) -> None:
    draw = random.Random(f"{target} {batch}")
    text = "\n".join(program(draw)) + "\n"
    file, out = tmp_path / "mm.i", tmp_path / "out"
    file.write_text(text, "utf-8")
    prefix = draw.choice(PREFIXES)
    command = ["build", str(file), "--prefix", prefix, "--target", target, "-o", str(out)]
    assert main(command) == 0, text
    strict = ["CFLAGS=-O0 -std=c99 -Wall -Wextra -Wpedantic -Werror"] if target == "c" else [NVCC]
    done = subprocess.run(
        ["make", "test", *strict],
        cwd=out,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, text + done.stdout[-2000:] + done.stderr[-3000:]
