"""Benchmarks at tiny sizes: every program computes the right thing, everyone is timed, tables are written."""

import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from bench import (
    anchors_plugin,
    calls,
    gpu,
    gpu_micro,
    gpu_profile,
    gpu_rows,
    gpu_times,
    machine,
    measure,
    peers,
    references,
    report,
    steps,
    suites,
    workloads,
)
from bench.__main__ import main
from bench.limits import Limits
from bench.workloads import FULL, QUICK, Array, Workload
from ilang.codegen.compile import toolchain
from ilang.codegen.components.library import library
from ilang.core.notation.files.layout import format_module
from ilang.core.notation.files.module import parse_module
from ilang.core.pipeline import module_graph
from ilang.core.source import Source
from tests import unoptimised

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("compiled_quickly")


SMALL = Workload("sums", "row_sum", {"x": (3, 5)}, ((3,),), 15)


def test_instructions_that_everyone_may_use_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child gets the variables of peers and compiles ours for them; who cannot be held is left out."""
    commands: list[list[str]] = []

    def run(command: list[str], env: dict[str, str], **_: object) -> None:
        assert env["OPENBLAS_CORETYPE"] == "Haswell"
        assert env["ATEN_CPU_CAPABILITY"] == "avx2"
        commands.append(command)
        Path(command[command.index("--json") + 1]).write_text("[]", "utf-8")

    monkeypatch.setattr(subprocess, "run", run)
    given = ["--suite", "tccg", "--isa", "avx2", "--threads", "1", "--peers", "NumPy,JAX"]
    assert main([*given, "--json", str(tmp_path / "out.json")]) == 0
    (command,) = commands
    assert command[command.index("--isa") + 1] == "avx2"
    assert command[command.index("--peers") + 1] == "NumPy"
    monkeypatch.setattr(toolchain, "FAST", toolchain.FAST)
    machine.hold_to("avx2")
    assert "-march=haswell" in toolchain.library_recipe().flags


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What one quick run gives."""
    file = tmp_path_factory.mktemp("bench") / "results.json"
    command = [sys.executable, "-m", "bench", "--quick", "--no-latency", "--peers", "NumPy"]
    done = subprocess.run(
        [*command, "--threads", "1", "--json", str(file)],
        env={**os.environ, "PATH": unoptimised.path()},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(file.read_text("utf-8"))


@pytest.mark.deep
def test_every_program_is_right_and_timed(results: Any) -> None:
    rows = results["threads"]["1"]["workloads"]
    assert list(rows) == [workload.name for workload in QUICK]
    for row in rows.values():
        assert not row["wrong"]
        assert set(row["times"]) == {"i", "NumPy"}
        assert all(0 < taken["min"] <= taken["median"] for taken in row["times"].values())


@pytest.mark.deep
def test_every_step_of_training_is_timed(results: Any) -> None:
    rows = results["threads"]["1"]["steps"]
    assert list(rows) == [step.name for step in steps.QUICK]
    for row in rows.values():
        assert not row["wrong"]
        assert set(row["times"]) == {"i"}
    assert {step.program for step in steps.QUICK} == {
        path.stem for path in steps.ROUTINES.iterdir()
    }


@pytest.mark.parametrize("step", steps.QUICK, ids=lambda step: step.name)
def test_steps_of_training_are_right(step: steps.Step) -> None:
    sessions = {target: steps.session_of(step, 1, target) for target in ("numpy", "c")}
    arrays = steps.arrays_of(sessions["c"])
    calls = {target: partial(session, **arrays) for target, session in sessions.items()}
    table = {target: partial(calls.__getitem__, target) for target in calls}
    right, first, wrong = steps.begun(table, "numpy")
    assert set(right) == set(first) == {"numpy", "c"}
    assert not wrong
    for path, values in sessions["numpy"].parameters.items():
        assert np.allclose(sessions["c"].parameters[path], values, rtol=1e-4, atol=1e-5)


def test_who_trains_otherwise_is_left_out() -> None:
    def fails() -> Any:
        raise MemoryError("no room")

    table = {"i": lambda: lambda: np.ones(1), "other": lambda: lambda: 1.01, "no": fails}
    calls_then, first, wrong = steps.begun(table, "i")
    assert set(calls_then) == {"i"}
    assert set(first) == {"i", "other"}
    assert "its losses are" in wrong["other"]
    assert "no room" in wrong["no"]


@pytest.mark.deep
def test_tables(results: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    begin, end = (f"<!-- {report.ANCHORS}: {word} -->" for word in ("begin", "end"))
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n", "utf-8")
    for _ in range(2):
        report.rewrite(page, report.ANCHORS, report.markdown(results))
        shown = page.read_text("utf-8")
        assert shown.startswith(f"before\n{begin}\n")
        assert shown.endswith(f"{end}\nafter\n")
        assert "old" not in shown
        assert shown.count("\n| softmax |") == 1
    assert f"{QUICK[0].name} " in report.text(results)
    assert "| step of training | ours, ms | spread | best peer |" in report.markdown(results)
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps(results), "utf-8")
    assert main(["--from", str(saved), "--page", str(page)]) == 0
    page.write_text("no marks", "utf-8")
    with pytest.raises(ValueError, match="lacks a line"):
        report.rewrite(page, report.ANCHORS, report.markdown(results))


@pytest.fixture(scope="module")
def limits() -> Limits:
    return Limits(1)


def timed(call: Any, limits: Limits) -> Any:
    """A small workload on somebody who computes the sums of rows as ``call`` does."""

    def prepare(_: Workload, arrays: Any) -> Any:
        return lambda: call(arrays["x"])

    return measure.timed(SMALL, {"somebody": {"row_sum": prepare}}, limits, measure.QUICK_EFFORT)


def test_who_is_wrong_is_left_out(limits: Limits) -> None:
    def fails(_: Array) -> None:
        raise MemoryError("no room")

    wrong = {
        "shape": lambda x: x.sum(),
        "off by": lambda x: x.sum(1) + 1e-2,
        "nan": lambda x: x.sum(1) * np.nan,
        "no room": fails,
    }
    for words, call in wrong.items():
        row = timed(call, limits)
        assert row["times"] == {}
        assert words in row["wrong"]["somebody"]
    assert set(timed(lambda x: x.sum(1), limits)["times"]) == {"somebody"}


def test_the_limit_is_the_longer_of_work_and_traffic(limits: Limits) -> None:
    least = dict.fromkeys(limits.calls(SMALL), 1.0)
    assert limits.seconds(SMALL, least) == 1.0
    work = Workload("work", "matmul", {"a": (1, 1)}, ((1, 1),), 10**12)
    assert 1.0 < limits.seconds(work, least)
    assert all(call() is not None for call in limits.calls(SMALL).values())


def test_programs_are_plain_and_complete() -> None:
    files = {path.stem: path for path in workloads.PROGRAMS.iterdir()}
    for table in (FULL, QUICK):
        assert {workload.program for workload in table} == set(files)
        assert len({workload.name for workload in table}) == len(table)
    assert set(references.REFERENCES) == set(files)
    for path in files.values():
        text = path.read_text("utf-8")
        assert text.startswith("# ")
        graph = module_graph(parse_module(Source(path.name, text)), path.stem)
        assert all(getattr(node, "schedule", None) is None for node in graph.nodes), "no schedules"
        assert format_module(Source(path.name, text)) == text


@pytest.mark.parametrize("workload", QUICK, ids=lambda workload: workload.name)
def test_numpy_peer_has_everything(workload: Workload) -> None:
    arrays = workloads.arrays_of(workload)
    call = peers.calls_of("NumPy", 1)[workload.program](workload, arrays)
    right = references.expected(workload.program, arrays)
    assert references.mistake(call(), right) is None
    assert tuple(output.shape for output in right) == workload.outputs


def test_unknown_peers_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--peers", "numpi"])
    assert "no peer is called numpi" in capsys.readouterr().err


def test_plug_in() -> None:
    quick = {workload.program: workload for workload in QUICK}
    for family, (program, _) in anchors_plugin.PROGRAMS.items():
        prepare = anchors_plugin.CONTESTANTS["ours"][family]
        arrays = workloads.arrays_of(quick[program])
        given = {"w" if name == "weights" else name: array for name, array in arrays.items()}
        right = references.expected(program, arrays)
        assert references.mistake(prepare(given, 1, {})(), right) is None


def test_plug_in_trains() -> None:
    workload = next(workload for workload in QUICK if workload.program == "mlp_train")
    arrays = workloads.arrays_of(workload)
    (rows, _), names = workload.inputs["x"], [name for name in arrays if name[0] in "wb"]
    start, wide = arrays["w2"].copy(), {name: arrays[name].astype(np.float64) for name in arrays}
    wide["rate"] = np.array(anchors_plugin.LEARNING / rows)
    for _ in range(3):
        made = references.REFERENCES["mlp_train"](**wide)
        wide |= dict(zip(names, made, strict=True))
    given = {name: arrays[name] for name in ("x", *names)} | {"y": arrays["label"]}
    dimensions = {"B": rows, "D": (17, 9, 11, 5)}
    call = anchors_plugin.CONTESTANTS["ours"]["mlptrain"](given, 1, dimensions)
    found = [call().copy() for _ in range(3)][-1]
    assert np.abs(found - wide["w2"]).max() < 0.01 * np.abs(wide["w2"] - start).max()
    assert np.array_equal(arrays["w2"], start)


@pytest.mark.deep
def test_all_parts_for_a_gpu_run_emulated(tmp_path: Path) -> None:
    """Projects, their tests with every access checked, and times; the index cases are tests of their own."""
    file = tmp_path / "results.jsonl"
    timed_rows = ["copy", "matmul", "matmul 5 x 7 x 19, known", "step of a matrix"]
    only = "|".join(f"^{name}$" for name in ("03_reduce", *timed_rows))
    words = ["--emulate", "--parts", "projects,sanitizer,ncu,times", "--only", only]
    assert gpu.main([*words, "--json", str(file)]) == 0
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [(row["part"], row["name"]) for row in rows] == [
        ("projects", "03_reduce"),
        ("sanitizer", "03_reduce"),
        ("ncu", "matmul"),
        *(("times", name) for name in timed_rows),
    ]
    assert all(row["is_right"] for row in rows)
    assert "matmul was called once" in rows[2]["says"]
    rows = rows[1:]
    assert re.fullmatch(r"i .* ms, cudaMemcpy .* ms, .* x cudaMemcpy, .*", rows[2]["says"])
    assert rows[4]["says"].endswith("goal 60 % of cuBLAS: not known")


@pytest.mark.deep
def test_results_are_kept_before_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is a line of the file as soon as it is known; what the time does not suffice for is told."""
    file = tmp_path / "results.jsonl"
    kept: list[int] = []

    def rows(place: gpu.Place) -> Iterator[gpu.Row]:
        for name in ("one", "two"):
            kept.append(len(file.read_text("utf-8").splitlines()))
            yield gpu.Row("times", name, None if place.is_over() else True, "")

    monkeypatch.setitem(gpu.PARTS, "times", rows)
    words = ["--emulate", "--json", str(file), "--parts", "times"]
    assert gpu.main(words) == 0
    assert kept == [0, 1]
    monkeypatch.undo()
    others = ["--emulate", "--json", str(file), "--deadline", "0"]
    assert gpu.main(others) == 0
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [line["is_right"] for line in lines[:2]] == [True, True]
    assert {line["says"] for line in lines[2:]} == {"not reached"}
    has_torch = importlib.util.find_spec("torch") is not None
    parts = [part for part in gpu.PARTS if part != "compiled" or has_torch]
    assert [*dict.fromkeys(line["part"] for line in lines[2:])] == parts
    assert f"0 of them wrong, {len(lines) - 2} not reached" in capsys.readouterr().out


def test_each_part_has_a_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a part leaves, the next ones have; all of them end in time."""
    ends: dict[str, float] = {}

    def part(name: str, place: gpu.Place) -> Iterator[gpu.Row]:
        ends[name] = place.ends - perf_counter()
        return iter([])

    for name, share in (("micro", 1), ("times", 3)):
        monkeypatch.setitem(gpu.PARTS, name, partial(part, name))
        monkeypatch.setitem(gpu.SHARES, name, share)
    assert gpu.main(["--emulate", "--deadline", "4000", "--parts", "micro,times"]) == 0
    assert ends == pytest.approx({"micro": 1000, "times": 4000}, abs=100)
    assert gpu.main(["--emulate", "--parts", "times"]) == 0
    assert ends["times"] == math.inf
    monkeypatch.undo()
    assert gpu.SHARES.keys() == gpu.PARTS.keys()
    assert sum(gpu.SHARES.values()) == gpu.DEADLINE


def test_instructions_and_launches_are_measured() -> None:
    """On the emulator: that each function runs; graphs are nothing that it knows."""
    rows = list(gpu_micro.run("cuda-emulated", lambda _: True, lambda: False))
    names = ["clock", *(name for _, name, _ in gpu_micro.MICROS), "launches"]
    assert [name for name, _, _ in rows] == names
    assert all(is_right for _, is_right, _ in rows)
    rest = list(gpu_micro.run("cuda-emulated", lambda name: name == "DADD", lambda: True))
    assert [row[:2] for row in rest] == [("DADD", None)]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the path")
def test_measurements_compile_for_a_gpu(tmp_path: Path) -> None:
    words = ["nvcc", "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-Xptxas", "-v"]
    done = subprocess.run(
        [*words, "-cubin", "-o", str(tmp_path / "m.cubin"), str(gpu_micro.TEXT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    spilled = [line for line in done.stderr.splitlines() if "spill stores" in line]
    assert len(spilled) == 12
    assert all(" 0 bytes spill stores, 0 bytes spill loads" in line for line in spilled)


def test_what_holds_a_kernel_up_is_read_from_the_report() -> None:
    stalls = {"long_scoreboard": "0.51", "wait": "1,002.5", "barrier": "0.10", "math": "0.20"}
    columns = {"ID": ("", "0"), "Kernel Name": ("", "matmul_k0_0(int, int)")}
    columns |= {"gpu__time_duration.sum": ("us", "12.5"), "lts__t_sector_hit_rate.pct": ("%", "80")}
    columns |= {
        f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio": ("inst", value)
        for name, value in stalls.items()
    }
    lines = [
        ",".join(f'"{word}"' for word in row)
        for row in (columns, *zip(*columns.values(), strict=True))
    ]
    said = "\n".join(["==PROF== Connected", *lines])
    assert list(gpu_profile.found(said)) == [
        ", ".join(
            (
                "matmul_k0_0, duration 12.5 us, L2 hits % 80, waits for wait 1002.50",
                "waits for long_scoreboard 0.51, waits for math 0.20",
            )
        )
    ]
    assert list(gpu_profile.found("no report")) == []
    command = gpu_profile.command("ncu")
    assert command[:3] == ["ncu", "--clock-control", "none"]
    assert command.count("--section") == len(gpu_profile.SECTIONS)
    assert len(list(gpu_profile.names("cuda"))) == len(gpu_profile.BEGINS)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not there")
@pytest.mark.parametrize("name", ["copy", "matmul, bf16", "attention 2 x 9", "training step"])
def test_pytorch_is_compared_with_beside_an_emulated_device(name: str) -> None:
    (row,) = gpu_times.run("cuda-emulated", lambda other: other == name, lambda: False)
    assert row[1]
    assert re.search(r", PyTorch \d", row[2])


def test_a_machine_for_times_needs_no_prompt_toolkit(tmp_path: Path) -> None:
    (tmp_path / "prompt_toolkit.py").write_text("raise ImportError\n", "utf-8")
    words = [sys.executable, "-m", "bench.gpu", "--emulate", "--parts", "times", "--only", "^copy$"]
    root = Path(gpu.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        words, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "1 results, 0 of them wrong, 0 not reached" in done.stdout


def test_rows_that_are_worth_most_come_first() -> None:
    names = [row.workload.name for row in gpu_rows.FULL]
    assert names[:2] == ["copy", "matmul 4096"]
    assert names.index("softmax 65536 x 1024") < names.index("MLP 784-512-512-10, batch 4096")


def test_projects_are_compiled_by_hand_without_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, **more: None if name == "make" else which(name, **more)
    )
    nvcc = f"{sys.executable} -m ilang.codegen.emulator.nvcc"
    (row,) = gpu.projects(gpu.Place("cuda-emulated", nvcc, "native", tmp_path, "^01_add$"))
    assert row.is_right, row.says


@pytest.mark.parametrize("row", gpu_rows.QUICK, ids=lambda row: row.workload.name)
def test_rows_for_a_gpu_are_what_they_are_compared_with(row: gpu_rows.GpuRow) -> None:
    """Their programs, evaluated; those of known extents say them."""
    name, arrays = row.workload.program, workloads.arrays_of(row.workload)
    text = gpu_rows.text_of(row)
    assert format_module(Source(f"{name}.i", text)) == text
    program = library(parse_module(Source(f"{name}.i", text)))[name]
    program = program.grad() if row.gradient else program
    right = gpu_rows.expected(row, arrays)
    assert references.mistake(program(*arrays.values(), target="numpy"), right) is None
    assert tuple(output.shape for output in right) == row.workload.outputs
    assert row.known is (row.workload.name.endswith("known"))


def test_rows_of_a_device_have_programs_of_their_extents() -> None:
    names = [row.workload.name for row in gpu_rows.FULL]
    assert len(set(names)) == len(names)
    kinds = {(row.workload.program, row.known, row.gradient) for row in gpu_rows.QUICK}
    assert {(row.workload.program, row.known, row.gradient) for row in gpu_rows.FULL} <= kinds
    for row in gpu_rows.FULL:
        name, shapes = row.workload.program, row.workload.inputs.values()
        program = library(parse_module(Source(f"{name}.i", gpu_rows.text_of(row))))[name]
        program = program.grad() if row.gradient else program
        assert program.shapes(*shapes) == row.workload.outputs


def test_compute_sanitizer_is_looked_for_beside_nvcc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Toolkits have it in a folder of their own, which is on no path."""
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    assert gpu.tool_beside(str(nvcc), gpu.SANITIZER) is None
    tool = tmp_path / "cuda" / "compute-sanitizer" / "compute-sanitizer"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n", "ascii")
    assert gpu.tool_beside(f"{nvcc} -L/lib", gpu.SANITIZER) is None  # it cannot be run
    tool.chmod(0o755)
    assert gpu.tool_beside(f"{nvcc} -L/lib", gpu.SANITIZER) == str(tool)


def test_what_a_row_has_reached_is_told() -> None:
    (row,) = (row for row in gpu_rows.QUICK if row.workload.name == "row sum")
    bytes_ = row.workload.bytes_in() + row.workload.bytes_out()
    told = [[*gpu_times.reached(row, {"i": 1.0}, copied)] for copied in (0.0, bytes_, 2 * bytes_)]
    text = "goal 85 % of the bandwidth of a copy"
    assert told == [[f"{text}: not known"], [f"{text}: 100%, reached"], [f"{text}: 50%, MISSED"]]
    (row,) = (row for row in gpu_rows.QUICK if row.workload.name == "causal 2 x 9")
    (said,) = gpu_times.reached(row, {"i": 1.0, "PyTorch": 0.5, "PyTorch math": 1.5}, 0.0)
    assert said == "goal faster than PyTorch's math path: 150%, reached"
    assert not [*gpu_times.reached(row, {"PyTorch": 1.0}, 0.0)]


def test_a_part_that_fails_on_a_gpu_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(gpu.PARTS, "times", lambda _: iter([gpu.Row("times", "one", False, "off")]))
    assert gpu.main(["--emulate", "--parts", "times"]) == 1
    assert "WRONG  off\n1 results, 1 of them wrong" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        gpu.main(["--parts", "none"])
    assert "no part is called none" in capsys.readouterr().err
    monkeypatch.setattr("ilang.codegen.device.driver.DRIVERS", ("libnone.so",))
    assert gpu.main(["--parts", "times"]) == 3


@pytest.mark.deep
def test_calls_of_small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", unoptimised.path())
    found = calls.run(quick=True)
    assert [*found["warm"]] == [*calls.CALLS]
    assert [*found["first"]] == [*calls.FIRST_CALLS]
    assert all(0 < taken[measure.OURS] for taken in found["warm"].values())
    assert [*found["error"]] == [*calls.ERRORS]
    assert all(taken[measure.OURS] < 2 for taken in found["error"].values())
    shown = report.text({"machine": {}, "threads": {}, "calls": found})
    assert "largest error, ulp" in shown
    assert "warm call, µs" in shown
    assert "einsum: matrix product" in report.markdown(
        {"machine": {}, "threads": {}, "calls": found}
    )


@pytest.mark.deep
@pytest.mark.parametrize(
    ("suite", "title"),
    [
        ("drawn", "einx"),
        ("tccg", "abrs-qb-aqrs"),
        ("polybench", "jacobi-1d, 4000"),
        ("convolutions", "960x9x9"),
        ("everyday", "ij[+]ij~ij"),
    ],
)
def test_a_task_of_each_suite_is_right(suite: str, title: str) -> None:
    tasks = suites.tasks_of(suite, seed=1, count=9)
    task = next(each for each in tasks if re.search(title, each.name()))
    (row,) = suites.run([task], 1, measure.QUICK_EFFORT)
    assert not row["wrong"]
    assert {"i", "NumPy"} <= set(row["times"])
    assert ("C loops" in row["times"]) == (suite == "polybench")
    assert suites.ratio(row) is not None
    assert row["name"] in suites.summary([row])
    assert f"| {suite} | `{row['name']}` |" in suites.markdown({"1": {suite: [row]}})
