"""Planted bugs: each is found, as what it is, at its line."""

import re
from collections.abc import Iterator

import numpy as np
import pytest

from ilang.codegen.call.native import Native
from ilang.codegen.emulator.runtime import Emulator, Finding
from tests.unit.emulator.conftest import HERE, on_device, program

TEXT = (HERE / "bugs.cu").read_text("utf-8")
NAMED = re.compile(r'__global__ void (\w+)|is\("(\w+)"\)')
MARK = re.compile(r"// BUG (.+)$")


def marks() -> Iterator[tuple[str, int, str]]:
    """Each bug by its name, its line and the kind of finding."""
    name = ""
    for number, line in enumerate(TEXT.splitlines(), start=1):
        named = NAMED.search(line)
        name = (named[1] or named[2]) if named else name
        mark = MARK.search(line)
        if mark and name not in ("unwritten_global", "fills") and "is_read" not in line:
            yield name, number, mark[1]


BUGS = [mark for mark in marks() if mark[2] != "uninitialised copy"]
"""Those that the function ``bug`` knows."""


@pytest.fixture
def bugs(machine: Emulator) -> Native:
    machine.take_findings()
    return program("bugs.cu", checked=True)


def found(machine: Emulator, bugs: Native, name: str) -> tuple[int, tuple[Finding, ...]]:
    x = on_device(np.arange(256, dtype=np.float32))
    y = on_device(np.zeros(64, np.float32))
    host = np.zeros(256, np.float32)
    status = bugs.call("bug", np.frombuffer(name.encode() + b"\0", np.uint8), x, y, host)
    return status, machine.take_findings()


def test_there_are_many() -> None:
    assert len(BUGS) >= 20


@pytest.mark.parametrize(("name", "line", "kind"), BUGS, ids=[bug[0] for bug in BUGS])
def test_a_bug_is_found_at_its_line(
    machine: Emulator, bugs: Native, name: str, line: int, kind: str
) -> None:
    _, findings = found(machine, bugs, name)
    assert ("bugs.cu", line, kind) in [(f.file, f.line, f.kind) for f in findings]
    if "copy" not in name and "host" not in name:
        assert {f.kernel for f in findings} == {name}


@pytest.mark.parametrize(
    ("name", "status"), [("too_many_threads", 9), ("empty_grid", 9), ("too_much_dynamic", 1)]
)
def test_a_launch_that_cannot_be(machine: Emulator, bugs: Native, name: str, status: int) -> None:
    assert found(machine, bugs, name) == (status, ())


def test_too_many_shared_variables(machine: Emulator, bugs: Native) -> None:
    status, findings = found(machine, bugs, "too_much_shared")
    assert status == 9
    assert [f.kind for f in findings] == ["too much shared memory"]


@pytest.mark.parametrize("is_read", [0, 1])
def test_memory_that_nothing_wrote(machine: Emulator, bugs: Native, is_read: int) -> None:
    assert bugs.call("unwritten", np.zeros(64, np.float32), is_read) == 0
    kind = "uninitialised global read" if is_read else "uninitialised copy"
    (finding,) = machine.take_findings()
    line = next(n for n, text in enumerate(TEXT.splitlines(), 1) if f"BUG {kind}" in text)
    assert (finding.kind, finding.file, finding.line) == (kind, "bugs.cu", line)


def test_a_leak_on_a_failed_allocation(machine: Emulator, bugs: Native) -> None:
    before = machine.live_allocations()
    with machine.settings(failing=2):
        assert bugs.call("leak") == 2
    assert machine.live_allocations() == before + 1
    assert bugs.call("free_what_was_lost") == 0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("write_past_the_end", "illegal access"),
        ("partial_shuffle", "deadlock"),
        ("divergent_barrier", "barrier divergence"),
        ("copy_too_long", "invalid copy"),
    ],
)
def test_what_the_fast_build_finds(machine: Emulator, name: str, kind: str) -> None:
    """A fault of a kernel does not end the process, and the next kernel runs."""
    fast = program("bugs.cu", checked=False)
    _, findings = found(machine, fast, name)
    assert [f.kind for f in findings] == [kind]
    assert found(machine, fast, "two_writers") == (0, ())


def test_a_finding_in_words(machine: Emulator, bugs: Native) -> None:
    _, (race,) = found(machine, bugs, "two_writers")
    place = f"bugs.cu:{next(line for name, line, _ in BUGS if name == 'two_writers')}"
    assert race.says() == (
        f"shared-memory race at {place}: thread 32 writes what thread 0 wrote with no barrier between, "
        f"shared offset 0 at {place} [two_writers, block (0, 0, 0), thread (32, 0, 0)]"
    )
