"""What calls of small arrays cost, beside einx, einops, opt_einsum and NumPy: the price of the notation. And errors.

Each text is called again and again with the same arrays, so what is timed is everything around the arithmetic. A first
call is of a text that nobody has seen, letter by letter another one; ours is timed up to the point where C would be
compiled, since compiled programs are kept on disk. Every system has a process of its own.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.machine import environment
from bench.measure import OURS

ROOT = Path(__file__).parents[1]

SYSTEMS: dict[str, tuple[tuple[str, ...], str]] = {
    OURS: ((), "from ilang import einops, einsum, einx"),
    "einx": (("einx",), "import einx"),
    "einops": (("einops",), "import einops"),
    "opt_einsum": (("opt_einsum",), "from opt_einsum import contract as einsum"),
    "NumPy": ((), "from numpy import einsum"),
}
"""By system: the packages that it needs, and how it is imported."""

EINX, EINOPS, EINSUM = (OURS, "einx"), (OURS, "einops"), (OURS, "opt_einsum", "NumPy")

CALLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "einx: sum of rows": ('einx.sum("a [b]", x)', EINX),
    "einx: transpose": ('einx.id("a b -> b a", x)', EINX),
    "einx: a dimension divided": ('einx.id("a (b c) -> a b c", x, b=2)', EINX),
    "einx: mean of patches": ('einx.mean("(a [c])...", x, c=2)', EINX),
    "einx: softmax": ('einx.softmax("a [b]", x)', EINX),
    "einx: matrix product": ('einx.dot("a [b], [b] c -> a c", x, y)', EINX),
    "einops: transpose": ('einops.rearrange(x, "a b -> b a")', EINOPS),
    "einops: sum of rows": ('einops.reduce(x, "a b -> a", "sum")', EINOPS),
    "einsum: matrix product": ('einsum("ab,bc->ac", x, y)', EINSUM),
    "einsum: three matrices": ('einsum("ab,bc,cd->ad", x, y, x)', EINSUM),
}
"""By what is called: the call, and who has it."""

WARM = """
from time import perf_counter
import numpy as np
{setup}
x, y = np.ones((4, 8), np.float32), np.ones((8, 4), np.float32)
def call():
    return {call}
call(), call()
least = []
for _ in range({rounds}):
    start = perf_counter()
    for _ in range({count}):
        call()
    least.append((perf_counter() - start) / {count})
print(min(least))
"""

FIRST = """
from random import Random
from statistics import median
from string import ascii_letters
from time import perf_counter
import warnings
import numpy as np
{setup}
warnings.simplefilter("ignore")
x, y = np.ones((4, 8), np.float32), np.ones((8, 4), np.float32)
def first(names):
    a, b, c, d = names
    {call}
taken = []
for number in range({count}):
    names = Random(number).sample(ascii_letters, 4)
    start = perf_counter()
    first(names)
    taken.append(perf_counter() - start)
