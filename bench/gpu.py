"""``python -m bench.gpu``: what only a GPU can tell, in one call of some minutes; prints a line for each result.

python -m bench.gpu                       all parts, on the GPU of this machine
python -m bench.gpu --parts times         one part; all of them, in order, are below
python -m bench.gpu --only attention      samples and workloads whose names match
python -m bench.gpu --deadline 540        begin nothing after so many seconds; 420 on a GPU
python -m bench.gpu --emulate --json out.jsonl

``micro`` measures instructions, the L2 cache and launches, ``times`` compares our programs on arrays of the device with
PyTorch (cuBLAS and its kernels), ``ncu`` lets Nsight Compute look at kernels of some rows, ``sanitizer`` runs the tests
of samples' projects under the tools of compute-sanitizer, ``conformance`` calls the index cases, ``wide`` runs projects
with 64-bit indices, ``compiled`` compares with torch.compile (Triton), ``projects`` writes every sample as a CUDA
project and runs its own test. PyTorch need not be there. Emulated, the test is run once with every access checked in
place of the tools, rows run without ncu, PyTorch is on the CPU, and times are those of tiny sizes and mean nothing.

What is worth most comes first, and each part has a share of the time; what one leaves, the next ones have. Each result
is a line of the file as soon as it is known, so that nothing is lost where the machine is taken away; what the deadline
leaves out is a line, too, "not reached".

A machine needs Python 3.11, NumPy, click, rich, cffi, and nvcc; prompt_toolkit only the REPL needs, and without make
projects are compiled by hand. A machine that has no cffi, and no network, takes one file that is fetched elsewhere:

    pip download --no-deps --only-binary=:all: --python-version 3.12 --platform manylinux2014_x86_64 -d wheels cffi
    pip install --no-index --no-deps --target more wheels/cffi-*.whl
    PYTHONPATH=more python -m bench.gpu
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

from ilang.core.diagnostic import Error
from ilang.core.record import record, replace

ROOT = Path(__file__).parents[1]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SANITIZER = "compute-sanitizer"
FOUND = 9
"""The exit status of a test in which a tool, or the emulator, found something."""
SAYS = {True: "right", False: "WRONG", None: "-----"}
SECONDS = 240
"""A command that has not ended by then is taken to hang."""
GRACE = 30
"""Seconds that a command has at least, although the deadline is near."""
DEADLINE = 420
"""Seconds of a run on a GPU, where nobody says how many."""
WIDE = "-O3 -DIL_WIDE"
"""Flags of nvcc by which all indices have 64 bits."""
FIRST = ("06", "13", "18", "20", "24", "26", "29", "22")
"""The samples that are worth most: products, attention, reductions in parts, guards, and windows."""


@record
class Row:
    """One result: of which part, of what, whether it is as it should be, and what there is to say.

    ``is_right`` is None where the time did not suffice.
    """

    part: str
    name: str
    is_right: bool | None
    says: str


@record
class Place:
    """Where programs run: on the GPU of this machine, or emulated; ``nvcc`` and ``arch`` are for Makefiles.

    Nothing of a part begins after ``ends``, of the clock that ``perf_counter`` reads.
    """

    target: str
    nvcc: str
    arch: str
    folder: Path
    only: str
    ends: float = math.inf

    def is_over(self) -> bool:
        """Whether nothing more begins."""
        return self.ends <= perf_counter()

    def seconds(self) -> float:
        """The most seconds that a command may take from now on."""
        return min(SECONDS, max(GRACE, self.ends - perf_counter()))

    def is_emulated(self) -> bool:
        """Whether there is no GPU."""
        return self.target == "cuda-emulated"

    def takes(self, name: str) -> bool:
        """Whether a sample or workload is asked for."""
        return re.search(self.only, name) is not None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that the command line asks for. Returns 1 where a result was wrong, 3 where nothing can run."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as folder:
        try:
            place = _place(options, Path(folder))
        except Error as error:
            print(f"bench.gpu: {error}", file=sys.stderr)
            return 3
        verdicts = []
        with Path(options.json or os.devnull).open("a", encoding="utf-8") as file:
            for part, ends in _shares(options.parts.split(","), place.ends):
                for row in PARTS[part](replace(place, ends=ends)):
                    verdicts.append(row.is_right)
                    print(
                        f"{row.part:12} {row.name:28} {SAYS[row.is_right]}  {row.says}", flush=True
                    )
                    line = dict(zip(Row.__match_args__, _values(row), strict=True))
                    print(json.dumps(line), file=file, flush=True)
    wrong, missing = verdicts.count(False), verdicts.count(None)
    print(f"{len(verdicts)} results, {wrong} of them wrong, {missing} not reached")
    return int(0 < wrong)


def _shares(names: Sequence[str], ends: float) -> Iterator[tuple[str, float]]:
    """Each part and when it ends, so that all of them together end in time: what one leaves, the next ones have."""
    begins, total, used = perf_counter(), sum(SHARES[name] for name in names), 0
    for name in names:
        used += SHARES[name]
        yield name, ends if math.isinf(ends) else begins + (ends - begins) * used / total


def _values(row: Row) -> tuple[Any, ...]:
    return row.part, row.name, row.is_right, row.says


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m bench.gpu", description=__doc__, formatter_class=shape
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="names, with commas between")
    parser.add_argument("--only", default="", metavar="PATTERN", help="a regular expression")
    parser.add_argument("--emulate", action="store_true", help="without a GPU, at tiny sizes")
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help=f"{DEADLINE} on a GPU")
    parser.add_argument("--json", metavar="FILE", help="append each result as a line of JSON")
    options = parser.parse_args(arguments)
    unknown = set(options.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"no part is called {', '.join(sorted(unknown))}: {', '.join(PARTS)}")
    return options


def _place(options: argparse.Namespace, folder: Path) -> Place:
    usual = math.inf if options.emulate else DEADLINE
    ends = perf_counter() + (usual if options.deadline is None else options.deadline)
    if options.emulate:
        nvcc = f"{sys.executable} -m ilang.codegen.emulator.nvcc"
        return Place("cuda-emulated", nvcc, "native", folder, options.only, ends)
    from ilang.codegen.compile.compilers import find_compiler
    from ilang.codegen.device.gpu import CUDA, capability

    nvcc = " ".join(find_compiler(CUDA).command)
    return Place("cuda", nvcc, f"sm_{capability()}", folder, options.only, ends)


def _run(
    command: Sequence[str], folder: Path, place: Place, **environment: str
) -> tuple[int, str, float]:
    """The exit status of a command, what it said, and the seconds it took."""
    start, most = perf_counter(), place.seconds()
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=most,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"it did not end within {most:.0f} seconds", perf_counter() - start
    return done.returncode, done.stdout, perf_counter() - start


def _last(said: str) -> str:
    """The last line that tells something."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"


