"""Random programs of einx, elementwise kernels, NumPy's einsum and named values, alone and handed on; see `--fuzz`."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang.core.record import replace
from tests.property import fuzz, notation_checking, notations
from tests.property.notations import NOTATIONS, Drawn
from tests.property.test_fuzz import needs_compiler

COUNT = 12
EMULATED = 1_000_000
"""The seeds of programs as CUDA begin here."""


def check(notation: str, start: int, count: int, mode: str) -> None:
    tally = notation_checking.check(notation, range(start, start + count), mode)
    assert not tally.failures, tally.told()
    assert tally.counts["runs"] == count


@needs_compiler
@pytest.mark.batches(1)
@pytest.mark.parametrize("notation", NOTATIONS)
def test_as_c(notation: str, batch: int) -> None:
    check(notation, COUNT * batch, COUNT, "sanitized")


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.batches(1)
@pytest.mark.parametrize("notation", NOTATIONS)
def test_as_cuda(notation: str, batch: int) -> None:
    check(notation, EMULATED + 4 * batch, 4, "cuda-checked")


def test_one_command_draws_from_every_notation() -> None:
    others = {"index", "einsum, extended", "mixed", "gradients of choices"}
    assert {*fuzz.NOTATIONS} == {*others, *NOTATIONS}


def test_programs_are_handed_on_by_wires_and_by_names() -> None:
    drawn = [notations.generate(name, seed) for name in NOTATIONS for seed in range(60)]
    texts = {kind: [d.text for d in drawn if d.notation == kind and d.text] for kind in NOTATIONS}
    for kind in ("einx", "elementwise", "einsum"):
        assert any(" >> " in text for text in texts[kind])
        assert any(text.startswith("f(") for text in texts[kind])
        assert any(" >> " not in text and not text.startswith("f(") for text in texts[kind])
    paths = [d.component.graph() for d in drawn if d.notation == "einsum"]
    assert any(len(graph.nodes) > len(graph.inputs) + 1 for graph in paths)


@needs_compiler
def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanings are compared with the oracle's results, element by element."""

    def off_by_one(notation: str, seed: int) -> Drawn:
        drawn = generate(notation, seed)
        return replace(drawn, results=tuple(np.asarray(r + 1) for r in drawn.results))

    generate = notations.generate
    monkeypatch.setattr(notations, "generate", off_by_one)
    for notation in NOTATIONS:
        drawn = generate(notation, 3)
        tally = notation_checking.check(notation, [3], "sanitized")
        assert len(tally.failures) == any(result.size for result in drawn.results)
