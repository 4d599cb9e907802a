"""``python -m bench.gpu``: what only a GPU can tell, in one call of some minutes; prints a line for each result.

python -m bench.gpu                       all parts, on the GPU of this machine
python -m bench.gpu --parts times         one part of times, sanitizer, conformance, projects, compiled
python -m bench.gpu --only attention      samples and workloads whose names match
python -m bench.gpu --deadline 540        begin nothing after so many seconds
python -m bench.gpu --emulate --json out.jsonl

``times`` compares our programs on arrays of the device with PyTorch (cuBLAS and its kernels), ``sanitizer`` runs the
tests of samples' projects under the tools of compute-sanitizer, ``conformance`` calls the index cases, ``projects``
writes every sample as a CUDA project and runs its own test, ``compiled`` compares with torch.compile (Triton). PyTorch
need not be there. Emulated, the test is run once with every access checked in place of the tools, and times are those
of tiny sizes and mean nothing.

What is worth most comes first. Each result is a line of the file as soon as it is known, so that nothing is lost where
the machine is taken away; what the deadline leaves out is a line, too, "not reached".

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
from ilang.core.record import record

ROOT = Path(__file__).parents[1]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SANITIZER = "compute-sanitizer"
FOUND = 9
"""The exit status of a test in which a tool, or the emulator, found something."""
SAYS = {True: "right", False: "WRONG", None: "-----"}
SECONDS = 240
"""A command that has not ended by then is taken to hang."""


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

    Nothing begins after ``ends``, of the clock that ``perf_counter`` reads.
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
            for name in options.parts.split(","):
                for row in PARTS[name](place):
                    verdicts.append(row.is_right)
                    print(
                        f"{row.part:12} {row.name:28} {SAYS[row.is_right]}  {row.says}", flush=True
                    )
                    line = dict(zip(Row.__match_args__, _values(row), strict=True))
                    print(json.dumps(line), file=file, flush=True)
    wrong, missing = verdicts.count(False), verdicts.count(None)
    print(f"{len(verdicts)} results, {wrong} of them wrong, {missing} not reached")
    return int(0 < wrong)


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
    parser.add_argument("--deadline", type=float, default=math.inf, metavar="SECONDS")
    parser.add_argument("--json", metavar="FILE", help="append each result as a line of JSON")
    options = parser.parse_args(arguments)
    unknown = set(options.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"no part is called {', '.join(sorted(unknown))}: {', '.join(PARTS)}")
    return options


def _place(options: argparse.Namespace, folder: Path) -> Place:
    ends = perf_counter() + options.deadline
    if options.emulate:
        nvcc = f"{sys.executable} -m ilang.codegen.emulator.nvcc"
        return Place("cuda-emulated", nvcc, "native", folder, options.only, ends)
    from ilang.codegen.runtime.compilers import find_compiler
    from ilang.codegen.runtime.gpu import CUDA, capability

    nvcc = " ".join(find_compiler(CUDA).command)
    return Place("cuda", nvcc, f"sm_{capability()}", folder, options.only, ends)


def _run(command: Sequence[str], folder: Path, **environment: str) -> tuple[int, str, float]:
    """The exit status of a command, what it said, and the seconds it took."""
    start = perf_counter()
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
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"it did not end within {SECONDS} seconds", perf_counter() - start
    return done.returncode, done.stdout, perf_counter() - start


def _last(said: str) -> str:
    """The last line that tells something."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"


def _in_turns(part: str, work: Callable[[Path], Iterator[Row]], place: Place) -> Iterator[Row]:
    """What is said of every sample, in their order; as many at a time as there are processors."""
    samples = [p for p in sorted(ROOT.glob("samples/[0-9]*.i")) if place.takes(p.stem)]

    def rows_of(path: Path) -> list[Row]:
        return [Row(part, path.stem, None, "not reached")] if place.is_over() else list(work(path))

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for rows in pool.map(rows_of, samples):
            yield from rows