def _samples() -> list[Path]:
    """All samples, those that are worth most first."""

    def place(path: Path) -> tuple[int, str]:
        number = path.stem[:2]
        return FIRST.index(number) if number in FIRST else len(FIRST), path.stem

    return sorted(ROOT.glob("samples/[0-9]*.i"), key=place)


def _in_turns(part: str, work: Callable[[Path], Iterator[Row]], place: Place) -> Iterator[Row]:
    """What is said of every sample, those worth most first; as many at a time as there are processors."""
    samples = [path for path in _samples() if place.takes(path.stem)]

    def rows_of(path: Path) -> list[Row]:
        return [Row(part, path.stem, None, "not reached")] if place.is_over() else list(work(path))

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for rows in pool.map(rows_of, samples):
            yield from rows


def _tested(
    path: Path, place: Place, folder: Path, flags: str = "-O3", **environment: str
) -> tuple[int, str, float]:
    """A sample written as a project, compiled with flags, and tested by its own Makefile."""
    words = ["-m", "ilang", "build", str(path), "--target", "cuda", "-o", str(folder)]
    status, said, seconds = _run([sys.executable, *words], ROOT, place)
    if status:
        return status, said, seconds
    if shutil.which("make") is None:
        return _tested_by_hand(place, folder, flags, **environment)
    variables = [f"NVCC={place.nvcc}", f"ARCH={place.arch}", f"NVCCFLAGS={flags}"]
    return _run(["make", *variables, "test"], folder, place, **environment)


def _tested_by_hand(
    place: Place, folder: Path, given: str, **environment: str
) -> tuple[int, str, float]:
    """A project compiled and tested by the commands of its Makefile, where there is no make."""
    (test,) = folder.glob("*_test.c")
    stem, nvcc = test.stem.removesuffix("_test"), place.nvcc.split()
    flags = ["-std=c++17", "--fmad=false", *given.split(), f"-arch={place.arch}"]
    flags += ["-Xcompiler", "-fPIC"]
    commands = (
        [*nvcc, *flags, "-c", f"{stem}.cu", "-o", f"{stem}.o"],
        ["cc", "-std=gnu11", "-O2", "-c", test.name, "-o", f"{test.stem}.o"],
        [*nvcc, *flags, f"{test.stem}.o", f"{stem}.o", "-o", test.stem],
        [str(folder / test.stem)],
    )
    status, said, seconds = 0, "", 0.0
    for command in commands:
        if status == 0:
            status, said, more = _run(command, folder, place, **environment)
            seconds += more
    return status, said, seconds


def projects(place: Place) -> Iterator[Row]:
    """Every sample as a project: its own test."""

    def one(path: Path) -> Iterator[Row]:
        status, said, seconds = _tested(path, place, place.folder / path.stem)
        yield Row("projects", path.stem, status == 0, f"{_last(said)} ({seconds:.1f} s)")

    return _in_turns("projects", one, place)


def wide(place: Place) -> Iterator[Row]:
    """The samples that are worth most as projects all of whose indices have 64 bits."""

    def one(path: Path) -> Iterator[Row]:
        if path.stem[:2] in FIRST:
            status, said, seconds = _tested(path, place, place.folder / f"{path.stem}-wide", WIDE)
            yield Row("wide", path.stem, status == 0, f"{_last(said)} ({seconds:.1f} s)")

    return _in_turns("wide", one, place)


