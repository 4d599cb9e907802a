"""Targets on which programs run, and for which they are written as text: the names that calls take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ilang.core import pipeline
from ilang.core.diagnostic import DataError, enumerated

if TYPE_CHECKING:
    from ilang.core.ir.shaped import Shaped

DEVICES = ("cuda", "cuda-emulated")
TARGETS = ("c", "numpy", *DEVICES)
"""The names of what runs a program; devices are those of ``offload.py``."""


def check_target(target: object) -> None:
    """Refuse what is no target. Raises DataError E0712."""
    if type(target) is not str or target not in TARGETS:
        from ilang.codegen.call.arguments import shown

        known = enumerated([f'"{name}"' for name in TARGETS])
        raise DataError("E0712", f"there is no target {shown(target)}", help=f"targets are {known}")


def source_of(shaped: Shaped, target: object) -> str:
    """A program as text for a target, its formulas above it. Raises DataError E0712."""
    from ilang.codegen.project.comments import formula_lines
    from ilang.codegen.targets import c, cuda
    from ilang.codegen.targets.session import ExportedFunction
    from ilang.core.machine import MACHINES

    if target not in ("c", "cuda"):
        help_line = 'source takes "c" or "cuda"'
        raise DataError("E0712", f"there is no text for target {target!r}", help=help_line)
    program = pipeline.lower(shaped, MACHINES[target])
    head = "\n".join(formula_lines([ExportedFunction(shaped, program)]))
    return f"{head}\n */\n\n{cuda.emit(program) if target == 'cuda' else c.emit(program)}"
