"""Projects that several ranks run together through MPI, compared with one session of Python on the whole batch."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import load
from ilang.codegen.project.render import write_functions
from ilang.codegen.project.sessions import exported, solved
from ilang.codegen.session.model import rows_of
from ilang.core.machine import CPU
from ilang.core.record import replace

pytestmark = [
    pytest.mark.deep,
    pytest.mark.usefixtures("real_compiler"),
    pytest.mark.skipif(shutil.which("make") is None, reason="needs make"),
]

MODEL = """
row(n: i64[b], t[v,d]) = b@vd~bd
cd update(p; lr) { p =- lr *. p.grad }
cd step(n: i64[b|], t; lr = 0.1) {
  d = (tanh(row(n, "table" (7, 4))) *+ "b,d; d,k => b,k" "v" (4, 2)) - t
  loss = d *. d ++ "...|... => 0"
  backprop(loss)
  for p in params(loss) {
    p.grad =+ p.grad.merge
    p.grad =/ 4 * ranks ~logic:"."
    update(p; lr)
  }
  "whole" =: loss + loss.merge
  return whole
}
"""
LOSS = '''loss = d *. d ++ "...|... => 0"'''
CUT = MODEL.replace(
    LOSS,
    """e = t *+ "b,k; k => b" "u" 2
  loss = (e *. e ++ "...|... => 0") + (d *. d ++ "...|... => 0")""",
)
"""The gradient of u needs no look-up: in a bucket of its own its sum goes on while the others are computed."""
LARGE = 1 << 30
RUNS = 4
MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
enum { ROWS = 4, RUNS = 4 };
int main(int count, char **words)
{
    int rank, ranks;
    model_begin(&rank, &ranks);
    int64_t n[ROWS];
    float t[2 * ROWS], loss;
    FILE *file = fopen("data", "rb");
    if (file == NULL || fseek(file, rank * (long)(sizeof n + sizeof t), SEEK_SET) != 0) return 1;
    if (fread(n, sizeof n, 1, file) != 1 || fread(t, sizeof t, 1, file) != 1) return 1;
    fclose(file);
    step model;
    int status = step_init(&model, malloc(step_bytes()), 4);
    for (int run = 0; run < RUNS && status == 0; ++run) {
        if (count > 1 && run == 2 && rank == ranks - 1) n[1] = atol(words[1]);
        status = step_run(&model, n, t, &loss);
        if (status == 0 && rank == 0) printf("%.9g\n", (double)loss);
    }
    char path[32];
    snprintf(path, sizeof path, "%d.safetensors", rank);
    if (status != 8 && status != 0) fprintf(stderr, "rank %d returned %d\n", rank, status);
    if (step_save(&model, path) != 0) return 1;
    model_end();
    return status != 0;
}
"""


