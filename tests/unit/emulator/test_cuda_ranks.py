"""Ranks on emulated devices: projects that they run by NCCL and through the host, and the emulator's NCCL itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ilang.icli.main import main
from tests.unit.codegen.test_rank_projects import (
    MODEL,
    fails_on_all_and_changes_nothing,
    given,
    run,
    trains_as_one_session_does,
    with_mpi,
)
from tests.unit.emulator.conftest import HERE

pytestmark = pytest.mark.deep

NVCC = f"{sys.executable} -m ilang.codegen.emulator.nvcc"
MAIN = r"""
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
enum { ROWS = 4, RUNS = 4 };
#define TRY(call) do { const int error = (int)(call); if (error != 0) return error; } while (0)
static int train(int rank, int ranks, const char *wrong, const char *path)
{
    int64_t n[ROWS], *here_n;
    float t[2 * ROWS], *here_t, *out, loss;
    FILE *file = fopen("data", "rb");
    if (file == NULL || fseek(file, rank * (long)(sizeof n + sizeof t), SEEK_SET) != 0) return 1;
    if (fread(n, sizeof n, 1, file) != 1 || fread(t, sizeof t, 1, file) != 1) return 1;
    fclose(file);
    model_step model;
    cudaStream_t stream;
    void *memory;
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TRY(cudaMalloc(&memory, model_step_bytes()));
    TRY(cudaMalloc(&here_n, sizeof n));
    TRY(cudaMalloc(&here_t, sizeof t));
    TRY(cudaMalloc(&out, sizeof loss));
    TRY(cudaMemcpy(here_t, t, sizeof t, cudaMemcpyHostToDevice));
    TRY(model_step_init(&model, memory, 4, stream));
    int status = 0;
    for (int run = 0; run < RUNS && status == 0; ++run) {
        if (wrong != NULL && run == 2 && rank == ranks - 1) n[1] = atol(wrong);
        if (n[1] < 0) _Exit(3);
        TRY(cudaMemcpy(here_n, n, sizeof n, cudaMemcpyHostToDevice));
        if (run % 2 == 1) {
            status = model_step_run_host(&model, n, t, &loss);
        } else {
            status = model_step_run(&model, here_n, here_t, out, stream);
            TRY(cudaStreamSynchronize(stream));
            TRY(cudaMemcpy(&loss, out, status == 0 ? sizeof loss : 0, cudaMemcpyDeviceToHost));
        }
        if (status == 0 && rank == 0) printf("%.9g\n", (double)loss);
    }
    if (status != 8 && status != 0) fprintf(stderr, "rank %d returned %d\n", rank, status);
    TRY(model_step_save(&model, path, stream));
    return status;
}
int main(int count, char **words)
{
    int rank, ranks;
    char path[32];
    if (model_begin(&rank, &ranks) != 0) return 1;
    snprintf(path, sizeof path, "%d.safetensors", rank);
    const int status = train(rank, ranks, count > 1 ? words[1] : NULL, path);
    model_end();
    return status != 0;
}
"""
RULE = """
main: main.cu libmodel.a
	$(NVCC) $(FLAGS) main.cu libmodel.a -o $@ $(LDLIBS_$(NCCL))
"""


def built(folder: Path, path: str, *words: str, checked: bool) -> None:
    """Run make in a project, whose compiler is the emulator's."""
    environment = {**os.environ, "PATH": path, "I_EMULATOR_CHECK": str(int(checked))}
    done = subprocess.run(
        ["make", f"NVCC={NVCC}", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(
    scope="module",
    params=[("NCCL=1", False), ("NCCL=1", True), ("MPI=1", True)],
    ids=["nccl", "nccl-checked", "host-checked"],
)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that ranks run, from a project that passes its test."""
    if shutil.which("make") is None or shutil.which("g++") is None:
        pytest.skip("needs make and g++")
    path = with_mpi(tmp_path_factory.mktemp("tried"))
    folder = tmp_path_factory.mktemp("ranks")
    switch, checked = request.param
    (folder / "model.i").write_text(MODEL)
    words = ["--def", "step", "--shape", "n=4|", "--shape", "t=4,2", "--target", "cuda"]
    assert main(["build", str(folder / "model.i"), *words, "-o", str(folder)]) == 0
    (folder / "main.cu").write_text(MAIN)
    with (folder / "Makefile").open("a") as file:
        file.write(RULE)
    tested = ["test", "example"] if checked else []
    built(folder, path, switch, *tested, "main", checked=checked)
    return folder / "main"


@pytest.mark.parametrize("count", [1, 2, 4])
def test_ranks_in_cuda_train_as_one_session_does(
    count: int, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever waits for a stream waits for enough: work of streams is put off, and runs in a random order."""
    monkeypatch.setenv("I_EMULATOR_STREAMS", str(count))
    trains_as_one_session_does(program, count, tmp_path)


def test_a_rank_that_fails_fails_all_and_changes_nothing(program: Path, tmp_path: Path) -> None:
    fails_on_all_and_changes_nothing(program, tmp_path)


def test_a_rank_that_ends_without_a_word_ends_all(program: Path, tmp_path: Path) -> None:
    given(2, tmp_path)
    done = run(program, 2, tmp_path, "-1")
    assert done.returncode == 3
    assert "rank" not in "".join(done.stdout)


@pytest.fixture(scope="module")
def collectives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of three processes that meet by the emulator's NCCL."""
    if shutil.which("g++") is None:
        pytest.skip("the emulator needs g++, which is not here")
    program = tmp_path_factory.mktemp("collectives") / "program"
    done = subprocess.run(
        [*NVCC.split(), str(HERE / "collectives.cu"), "-lnccl", "-o", str(program)],
        env={**os.environ, "I_EMULATOR_CHECK": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize(
    ("way", "status", "says"),
    [
        ("agree", 0, ""),
        ("differ", 9, "broken collective"),
        ("leave", 9, "a rank has gone"),
        ("past", 9, "invalid copy"),
        ("unwritten", 9, "uninitialised copy"),
    ],
)
def test_collectives(way: str, status: int, says: str, collectives: Path) -> None:
    done = subprocess.run(
        [str(collectives), way], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert done.stdout == ("right\n" if status == 0 else "")
    assert says in done.stderr
    assert (done.stderr == "") == (status == 0)