print(median(taken[2:]))
"""

FIRST_CALLS: dict[str, dict[str, str]] = {
    "einx: sum of rows": {
        OURS: 'einx.sum(f"{a} [{b}]").shapes((4, 8), dtypes=["f32"])',
        "einx": 'einx.sum(f"{a} [{b}]", x)',
    },
    "einx: transpose": {
        OURS: 'einx.id(f"{a} {b} -> {b} {a}").shapes((4, 8), dtypes=["f32"])',
        "einx": 'einx.id(f"{a} {b} -> {b} {a}", x)',
    },
    "einx: matrix product": {
        OURS: 'einx.dot(f"{a} [{b}], [{b}] {c} -> {a} {c}").shapes((4, 8), (8, 4), dtypes=["f32"] * 2)',
        "einx": 'einx.dot(f"{a} [{b}], [{b}] {c} -> {a} {c}", x, y)',
    },
    "einops: transpose": {
        OURS: 'einx.id(f"{a} {b} -> {b} {a}").shapes((4, 8), dtypes=["f32"])',
        "einops": 'einops.rearrange(x, f"{a} {b} -> {b} {a}")',
    },
    "einsum: matrix product": {
        OURS: 'einsum(f"{a}{b},{b}{c}->{a}{c}").shapes((4, 8), (8, 4), dtypes=["f32"] * 2)',
        "opt_einsum": 'einsum(f"{a}{b},{b}{c}->{a}{c}", x, y)',
        "NumPy": 'einsum(f"{a}{b},{b}{c}->{a}{c}", x, y)',
    },
}
"""By what is called: who has it, and the call; ours stops before anything is compiled."""


ERROR = """
import numpy as np
{setup}
random = np.random.default_rng(0)
v = random.random({size} * {size}, np.float32)
x, y = (random.standard_normal(({size}, {size}), np.float32) + 3 for _ in range(2))
got = {call}
v, x, y = (each.astype(np.float64) for each in (v, x, y))
powers = np.exp(x - x.max(1, keepdims=True))
want = {want}
print(float(np.abs(got - want).max() / np.abs(want).max() / np.finfo(np.float32).eps))
"""
"""How far the worst element of a result is off, over the largest element, in units in the last place of f32."""

ERRORS: dict[str, tuple[str, dict[str, str]]] = {
    "sum of all": (
        "v.sum()",
        {
            OURS: 'einx.sum("[a]", v)',
            "einx": 'einx.sum("[a]", v)',
            "einops": 'einops.reduce(v, "a -> ", "sum")',
            "NumPy": "v.sum()",
        },
    ),
    "sum of columns": (
        "x.sum(0)",
        {
            OURS: 'einx.sum("[a] b", x)',
            "einx": 'einx.sum("[a] b", x)',
            "einops": 'einops.reduce(x, "a b -> b", "sum")',
            "NumPy": 'einsum("ab->b", x)',
        },
    ),
    "variance of rows": (
        "x.var(1)",
        {OURS: 'einx.var("a [b]", x)', "einx": 'einx.var("a [b]", x)', "NumPy": "x.var(1)"},
    ),
    "softmax of rows": (
        "powers / powers.sum(1, keepdims=True)",
        {OURS: 'einx.softmax("a [b]", x)', "einx": 'einx.softmax("a [b]", x)'},
    ),
    "logsumexp of rows": (
        "np.log(powers.sum(1)) + x.max(1)",
        {OURS: 'einx.logsumexp("a [b]", x)', "einx": 'einx.logsumexp("a [b]", x)'},
    ),
    "matrix product": (
        "x @ y",
        {
            OURS: 'einx.dot("a [b], [b] c -> a c", x, y)',
            "einx": 'einx.dot("a [b], [b] c -> a c", x, y)',
            "opt_einsum": 'einsum("ab,bc->ac", x, y)',
            "NumPy": 'einsum("ab,bc->ac", x, y)',
        },
    ),
}
"""By what is computed: the result in f64, and who computes it how."""


def installed() -> list[str]:
    """The systems whose packages there are."""
    return [
        name
        for name, (packages, _) in SYSTEMS.items()
        if all(importlib.util.find_spec(package) for package in packages)
    ]


def run(quick: bool) -> dict[str, Any]:
    """By what is called and by system: the least time of a warm call, the median time of a first one, in seconds."""
    tries, rounds, count, firsts = (1, 1, 10, 3) if quick else (3, 15, 1000, 40)
    warm: dict[str, dict[str, float]] = {}
    first: dict[str, dict[str, float]] = {}
    systems = installed()
    for what, (call, having) in CALLS.items():
        for name in having:
            if name in systems:
                script = WARM.format(setup=_setup(name), call=call, rounds=rounds, count=count)
                warm.setdefault(what, {})[name] = min(_figure(script) for _ in range(tries))
    for what, calls in FIRST_CALLS.items():
        for name, call in calls.items():
            if name in systems:
                script = FIRST.format(setup=_setup(name), call=call, count=firsts)
                times = [_figure(script) for _ in range(tries)]
                first.setdefault(what, {})[name] = statistics.median(times)
    return {"systems": _versions(systems), "warm": warm, "first": first, "error": errors(quick)}


def errors(quick: bool) -> dict[str, dict[str, float]]:
    """By what is computed and by system: the error of the worst element, in units in the last place of f32."""
    found: dict[str, dict[str, float]] = {}
    systems = installed()
    for what, (want, having) in ERRORS.items():
        for name, call in having.items():
            if name in systems:
                size = 16 if quick else 1024
                script = ERROR.format(setup=_setup(name), call=call, want=want, size=size)
                found.setdefault(what, {})[name] = _figure(script)
    return found


def _setup(name: str) -> str:
    return SYSTEMS[name][1]


def _versions(systems: list[str]) -> dict[str, str]:
    """What is installed of each system but ours."""
    from importlib.metadata import version

    return {name: version(name.lower()) for name in systems if name != OURS}


def _figure(script: str) -> float:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=ROOT,
        env=environment(1),
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout.split()[-1]))