def sanitizer(place: Place) -> Iterator[Row]:
    """The same tests under the tools of compute-sanitizer, or emulated with every access checked."""

    def checked(path: Path) -> Iterator[Row]:
        folder = place.folder / f"{path.stem}-checked"
        status, said, seconds = _tested(path, place, folder, I_EMULATOR_CHECK="1")
        yield Row("sanitizer", path.stem, status == 0, f"{_last(said)} ({seconds:.1f} s)")

    def tools(path: Path) -> Iterator[Row]:
        folder = place.folder / f"{path.stem}-tools"
        status, said, _ = _tested(path, place, folder)
        if status:
            yield Row("sanitizer", path.stem, False, _last(said))
            return
        (test,) = (file.with_suffix("") for file in folder.glob("*_test.c"))
        for tool in TOOLS:
            words = [str(program), "--tool", tool, "--error-exitcode", str(FOUND), str(test)]
            status, said, seconds = _run(words, folder, place)
            name = f"{path.stem} {tool}"
            yield Row("sanitizer", name, status == 0, f"{_last(said)} ({seconds:.1f} s)")

    if place.is_emulated():
        yield from _in_turns("sanitizer", checked, place)
        return
    program = tool_beside(place.nvcc, SANITIZER)
    if program is None:
        says = f"it is neither on the path nor beside {place.nvcc}"
        yield Row("sanitizer", SANITIZER, False, says)
        return
    yield from _in_turns("sanitizer", tools, place)


def tool_beside(nvcc: str, name: str) -> str | None:
    """A tool of the path, or of the toolkit that a command of nvcc is of; None where neither has it."""
    bin_folder = Path(os.path.realpath(nvcc.split(maxsplit=1)[0])).parent
    folders = (bin_folder, bin_folder.parent / name)
    beside = (shutil.which(name, path=str(folder)) for folder in folders)
    return shutil.which(name) or next(filter(None, beside), None)


def ncu(place: Place) -> Iterator[Row]:
    """One call of some rows under Nsight Compute: what holds their kernels up; emulated, the calls alone."""
    from bench import gpu_profile

    program = None if place.is_emulated() else tool_beside(place.nvcc, "ncu")
    if program is None and not place.is_emulated():
        yield Row("ncu", "ncu", None, f"it is neither on the path nor beside {place.nvcc}")
        return
    before = [] if program is None else gpu_profile.command(program)
    for name in filter(place.takes, gpu_profile.names(place.target)):
        if place.is_over():
            yield Row("ncu", name, None, "not reached")
            continue
        words = [*before, sys.executable, "-m", "bench.gpu_profile", place.target, name]
        status, said, seconds = _run(words, ROOT, place)
        says = "; ".join(gpu_profile.found(said)) or _last(said)
        yield Row("ncu", name, status == 0 or None, f"{says} ({seconds:.1f} s)")


def conformance(place: Place) -> Iterator[Row]:
    """The index cases, called one by one on the GPU, or compiled together and emulated."""
    if place.is_over():
        yield Row("conformance", "index cases", None, "not reached")
        return
    chosen = ["-k", "test_index_cases"] if place.is_emulated() else ["-m", "cuda"]
    words = ["-m", "pytest", "-q", *chosen, "tests/conformance/test_cuda.py"]
    plain = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    status, said, _ = _run([sys.executable, *words], ROOT, place, **plain)
    wrong = [line[1:].strip() for line in said.splitlines() if line.startswith("E ")]
    says = "; ".join(wrong[:3])[:1000] if status else _last(said)
    yield Row("conformance", "index cases", status == 0, says or _last(said))


def micro(place: Place) -> Iterator[Row]:
    """Instructions, the L2 cache and launches by themselves."""
    from bench import gpu_micro

    for name, is_right, says in gpu_micro.run(place.target, place.takes, place.is_over):
        yield Row("micro", name, is_right, says)


def times(place: Place) -> Iterator[Row]:
    """Our programs on arrays of the device, beside those of others."""
    from bench import gpu_times

    for name, is_right, says in gpu_times.run(place.target, place.takes, place.is_over):
        yield Row("times", name, is_right, says)


def compiled(place: Place) -> Iterator[Row]:
    """The same beside torch.compile, which takes longest to begin."""
    from bench import gpu_times

    for name, is_right, says in gpu_times.run_compiled(place.target, place.takes, place.is_over):
        yield Row("compiled", name, is_right, says)


PARTS: dict[str, Callable[[Place], Iterator[Row]]] = {
    "micro": micro,
    "times": times,
    "ncu": ncu,
    "sanitizer": sanitizer,
    "conformance": conformance,
    "wide": wide,
    "compiled": compiled,
    "projects": projects,
}
"""By name, in the order in which they run."""
SHARES = dict(zip(PARTS, (20, 130, 60, 90, 30, 20, 40, 30), strict=True))
"""The shares of parts of the time, in seconds of a run of ``DEADLINE``."""


if __name__ == "__main__":
    sys.exit(main())
