"""The options of the test suite, and what its processes share."""

import gc
import os
import signal
import sys
from itertools import islice

import pytest

from ilang.codegen.compile import toolchain
from tests import shares
from tests.property import native

os.environ.setdefault("PORTABLE", "1")  # projects have no variants, but where a test says so

YOUNG = 50_000
"""Objects that are made before Python looks for garbage among them: trees and graphs are many, and no garbage."""

QUICK = ("-O0", "-Dalways_inline=")
"""Flags in place of ``-O3``: what computes tiles is compiled once, not wherever it is called."""

SMOKE = (
    "test_commands",
    "test_einx",
    "test_every_notation",
    "test_fuzz",
    "test_plain_loops",
    "test_schedule_rules",
)
"""The files of ``tests/property`` that `make test` begins; all others are deep."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update",
        action="store_true",
        help="rewrite golden files and transcripts with what the program does now",
    )
    parser.addoption(
        "--fuzz",
        type=int,
        default=1,
        metavar="N",
        help="try N times as many random programs and schedules; 6: all that a run takes a sixth of",
    )
    parser.addoption(
        "--deep",
        choices=("none", "only", "all"),
        help="tests marked deep: none of them, them alone, or all tests; without it those in files that are named",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test marked ``batches(n)`` its ``batch``: n of them, or as many times that as the option says."""
    mark = metafunc.definition.get_closest_marker("batches")
    if mark is not None:
        (count,) = mark.args
        metafunc.parametrize("batch", range(count * metafunc.config.getoption("--fuzz")))


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


@pytest.fixture
def compiled_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Optimise nothing, in a sixth of the time, where what is asked for is right values.

    What compilers make of loops is tried on the random programs of ``tests/property`` and in ``tests/conformance``.
    """
    monkeypatch.setattr(toolchain, "FAST", (*QUICK, *toolchain.FAST[1:]))
    monkeypatch.setattr(toolchain, "SANITIZED", (*QUICK, *toolchain.SANITIZED[1:]))
    monkeypatch.setattr("ilang.codegen.call.load._loaded", {})


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled batches of programs and byte code from one run to the next, and let idle threads sleep.

    `--cache-clear` compiles everything anew.
    """
    gc.set_threshold(YOUNG)
    shares.fuzz = config.getoption("--fuzz")
    # A job in the background is started with signals ignored that its tests still send.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # workers and their threads share few cores
    if native.KEPT not in os.environ:  # workers take the folder of the process that starts them
        cache = getattr(config, "cache", None)  # there is none with `-p no:cacheprovider`
        folder = None if cache is None else cache.mkdir("batches")
        os.environ[native.KEPT] = str(folder or "")
        if folder is not None:
            native.forget(folder)
        if cache is not None and sys.dont_write_bytecode:
            # Who wants no byte code in the tree gets it beside; hundreds of processes would compile every module.
            os.environ["PYTHONPYCACHEPREFIX"] = str(cache.mkdir("bytecode"))
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not asked for, and deal out what is long."""
    left_out = [item for item in items if not _asked_for(config, item)]
    config.hook.pytest_deselected(items=left_out)
    chosen = {*items} - {*left_out}
    items[:] = [item for item in items if item in chosen]
    _deal(items)


def _asked_for(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether a run has a test: one that is deep where the option says so, or where its file is named."""
    is_deep = _is_deep(item)
    deep = config.getoption("--deep")
    if deep is None:
        words = (str(word).partition("::")[0] for word in config.args)
        return not is_deep or item.path in [config.invocation_params.dir / word for word in words]
    return bool(deep == "all" or is_deep == (deep == "only"))


def _is_deep(item: pytest.Item) -> bool:
    """Whether a test is marked deep, or is one of random programs and no smoke run: the first batch of a few files."""
    if item.get_closest_marker("deep") is not None:
        return True
    batch = item.callspec.params.get("batch", 0) if hasattr(item, "callspec") else 0
    return item.path.parent.name == "property" and (item.path.stem not in SMOKE or batch > 0)


def _deal(items: list[pytest.Item]) -> None:
    """Let each worker begin with its share of the tests marked ``early``, as xdist deals them out in equal parts."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    early = [item for item in items if item.get_closest_marker("early") is not None]
    others = iter([item for item in items if item.get_closest_marker("early") is None])
    dealt: list[pytest.Item] = []
    left = len(items)
    for worker in range(workers):
        part = early[worker::workers][: left // (workers - worker)]
        part += islice(others, left // (workers - worker) - len(part))
        left -= len(part)
        dealt += part
    items[:] = [*dealt, *others]


def pytest_collection_finish() -> None:
    """Leave the tests themselves, which stay to the end, out of every search for garbage."""
    gc.collect()
    gc.freeze()
