"""A program's CUDA against what it means: run on the emulator with every access checked, in several orders of threads.

The results it is compared with are those of the reference evaluator, as the self-test of a project has them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ilang.codegen.call.plan import OUT_OF_RANGE
from ilang.codegen.device.offload import Offloaded
from ilang.codegen.emulator.program import emulated
from ilang.codegen.emulator.runtime import emulator
from ilang.codegen.project.cases import Case, StoredOutput, case_of, inputs_of
from ilang.codegen.project.extents import MOST_RUN, extents_of
from ilang.codegen.targets.session import ExportedFunction
from ilang.core.diagnostic import DataError, InternalError, ToolError, counted
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import GPU
from ilang.core.pipeline import lower
from ilang.core.record import record

ORDERS = (0, 1, 5)
"""Of threads: forward, backward, at random."""


@record
class CudaCheck:
    """The check of the CUDA of a program: at how many sets of extents, in how many orders, and in words."""

    runs: int
    orders: int
    says: str


def check_cuda(shaped: Shaped) -> CudaCheck:
    """Run a program on data of several extents: small ones, each 0, all 1, and more than its tiles.

    Raises:
        InternalError: E9905 (a result is not that of the reference evaluator), E9912 (the emulator found a mistake).
        ToolError: E0901 to E0909 (no C++ compiler, or it fails).
    """
    function = ExportedFunction(shaped, lower(shaped, GPU))
    if MOST_RUN < sum(isinstance(node, Assignment) for node in shaped.nodes):
        return CudaCheck(0, 0, f"CUDA not run: more than {MOST_RUN:,} expressions")
    runs = extents_of(function)[0]
    if not runs:
        return CudaCheck(0, 0, "CUDA not run: too large")
    program = Offloaded(shaped, emulated(checked=True))
    emulator().take_findings()
    for extents in runs:
        case = case_of(function, extents)
        arrays = inputs_of(shaped, extents, case.starts, case.below)
        for order in ORDERS:
            with emulator().settings(order=order), _judged(shaped, case):
                results = program.call(arrays, {}, extents, None)
                _check_results(shaped, case, results if isinstance(results, tuple) else (results,))
            findings = emulator().take_findings()
            if findings:
                more = f", and {len(findings) - 1} more" if 1 < len(findings) else ""
                raise _wrong(shaped, f"{findings[0].says()}{more}")
    says = f"CUDA right at {counted(len(runs), 'set')} of extents in {len(ORDERS)} orders of threads, emulated"
    return CudaCheck(len(runs), len(ORDERS), says)


@contextlib.contextmanager
def _judged(shaped: Shaped, case: Case) -> Iterator[None]:
    """A context in which a failure of the device is a mistake in the code, and wrong indices are refused."""
    try:
        yield
    except ToolError as error:
        if error.code != "E0922":
            raise
        raise _wrong(shaped, error.message) from None
    except DataError as error:
        if error.code != OUT_OF_RANGE or case.outputs is not None:
            raise


def _wrong(shaped: Shaped, fault: str) -> InternalError:
    return InternalError(
        "E9912",
        f"the CUDA of {shaped.name} is wrong: {fault}",
        help="this is a bug in i: run the program with target c, and report it",
    )


def _check_results(shaped: Shaped, case: Case, results: Sequence[Any]) -> None:
    if case.outputs is None:
        raise _wrong(shaped, f"it takes an index that is none, at extents {list(case.extents)}")
    for value, stored, result in zip(shaped.outputs, case.outputs, results, strict=True):
        wrong = first_wrong(stored, result)
        if wrong is None:
            continue
        got, want = np.reshape(result, -1)[wrong * stored.step], stored.values[wrong]
        name = shaped.tensors[value].name
        raise InternalError(
            "E9905",
            f"{shaped.name} in CUDA does not give what it means: {name}[{wrong * stored.step}] is {got}, "
            f"expected {want}, at extents {list(case.extents)}",
            help="this is a bug in i: run the program with target c, and report it",
        )


def first_wrong(stored: StoredOutput, result: Any) -> int | None:
    """The number of the first stored element that a result does not have, as the self-test of a project compares."""
    got, want = np.reshape(result, -1)[:: stored.step], stored.values
    if not got.size:
        return None
    equal = got == want
    if got.dtype.kind == "f":
        with np.errstate(all="ignore"):
            error = np.abs(got.astype(np.float64) - want.astype(np.float64))
            bound = stored.relative * (np.abs(want.astype(np.float64)) + stored.scale)
            equal |= (np.isfinite(want) & (error <= bound)) | (np.isnan(want) & np.isnan(got))
    return None if equal.all() else int(np.argmin(equal))