def _tested(path: Path, place: Place, folder: Path, **environment: str) -> tuple[int, str, float]:
    """A sample written as a project, compiled, and tested by its own Makefile."""
    words = ["-m", "ilang", "build", str(path), "--target", "cuda", "-o", str(folder)]
    status, said, seconds = _run([sys.executable, *words], ROOT)
    if status:
        return status, said, seconds
    if shutil.which("make") is None:
        return _tested_by_hand(place, folder, **environment)
    variables = [f"NVCC={place.nvcc}", f"ARCH={place.arch}"]
    return _run(["make", *variables, "test"], folder, **environment)


def _tested_by_hand(place: Place, folder: Path, **environment: str) -> tuple[int, str, float]:
    """A project compiled and tested by the commands of its Makefile, where there is no make."""
    (test,) = folder.glob("*_test.c")
    stem, nvcc = test.stem.removesuffix("_test"), place.nvcc.split()
    flags = ["-std=c++17", "--fmad=false", "-O3", f"-arch={place.arch}", "-Xcompiler", "-fPIC"]
    commands = (
        [*nvcc, *flags, "-c", f"{stem}.cu", "-o", f"{stem}.o"],
        ["cc", "-std=gnu11", "-O2", "-c", test.name, "-o", f"{test.stem}.o"],
        [*nvcc, *flags, f"{test.stem}.o", f"{stem}.o", "-o", test.stem],
        [str(folder / test.stem)],
    )
    status, said, seconds = 0, "", 0.0
    for command in commands:
        if status == 0:
            status, said, more = _run(command, folder, **environment)
            seconds += more
    return status, said, seconds


def projects(place: Place) -> Iterator[Row]:
    """Every sample as a project: its own test."""

    def one(path: Path) -> Iterator[Row]:
        status, said, seconds = _tested(path, place, place.folder / path.stem)
        yield Row("projects", path.stem, status == 0, f"{_last(said)} ({seconds:.1f} s)")

    return _in_turns("projects", one, place)


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
            status, said, seconds = _run(words, folder)
            name = f"{path.stem} {tool}"
            yield Row("sanitizer", name, status == 0, f"{_last(said)} ({seconds:.1f} s)")

    if place.is_emulated():
        yield from _in_turns("sanitizer", checked, place)
        return
    program = sanitizer_beside(place.nvcc)
    if program is None:
        says = f"it is neither on the path nor beside {place.nvcc}"
        yield Row("sanitizer", SANITIZER, False, says)
        return
    yield from _in_turns("sanitizer", tools, place)


def sanitizer_beside(nvcc: str) -> str | None:
    """The compute-sanitizer of the path, or of the toolkit that a command of nvcc is of; None where neither has it."""
    bin_folder = Path(os.path.realpath(nvcc.split(maxsplit=1)[0])).parent
    folders = (bin_folder, bin_folder.parent / SANITIZER)
    beside = (shutil.which(SANITIZER, path=str(folder)) for folder in folders)
    return shutil.which(SANITIZER) or next(filter(None, beside), None)


def conformance(place: Place) -> Iterator[Row]:
    """The index cases, called one by one on the GPU, or compiled together and emulated."""
    if place.is_over():
        yield Row("conformance", "index cases", None, "not reached")
        return
    chosen = ["-k", "test_index_cases"] if place.is_emulated() else ["-m", "cuda"]
    words = ["-m", "pytest", "-q", *chosen, "tests/conformance/test_cuda.py"]
    status, said, _ = _run([sys.executable, *words], ROOT, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    yield Row("conformance", "index cases", status == 0, _last(said))


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
    "times": times,
    "sanitizer": sanitizer,
    "conformance": conformance,
    "projects": projects,
    "compiled": compiled,
}
"""By name, in the order in which they run."""


if __name__ == "__main__":
    sys.exit(main())
