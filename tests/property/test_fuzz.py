"""Random programs, more of them with `--fuzz`, and every program that once failed."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from ilang.codegen.compile.compilers import find_compiler
from ilang.core.diagnostic import ToolError
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import CPU, Machine
from ilang.core.schedule.choose import known
from ilang.core.schedule.choose.accesses import Accesses, strided_order
from tests.property import checking, fuzz, meaning, programs, spec_checking, specs, trial, writer
from tests.property.checking import check

BATCH, SEED = 30, 1
OTHERS = 1_000_000
"""The seed of programs that are none of those."""


def _has_compiler() -> bool:
    try:
        return bool(find_compiler())
    except ToolError:
        return False


needs_compiler = pytest.mark.skipif(not _has_compiler(), reason="needs a C compiler")


@needs_compiler
@pytest.mark.batches(2)
def test_random_programs(batch: int) -> None:
    start = SEED + BATCH * batch
    tally = fuzz.work(range(start, start + BATCH), "sanitized")
    assert not tally.failures, tally.told()
    assert tally.counts["programs"] == BATCH
    assert tally.counts["open_elements"] < 0.2 * tally.counts["elements"]


@pytest.mark.deep
@needs_compiler
@pytest.mark.parametrize("mode", ["fast", "threads"])
@pytest.mark.batches(1)
def test_random_programs_otherwise_compiled(batch: int, mode: str) -> None:
    start = OTHERS + 12 * batch
    tally = fuzz.work(range(start, start + 12), mode)
    assert not tally.failures, tally.told()


@pytest.mark.deep
@needs_compiler
@pytest.mark.parametrize(("count", "mode"), [(18, "sanitized"), (9, "fast"), (9, "threads")])
@pytest.mark.batches(1)
def test_random_specifications(batch: int, count: int, mode: str) -> None:
    seed = count * batch
    tally = spec_checking.check(range(seed, seed + count), mode)
    assert not tally.failures, tally.told()
    assert tally.counts["programs"] == count
    assert tally.counts["runs"]
    assert tally.counts["by_rows"]
    assert tally.counts["misfits"]
    assert tally.counts["schedules"]


def test_random_specifications_have_every_form() -> None:
    drawn = [specs.generate(seed) for seed in range(300)]
    found = [stage for p in drawn for stage in p.stages if isinstance(stage, specs.Spec)]
    sides = [[a for s in spec.operands for a in s.axes] for spec in found]
    results = [list(spec.result.axes) for spec in found]
    kinds = {specs.Label, specs.Blank, specs.Fixed, specs.Window, specs.Joined}
    assert {type(axis) for axes in sides for axis in axes} == kinds
    assert {type(axis) for axes in results for axis in axes} == kinds
    windows = [axis for axes in sides for axis in axes if isinstance(axis, specs.Window)]
    assert {w.padded for w in windows} == {True, False}
    assert {w.stride for w in windows} >= {1, 2, 3}
    assert {w.dilation for w in windows} == {1, 2}
    assert {len(spec.operands) for spec in found} == {1, 2, 3}
    text = "\n".join(p.text for p in drawn)
    assert all(sign in text for sign in ("...", "..vv..", "|", "->", " << ", " >> ", "^", "_"))
    assert {len(p.stages) for p in drawn} == {1, 2, 3}
    assert {n for p in drawn for run in p.runs for a in run for n in a.shape} >= {0, 1, 2, 3, 7}


@pytest.mark.deep
@needs_compiler
@pytest.mark.batches(1)
def test_any_order_of_loops_is_right(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowering does not rest on the orders that the compiler prefers."""
    rng = random.Random(SEED)

    def shuffled(
        node: Assignment, accesses: Accesses, extents: Extents, machine: Machine
    ) -> tuple[int, ...]:
        order = strided_order(node, accesses, extents, machine)
        return tuple(rng.sample(order, len(order)))

    monkeypatch.setattr(known, "strided_order", shuffled)
    start = 2 * OTHERS + 15 * batch
    tally = fuzz.work(range(start, start + 15), "sanitized")
    assert not tally.failures, tally.told()


