"""How long things take that happen once: starting, compiling, the first call; and the price of a short call.

Each figure is taken in fresh processes, with a cache of compiled programs of their own.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.machine import environment

ROOT = Path(__file__).parents[1]

PROGRAMS = {
    "elementwise": ("fma_relu", "[a, a, a]", "a = np.ones(1000, np.float32)"),
    "rows": ("softmax", "[a]", "a = np.ones((10, 100), np.float32)"),
    "contraction": ("matmul", "[a, a]", "a = np.ones((32, 32), np.float32)"),
}
"""By kind: the program, its inputs, and how they are made."""

STATEMENT = """
from time import perf_counter
start = perf_counter()
{statement}
print(perf_counter() - start)
"""

FIRST = """
from time import perf_counter
import numpy as np
from ilang import load
{arrays}
f = load("bench/programs/{program}.i")["{program}"]
inputs = {inputs}
{before}
start = perf_counter()
f(*inputs)
print(perf_counter() - start)
"""

STATEMENTS = {
    "import numpy": "import numpy",
    "import ilang": "import ilang",
    "import numpy and ilang, read a program": (
        'import numpy; from ilang import i; i("ik*kj~ijk >> +ijk~ij")'
    ),
}

WARM_CALLS = {
    "warm call, f(x, y)": "f(x, y)",
    "warm call, f(x, y, out=z)": "f(x, y, out=z)",
    "NumPy, x + y": "x + y",
    "NumPy, np.add(x, y, out=z)": "np.add(x, y, out=z)",
}

WARM = """
from time import perf_counter
import numpy as np
from ilang import i
x, y, z = (np.ones(8, np.float32) for _ in range(3))
f = i("i+i~i")
f(x, y), f(x, y, out=z)
least = []
for _ in range(20):
    start = perf_counter()
    for _ in range(2000):
        {call}
    least.append((perf_counter() - start) / 2000)
print(min(least))
"""

CHAIN = """
from time import perf_counter
from ilang import i
i("-i~i").source("c")
text = " >> ".join(["i+i~i"] * {count})
start = perf_counter()
i(text).source("c")
print(perf_counter() - start)
"""

OTHERS_LOADED = 'from ilang import i; i("-i~i")(np.ones(3, np.float32))'
"""Another program called before, so that only what the program itself costs is left."""


def run(quick: bool) -> dict[str, dict[str, float]]:
    """Every figure: ``min``, ``median`` and ``spread`` (of all) of several processes, in seconds."""
    tries, cold_tries = (1, 1) if quick else (9, 3)
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, script, cold in _scripts(quick):
            found[what] = _summary(script, folder, cold_tries if cold else tries, cold)
    return found


def _scripts(quick: bool) -> Iterator[tuple[str, str, bool]]:
    """What to measure, the script that prints it, and whether each run has an empty cache."""
    for what, statement in STATEMENTS.items():
        yield what, STATEMENT.format(statement=statement), False
    for kind, (program, inputs, arrays) in PROGRAMS.items():
        for after, before in (("", ""), (", another program called before", OTHERS_LOADED)):
            script = FIRST.format(program=program, inputs=inputs, arrays=arrays, before=before)
            yield f"first call, {kind}, compiled{after}", script, True
            yield f"first call, {kind}, from the cache{after}", script, False
    for what, call in WARM_CALLS.items():
        yield what, WARM.format(call=call), False
    for count in (100,) if quick else (100, 1000):
        yield f"{count:,} expressions to C text", CHAIN.format(count=count), False


def _summary(script: str, folder: Path, tries: int, cold: bool = False) -> dict[str, float]:
    """The figure that a script prints, in so many processes; ``cold``: with an empty cache each.

    A first process is not counted: it leaves compiled modules of Python behind, and compiled programs of ours.
    """
    shared = tempfile.mkdtemp(dir=folder)
    _figure(script, folder, shared)
    caches = [tempfile.mkdtemp(dir=folder) if cold else shared for _ in range(tries)]
    times = [_figure(script, folder, cache) for cache in caches]
    median = statistics.median(times)
    return {"min": min(times), "median": median, "spread": (max(times) - min(times)) / median}


def _figure(script: str, folder: Path, cache: str) -> float:
    settings = {**environment(1), "I_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": str(folder / "py")}
    settings.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=settings,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])
