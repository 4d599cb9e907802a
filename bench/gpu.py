"""``python -m bench.gpu``: what only a GPU can tell, in one call of some minutes; prints a line for each result.

python -m bench.gpu                       all parts, on the GPU of this machine
python -m bench.gpu --parts times         one part of projects, sanitizer, conformance, times
python -m bench.gpu --only attention      samples and workloads whose names match
python -m bench.gpu --emulate --json out.json

``projects`` writes every sample as a CUDA project and runs its own test, ``sanitizer`` runs that test under the tools
of compute-sanitizer, ``conformance`` calls the index cases, ``times`` compares our programs on arrays of the device
with PyTorch (cuBLAS and its own kernels) and torch.compile (Triton), where they are. Emulated, the test is run once
with every access checked in place of the tools, and times are those of tiny sizes and mean nothing.
"""

from __future__ import annotations

import argparse
import json
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
SECONDS = 240
"""A command that has not ended by then is taken to hang."""


@record
class Row:
    """One result: of which part, of what, whether it is as it should be, and what there is to say."""

    part: str
    name: str
    is_right: bool
    says: str


@record
class Place:
    """Where programs run: on the GPU of this machine, or emulated; ``nvcc`` and ``arch`` are for Makefiles."""

    target: str
    nvcc: str
    arch: str
    folder: Path
    only: str

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
        rows = []
        for name in options.parts.split(","):
            for row in PARTS[name](place):
                rows.append(row)
                verdict = "right" if row.is_right else "WRONG"
                print(f"{row.part:12} {row.name:28} {verdict}  {row.says}", flush=True)
    wrong = sum(not row.is_right for row in rows)
    print(f"{len(rows)} results, {wrong} of them wrong")
    if options.json:
        listed = [dict(zip(Row.__match_args__, _values(row), strict=True)) for row in rows]
        Path(options.json).write_text(json.dumps(listed, indent=1) + "\n", "utf-8")
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
    parser.add_argument("--json", metavar="FILE", help="write all results")
    options = parser.parse_args(arguments)
    unknown = set(options.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"no part is called {', '.join(sorted(unknown))}: {', '.join(PARTS)}")
    return options


def _place(options: argparse.Namespace, folder: Path) -> Place:
    if options.emulate:
        nvcc = f"{sys.executable} -m ilang.codegen.emulator.nvcc"
        return Place("cuda-emulated", nvcc, "native", folder, options.only)
    from ilang.codegen.runtime.compilers import find_compiler
    from ilang.codegen.runtime.gpu import CUDA, capability

    nvcc = " ".join(find_compiler(CUDA).command)
    return Place("cuda", nvcc, f"sm_{capability()}", folder, options.only)


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


def _in_turns(work: Callable[[Path], Iterator[Row]], place: Place) -> Iterator[Row]:
    """What is said of every sample, in their order; as many at a time as there are processors."""
    samples = [p for p in sorted(ROOT.glob("samples/[0-9]*.i")) if place.takes(p.stem)]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for rows in pool.map(lambda path: list(work(path)), samples):
            yield from rows


def _tested(path: Path, place: Place, folder: Path, **environment: str) -> tuple[int, str, float]:
    """A sample written as a project, compiled, and tested by its own Makefile."""
    words = ["-m", "ilang", "build", str(path), "--target", "cuda", "-o", str(folder)]
    status, said, seconds = _run([sys.executable, *words], ROOT)
    if status:
        return status, said, seconds
    variables = [f"NVCC={place.nvcc}", f"ARCH={place.arch}"]
    return _run(["make", *variables, "test"], folder, **environment)


def projects(place: Place) -> Iterator[Row]:
    """Every sample as a project: its own test."""

    def one(path: Path) -> Iterator[Row]:
        status, said, seconds = _tested(path, place, place.folder / path.stem)
        yield Row("projects", path.stem, status == 0, f"{_last(said)} ({seconds:.1f} s)")

    return _in_turns(one, place)


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
        yield from _in_turns(checked, place)
        return
    program = sanitizer_beside(place.nvcc)
    if program is None:
        says = f"it is neither on the path nor beside {place.nvcc}"
        yield Row("sanitizer", SANITIZER, False, says)
        return
    yield from _in_turns(tools, place)


def sanitizer_beside(nvcc: str) -> str | None:
    """The compute-sanitizer of the path, or of the toolkit that a command of nvcc is of; None where neither has it."""
    bin_folder = Path(os.path.realpath(nvcc.split(maxsplit=1)[0])).parent
    folders = (bin_folder, bin_folder.parent / SANITIZER)
    beside = (shutil.which(SANITIZER, path=str(folder)) for folder in folders)
    return shutil.which(SANITIZER) or next(filter(None, beside), None)


def conformance(place: Place) -> Iterator[Row]:
    """The index cases, called one by one on the GPU, or compiled together and emulated."""
    chosen = ["-k", "test_index_cases"] if place.is_emulated() else ["-m", "cuda"]
    words = ["-m", "pytest", "-q", *chosen, "tests/conformance/test_cuda.py"]
    status, said, _ = _run([sys.executable, *words], ROOT)
    yield Row("conformance", "index cases", status == 0, _last(said))


def times(place: Place) -> Iterator[Row]:
    """Our programs on arrays of the device, beside those of others."""
    from bench import gpu_times

    for name, is_right, says in gpu_times.run(place.target, place.takes):
        yield Row("times", name, is_right, says)


PARTS: dict[str, Callable[[Place], Iterator[Row]]] = {
    "projects": projects,
    "sanitizer": sanitizer,
    "conformance": conformance,
    "times": times,
}
"""By name, in the order in which they run."""


if __name__ == "__main__":
    sys.exit(main())
