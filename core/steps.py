"""The steps of the pipeline: what one is, and the steps of each kind of machine, as data.

A step is imported when it is first taken, so that the table of stages costs nothing to read.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ilang.core.machine import Kind
from ilang.core.record import record, replace

if TYPE_CHECKING:  # what most programs do not need is imported where it is used
    from ilang.core.infer.solved import Solved
    from ilang.core.ir.graph import Graph
    from ilang.core.ir.kernel import Program
    from ilang.core.ir.shaped import Shaped


T = TypeVar("T")


@record
class Step:
    """One step of the pipeline.

    ``module`` is the file of the step, ``takes`` and ``gives`` are the IRs before and after it. ``run`` computes the
    result of a value and a machine, and ``verify`` checks it against what it was made from. ``show`` prints it as the
    ``stage`` of that name; no two steps of a machine have one name.
    """

    module: str
    takes: str
    gives: str
    summary: str
    run: Callable[..., Any]
    verify: Callable[[Any, Any], None] | None
    stage: str
    show: Callable[[Any], str]


def lazy(module: str, name: str) -> Callable[..., Any]:
    """A function of a module of ``core``, which is imported when it is first called."""

    def call(*values: Any) -> Any:
        return getattr(importlib.import_module(f"ilang.core.{module}"), name)(*values)

    return call


def verified(module: str, value: T) -> T:
    """A value that the verifier in a module of ``core/check`` accepts."""
    lazy(f"check.{module}", "verify")(value)
    return value


def of_value(module: str, name: str) -> Callable[[Any, Any], Any]:
    """A function of one value as the ``run`` or ``verify`` of a step, which have two arguments."""
    call = lazy(module, name)
    return lambda value, _: call(value)


def check(module: str) -> Callable[[Any, Any], Any]:
    """The verifier in a module of ``core/check``, as a function of a value and of what it was made from."""
    return of_value(f"check.{module}", "verify")


graph_text: Callable[[Graph], str] = lazy("explain.graph", "graph_text")
extents_text: Callable[[Solved], str] = lazy("explain.extents", "extents_text")
shapes_text: Callable[[Shaped], str] = lazy("explain.shapes", "shapes_text")
loops_text: Callable[[Program], str] = lazy("explain.kernel", "kernels_text")


BUILD = Step(
    "core/build/program.py",
    "syntax",
    "core/ir/graph.py",
    "tensor functions and routines, followed statement by statement",
    lambda definition, _: lazy("build.program", "built")(*definition),
    None,
    "graph",
    lambda built: graph_text(built.graph),
)
"""The second step where what is run is a tensor function or a routine."""

GRADIENTS = Step(
    "core/transform/attached.py",
    "shaped",
    "core/ir/shaped.py",
    "what `backprop` asks for computed where it is used",
    of_value("transform.attached", "attached"),
    check("shaped"),
    "gradients",
    lazy("explain.assignments", "assignments_text"),
)
"""The step to a routine in which gradients are in the place of what stood for them."""


def _kernel_pass(module: str, summary: str) -> Step:
    """The step from kernels to kernels of a module of ``core/passes``, which has the name of the stage."""
    stage = module.rpartition(".")[2]
    return Step(
        f"core/passes/{module.replace('.', '/')}.py",
        "kernel",
        "core/ir/kernel.py",
        summary,
        of_value(f"passes.{module}", f"kernel_to_{stage}"),
        lazy("check.kernel", "verify"),
        stage,
        loops_text,
    )


def _gpu_pass(stage: str, summary: str, verify: str = "verify") -> Step:
    """The step of a module of ``core/passes/gpu``."""
    step = _kernel_pass(f"gpu.{stage}", summary)
    return replace(step, gives="core/ir/gpu.py", verify=lazy("check.gpu", verify))


TIGHTENED = _kernel_pass("tightened", "loop bounds tightened from guards")
FOLDS = _kernel_pass("folded", "loops of one iteration replaced by what they do")
GUARDS = _kernel_pass("guarded", "loops skipped where an extent inside is 0")
NAMES = _kernel_pass("named", "names for tiles, and for threads and rows of a GPU")

CPU_PASSES = (
    TIGHTENED,
    _kernel_pass("cpu.carried", "accumulators carried from one iteration to the next"),
    _kernel_pass("cpu.transposes", "transposing copies, by squares of vectors"),
    _kernel_pass("cpu.fused", "loops over the same elements fused"),
    _kernel_pass("cpu.lanes", "reductions in vector lanes"),
    _kernel_pass("cpu.threads", "independent loops marked parallel"),
    _kernel_pass("cpu.tiles", "tiles as micro-kernels, in vector registers, with packing"),
    FOLDS,
    _kernel_pass("cpu.outlined", "functions of parallel loops"),
    _kernel_pass("cpu.versions", "loops unrolled, split at boundaries, or with reciprocals"),
    GUARDS,
    NAMES,
)
"""The passes of a processor over loops: vectors, threads, copies."""

GPU_PASSES = (
    _kernel_pass("gpu.forwarded", "stored elements read from variables"),
    _kernel_pass("gpu.fragments", "tiles of matrix units as fragments of warps"),
    _gpu_pass(
        "bind", "loops mapped to launches, blocks and threads, private buffers to memory spaces"
    ),
    _gpu_pass("fma", "contraction to fused multiply-adds"),
    replace(TIGHTENED, gives="core/ir/gpu.py", verify=lazy("check.gpu", "verify")),
    _gpu_pass("full_tiles", "full tiles split from boundary tiles"),
    _gpu_pass("vectorized", "loads and stores vectorized, coalesced, and held in registers"),
    _gpu_pass("buffers", "double buffering"),
    _gpu_pass("matrices", "matrix instructions"),
    replace(FOLDS, gives="core/ir/gpu.py", verify=lazy("check.gpu", "verify")),
    _gpu_pass("indices", "indices narrowed to 32 bits"),
    _gpu_pass("barriers", "barriers between threads of a block", "verify_ordered"),
    replace(GUARDS, gives="core/ir/gpu.py", verify=lazy("check.gpu", "verify_ordered")),
    replace(NAMES, gives="core/ir/gpu.py", verify=lazy("check.gpu", "verify_ordered")),
)
"""The passes of a GPU over loops: launches, grids and threads."""

PASSES: dict[Kind, tuple[Step, ...]] = {"cpu": CPU_PASSES, "gpu": GPU_PASSES}
"""The passes of each kind of machine over loops; ``codegen/targets`` takes it from there."""