def with_mpi(here: Path) -> str:
    """The places of programs where MPI's are found; a folder is to try them in."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    if shutil.which("mpicc", path=path) is None or shutil.which("mpirun", path=path) is None:
        pytest.skip("ranks need MPI: pip install 'ilang[mpi]'")
    tried = run(Path(shutil.which("true") or "true"), 2, here)
    if tried.returncode:
        pytest.skip(f"mpirun cannot start processes here: {tried.stderr[-300:]}")
    return path


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """A program that ranks run, from a project that passes its test, by how many bytes are summed at once."""
    path = with_mpi(tmp_path_factory.mktemp("tried"))

    @functools.cache
    def program(bucket_bytes: int) -> Path:
        folder = tmp_path_factory.mktemp("ranks")
        (folder / "model.i").write_text(CUT)
        rows = {"n": rows_of("n", "4|"), "t": rows_of("t", "4,2")}
        one = solved(load(folder / "model.i").model, "step", rows, {})
        _, (built,) = exported([one], replace(CPU, bucket_bytes=bucket_bytes))
        write_functions(built.functions(), folder, CUT, "model", [built])
        (folder / "main.c").write_text(MAIN)
        strict = "CFLAGS=-O1 -Wall -Wextra -Werror"
        for command in (
            ["make", "MPI=1", "test", strict],
            ["mpicc", "-O1", "-DWITH_MPI", "main.c", "libmodel.a", "-o", "main", "-lm"],
        ):
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
        return folder / "main"

    return program


@pytest.fixture(params=[LARGE, 1], ids=["at once", "by buckets"])
def program(request: pytest.FixtureRequest, programs: Callable[[int], Path]) -> Path:
    """One that sums everything at once, and one that sums every gradient by itself."""
    return programs(request.param)


def run(program: Path, count: int, here: Path, *words: str) -> Any:
    mpirun = shutil.which("mpirun", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert mpirun is not None
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return subprocess.run(
        [mpirun, *as_root, "--oversubscribe", "-n", str(count), str(program), *words],
        cwd=here, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def given(count: int, here: Path) -> tuple[Any, Any]:
    """The whole batch, which a file has rank by rank."""
    draw = np.random.default_rng(2)
    n = draw.integers(0, 7, 4 * count)
    t = draw.standard_normal((4 * count, 2)).astype(np.float32)
    shares = [n[4 * r :][:4].tobytes() + t[4 * r :][:4].tobytes() for r in range(count)]
    (here / "data").write_bytes(b"".join(shares))
    return n, t


def trains_as_one_session_does(program: Path, count: int, here: Path) -> None:
    """Ranks give the losses and parameters of a session that has the whole batch, and all of them the same bits."""
    n, t = given(count, here)
    done = run(program, count, here)
    assert done.returncode == 0, done.stderr
    whole = load(program.with_name("model.i")).session(
        "step", {"n": f"{4 * count}|", "t": f"{4 * count},2"}, seed=4
    )
    whole.config["lr"] = 0.1 / count
    losses = [float(whole(n=n, t=t)[0]) for _ in range(RUNS)]
    np.testing.assert_allclose([float(line) for line in done.stdout.split()], losses, 1e-5)
    first, *others = [(here / f"{r}.safetensors").read_bytes() for r in range(count)]
    parameters = {path: array.copy() for path, array in whole.parameters.items()}
    whole.load(here / "0.safetensors")
    for path, array in parameters.items():
        np.testing.assert_allclose(whole.parameters[path], array, 1e-4, 1e-6)
    states = {path: whole.parameters[path].tobytes() for path in parameters}
    for number, other in enumerate(others, 1):
        whole.load(here / f"{number}.safetensors")
        assert states == {path: whole.parameters[path].tobytes() for path in parameters}
        assert len(other) == len(first)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_ranks_in_c_train_as_one_session_does(count: int, program: Path, tmp_path: Path) -> None:
    trains_as_one_session_does(program, count, tmp_path)


def fails_on_all_and_changes_nothing(program: Path, here: Path) -> None:
    """Where one rank fails in its third run, it alone says so, and both have what the second run left."""
    given(2, here)
    done = run(program, 2, here, "99")
    assert done.returncode != 0
    assert [line for line in done.stderr.splitlines() if "returned" in line] == [
        "rank 1 returned 4"
    ]
    assert len(done.stdout.split()) == 2
    session = load(program.with_name("model.i")).session("step", {"n": "4|", "t": "4,2"})
    every = []
    for rank in range(2):
        assert session.load(here / f"{rank}.safetensors")["runs"] == "2"
        every.append({path: array.tobytes() for path, array in session.parameters.items()})
    assert every[0] == every[1]


def test_a_rank_that_fails_fails_all_and_changes_nothing(program: Path, tmp_path: Path) -> None:
    fails_on_all_and_changes_nothing(program, tmp_path)


@pytest.mark.parametrize("count", [2, 4])
def test_sums_that_go_on_give_the_same_bits(
    count: int, programs: Callable[[int], Path], tmp_path: Path
) -> None:
    given(count, tmp_path)
    files = []
    for bucket_bytes in (LARGE, 1):
        done = run(programs(bucket_bytes), count, tmp_path)
        assert done.returncode == 0, done.stderr
        every = [(tmp_path / f"{rank}.safetensors").read_bytes() for rank in range(count)]
        files.append((done.stdout, every))
    assert files[0] == files[1]
    text = programs(1).with_name("model.c").read_text()
    assert "begin_sum(&begun_sums[1]" in text
    assert "begin_sum(" not in programs(LARGE).with_name("model.c").read_text()