@pytest.mark.deep
@needs_compiler
@pytest.mark.parametrize("path", sorted(fuzz.CASES.glob("*.json")), ids=lambda path: path.stem)
def test_what_once_failed(path: Path) -> None:
    kept = trial.load(path)
    for mode in ("sanitized", "fast"):
        tally = check([kept], mode)
        assert not tally.failures, tally.told()


def test_programs_are_those_of_their_seed() -> None:
    assert trial.draw(7).written == trial.draw(7).written
    assert trial.draw(7).written != trial.draw(8).written


RELATION = re.compile("[<>=]+")


def test_a_product_that_overflows_may_be_added_unrounded() -> None:
    drawn = trial.draw(57000136, True)
    known = meaning.evaluate(drawn.program, drawn.runs[0])[0]
    assert known.error is not None
    assert np.isnan(known.value[19, 10])
    assert known.error[19, 10] == np.inf
    assert known.error[0, 0] == 0, "what is given is infinite, of both signs"
    assert np.isnan(known.value[0, 0])


def test_programs_use_the_whole_language() -> None:
    """Operators, types, sharing, diagonals, combinators: what the generator is there for does occur."""
    trials = [trial.draw(seed) for seed in range(600)]
    text = "\n".join(t.written.text for t in trials)
    nodes = [node for t in trials for node in t.program.nodes]
    expressions = [node for node in nodes if isinstance(node, programs.Expression)]
    assert {e.op for e in expressions} >= {*programs.COMPARISONS, *programs.LOGIC, "!!", ""}
    assert {e.op for e in expressions if e.reduces()} == {
        "",
        *programs.REDUCIBLE,
        *programs.ARGUMENTS,
    }
    assert {len(e.reads) for e in expressions} == {1, 2}
    assert {e.op for e in expressions if e.at} >= {"+", "*", "<<", "&&"}
    assert {e.at.startswith(":") for e in expressions if e.at} == {True, False}
    looked = [node for node in nodes if isinstance(node, programs.Lookup)]
    assert {bool(node.extent) for node in looked} == {True, False}
    assert {bool(node.schedule) for node in looked} == {True, False}
    guarded = [e for e in expressions if any(e.guards)]
    assert {e.reduces() for e in guarded} == {True, False}
    assert {relation for e in guarded for relation in RELATION.findall("".join(e.guards))} == {
        *programs.RELATIONS
    }
    affine = [e for e in expressions if e.left]
    assert {e.reduces() for e in affine} == {True, False}
    assert {len(e.reads) for e in affine} == {1, 2}
    assert any(len(set(p)) < len(p) for e in expressions for p in e.patterns)
    assert {d for t in trials for d in t.program.dtypes()} == {*programs.DTYPES, None}
    assert {r for t in trials for r in t.program.ranks()} == set(range(7))
    assert all(symbol in text for symbol in (">> ", "<< ", " & ", " | ", "~(", "i(", " = "))
    assert any(count > 1 for t in trials for count in t.program.uses().values())
    assert any(len(set(t.program.outputs)) < len(t.program.outputs) for t in trials)
    assert {n for t in trials for run in t.runs for a in run for n in a.shape} >= {0, 1, 2, 3, 65}


def test_trials_are_kept_whole(tmp_path: Path) -> None:
    for seed in range(20):
        one = trial.draw(seed)
        again = trial.load(trial.save(one, tmp_path, {"step": "none"}))
        assert again.written == one.written
        assert again.fixed == one.fixed
        for run, other in zip(one.runs, again.runs, strict=True):
            for a, b in zip(run, other, strict=True):
                assert a.dtype == b.dtype
                assert a.tobytes() == b.tobytes() or a.dtype.kind == "f"


@pytest.mark.deep
def test_plain_text_means_the_same() -> None:
    """However a program is written, it is the same graph: inference agrees with the generator."""
    for seed in range(60):
        one = trial.draw(seed)
        plain = writer.write(one.program, random.Random(0), plain=True)
        assert set(plain.program.outputs) == set(one.program.outputs)
        assert sorted(plain.program.inputs) == sorted(one.program.inputs)
        other = trial.Trial(seed, plain, False, ())
        checking.legal_of(checking.shaped_of(other, "p"), CPU)
