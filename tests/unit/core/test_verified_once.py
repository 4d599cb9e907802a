"""What a pass leaves as it is has been verified, and is not looked at again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ilang.core.check import kernel as check
from ilang.core.diagnostic import InternalError
from ilang.core.ir.kernel import Kernel, Program, Store, map_statements
from ilang.core.passes.cpu import versions
from ilang.core.pipeline import graph_of, infer, lower, text_component
from ilang.core.record import replace
from ilang.core.steps import CPU_PASSES

changed = check.changed


def program_of(text: str) -> Program:
    return lower(infer(graph_of(text_component(text), "program")))


def test_kernels_that_no_pass_changes_are_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Sequence[Kernel]] = []

    def noted(program: Program, before: Program) -> Sequence[Kernel]:
        looks.append(changed(program, before))
        return looks[-1]

    monkeypatch.setattr(check, "changed", noted)
    program_of("-i~i | +ij~i")
    pointwise = sum(kernel.name == "k0" for kernels in looks for kernel in kernels)
    assert pointwise <= 3 < len(CPU_PASSES)  # its loop is marked, fetches, and is a function


def test_what_a_pass_breaks_is_still_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(program: Program) -> Program:
        first, *others = program.kernels
        body = map_statements(
            first.body, lambda s: replace(s, index=()) if isinstance(s, Store) else s
        )
        return replace(program, kernels=(replace(first, body=body), *others))

    monkeypatch.setattr(versions, "kernel_to_versions", broken)
    with pytest.raises(InternalError):
        program_of("-i~i | -i~i")


def test_other_buffers_mean_another_look_at_every_kernel() -> None:
    program = program_of("-i~i | -i~i")
    buffers = tuple(replace(buffer, dtype="f64") for buffer in program.buffers)
    assert not changed(program, program)
    assert changed(replace(program, buffers=buffers), program) == program.kernels
