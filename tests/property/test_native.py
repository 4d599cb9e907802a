"""Batches of compiled programs that are kept from one run of the test suite to the next."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ilang.core.ir.kernel import Program
from ilang.core.pipeline import graph_of, infer, lower, text_component
from tests.property import native
from tests.property.test_fuzz import needs_compiler

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def sums(text: str, mode: str = "baseline") -> list[float]:
    """What a program of a matrix gives."""
    program = lower(infer(graph_of(text_component(text), "f")))
    call = native.Call(0, X.shape, (X,), (X.shape[:1],))
    (answer,) = native.run([program], [call], mode)
    assert not answer.trouble
    return answer.outputs[0].tolist()  # type: ignore[no-any-return]


@needs_compiler
def test_a_text_is_compiled_once_in_each_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, plain = [], native._compile

    def counted(text: str, header: str, mode: str, folder: Path) -> Path:
        compiled.append(mode)
        return plain(text, header, mode, folder)

    monkeypatch.setattr(native, "_compile", counted)
    monkeypatch.setenv(native.KEPT, str(tmp_path / "batches"))
    assert sums("+ij~i") == sums("+ij~i") == [3, 12]
    assert sums(">ij~i") == [2, 5]
    assert sums("+ij~i", "fast") == [3, 12]
    assert compiled == ["baseline", "baseline", "fast"]
    assert len(list((tmp_path / "batches").iterdir())) == 3
    monkeypatch.setenv(native.KEPT, "")
    assert sums("+ij~i") == [3, 12]
    assert compiled[3:] == ["baseline"]


@needs_compiler
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("volatile int64_t most = INT64_MAX; most += 1;", "signed integer overflow"),
        ("((volatile char *)a[1])[12] = 1;", "heap-buffer-overflow"),
    ],
)
def test_what_dies_sanitized_is_described(
    monkeypatch: pytest.MonkeyPatch, statement: str, words: str
) -> None:
    plain = native.source

    def wrong(batch: Sequence[Program], mode: str) -> str:
        return plain(batch, mode).replace("(void)s; return f(", f"(void)s; {statement} return f(")

    monkeypatch.setattr(native, "source", wrong)
    program = lower(infer(graph_of(text_component("+ij~i"), "f")))
    call = native.Call(0, X.shape, (X,), (X.shape[:1],))
    answers = native.run([program], [call, call], "sanitized")
    assert len(answers) == 2
    assert all(words in answer.trouble for answer in answers)


def test_what_was_not_used_for_longest_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "MOST_KEPT", 25)
    for age, name in enumerate(("new", "old", "oldest")):
        (tmp_path / name).write_bytes(bytes(10))
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    native.forget(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "old"}
