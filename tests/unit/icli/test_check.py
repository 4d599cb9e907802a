"""What ``i check`` does with written schedules, apart from the usual case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ilang.codegen import comparison
from ilang.core import pipeline
from ilang.core.diagnostic import DataError, InternalError, ToolError
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from ilang.icli.commands.check import compared
from tests.property.test_fuzz import needs_compiler

TEXT = "-i~i | i:4 | i' i"


def shaped(text: str) -> Shaped:
    return pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "f"))


def no_compiler(*_: object) -> bool:
    raise ToolError("E0901", "no C compiler was found")


def broken_compiler(*_: object) -> bool:
    raise ToolError("E0903", "the C compiler failed")


def test_what_has_no_schedule_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "build_program", broken_compiler)
    assert compared(shaped("-i~i")) is None


def test_without_a_compiler_only_legality_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "build_program", no_compiler)
    found = compared(shaped(TEXT))
    assert found is not None
    assert found["runs"] == 0
    assert "not run" in str(found["says"])


def test_a_compiler_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "build_program", broken_compiler)
    with pytest.raises(ToolError, match="E0903"):
        compared(shaped(TEXT))


@needs_compiler
def test_code_that_computes_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(program: Shaped) -> Program:
        other = pipeline.infer(pipeline.graph_of(pipeline.text_component("^i~i"), program.name))
        return pipeline.lower(other)

    monkeypatch.setattr(comparison, "lower", wrong)
    with pytest.raises(InternalError, match="E9905") as caught:
        compared(shaped(TEXT))
    assert "expected" in caught.value.message


@pytest.mark.parametrize("said", ["out of memory", "ERROR: AddressSanitizer failed to allocate"])
def test_memory_that_ran_out_is_no_fault_of_the_compiler(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []

    def build(*_: object, sanitize: bool = True) -> bool:
        tried.append(sanitize)
        return sanitize

    monkeypatch.setattr(comparison, "build_program", build)
    monkeypatch.setattr(comparison, "_trouble", lambda _folder: said)
    with pytest.raises(DataError) as caught:
        compared(shaped(TEXT))
    assert tried == [True, False], "once more without sanitizers, which take memory of their own"
    assert (caught.value.code, caught.value.status) == ("E0713", 1)
    assert re.search(
        r"not enough memory to run f, scheduled: .* \d+ bytes at i=\d+", caught.value.message
    )


@needs_compiler
def test_a_test_that_memory_was_too_little_for(tmp_path: Path) -> None:
    """A program whose memory is limited says so itself."""
    (tmp_path / "test").write_text("#!/bin/sh\nkill -KILL $$\n")
    (tmp_path / "test").chmod(0o755)
    assert comparison._is_out_of_memory(comparison._trouble(tmp_path))
    (tmp_path / "test").write_text("#!/bin/sh\necho f: out of memory; exit 1\n")
    assert comparison._trouble(tmp_path) == "f: out of memory"
