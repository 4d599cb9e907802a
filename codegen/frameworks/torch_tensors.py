"""Calls with tensors of PyTorch: the same memory in and out, and gradients by its autograd.

A tensor on a GPU runs there, on the current stream. The backward pass is a call of ``f.grad()`` with tensors, which has
a gradient of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ilang.codegen.device.device_plans import ArrayReading, TensorMemory, leave, read_tensors
from ilang.codegen.device.streams import DEFAULT_STREAM
from ilang.codegen.frameworks.dynamo import uncompiled
from ilang.core.diagnostic import DataError, DataTypeError

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Output
    from ilang.codegen.components.component import Component
    from ilang.codegen.session.function import Function
    from ilang.codegen.session.pure_call import PureCall

DTYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bool: "bool",
}
"""The element types of tensors."""
NUMPY = {np.dtype(str(dtype).removeprefix("torch.")): dtype for dtype in DTYPES}
"""The element types of PyTorch by those of NumPy."""


def call(component: Component, arrays: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The results of a component for arrays, tensors among them.

    Raises:
        Error: DataError E0703 (element type), E0716 (devices, ``out``), and those of a call.
    """
    return uncompiled(_call)(component, arrays, options)


def _call(component: Component, arrays: Sequence[Any], options: Mapping[str, Any]) -> Any:
    if not tracks(arrays):
        return run(component, arrays, options)
    if options["out"] is not None:
        message = "out= has no gradient, and an input asks for one"
        raise DataError("E0716", message, help="leave out= out, or call inside torch.no_grad()")
    return TrackedCall.apply(component, options, *arrays)


def is_tracked(value: Any) -> bool:
    """Whether a value is a tensor for which a gradient is wanted."""
    return isinstance(value, torch.Tensor) and value.requires_grad


def tracks(arrays: Sequence[Any]) -> bool:
    """Whether autograd wants the gradient of one of the arrays."""
    return torch.is_grad_enabled() and any(map(is_tracked, arrays))


def call_pure(
    function: Function, arrays: Sequence[Any], config: Any = None, parameters: bool = False
) -> PureCall:
    """A definition for tensors like some; ``parameters`` come after the inputs.

    Raises:
        DataError: E0758 (an element type), E0764 (it keeps something). Error: shapes that do not fit.
    """
    known = function.pure.of([tuple(map(int, each.shape)) for each in arrays], config, parameters)
    return known.of_types([DTYPES.get(each.dtype) or str(each.dtype) for each in arrays])


def run(component: Component, arrays: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The results, without gradients."""
    given, out = dict(options), options["out"]
    devices = {each.device for each in arrays if isinstance(each, torch.Tensor)}
    device = devices.pop()
    if devices:
        message = f"tensors are on {device} and {devices.pop()}"
        raise DataError("E0716", message, help="move them to one device: x.to(y.device)")
    if device.type == "cuda":
        if given["target"] == "c":
            given["target"] = "cuda"
        if given["stream"] is None:
            given["stream"] = current_stream(device)
    if out is not None:
        several = isinstance(out, tuple)
        given["out"] = tuple(map(plain, out)) if several else plain(out)
    results = component.program.run(tuple(map(plain, arrays)), **given)
    return out if out is not None else given_back(results)


def current_stream(device: torch.device) -> int:
    """The handle of the current stream of a GPU."""
    return int(torch.cuda.current_stream(device).cuda_stream) or DEFAULT_STREAM


def reading(tensor: torch.Tensor) -> ArrayReading | None:
    """A dense tensor on a GPU, as a plan sees it; None for another one, or one whose gradient is wanted."""
    if (
        torch.compiler.is_compiling()
        or not tensor.is_cuda
        or tensor.layout != torch.strided
        or not tensor.is_contiguous()
        or tensor.is_neg()
        or (tensor.requires_grad and torch.is_grad_enabled())
    ):
        return None
    return ArrayReading((tensor.get_device(), tensor.dtype, tensor.shape), tensor.data_ptr())


def memory_of(device: torch.device, outputs: Sequence[Output]) -> TensorMemory:
    """The memory of PyTorch on a GPU, for results of some shapes and types."""
    forms = [(shape, NUMPY[dtype]) for shape, dtype in outputs]

    def new() -> tuple[tuple[torch.Tensor, ...], list[int]]:
        tensors = tuple(torch.empty(shape, dtype=dtype, device=device) for shape, dtype in forms)
        return tensors, [each.data_ptr() for each in tensors]

    def space(count: int) -> tuple[torch.Tensor, int]:
        held = torch.empty(count, dtype=torch.uint8, device=device)
        return held, held.data_ptr()

    return TensorMemory(partial(current_stream, device), new, space)


read_tensors((torch.Tensor, torch.nn.Parameter), reading, memory_of)
leave(torch.Tensor)


def plain(array: Any) -> Any:
    """The elements of a tensor as NumPy reads them, in the same memory; one on a GPU stays there."""
    if not isinstance(array, torch.Tensor):
        return array
    tensor = array.detach().resolve_conj().resolve_neg()
    if tensor.device.type == "cuda":
        return tensor
    if tensor.dtype not in DTYPES and tensor.layout == torch.strided:
        kind = str(tensor.dtype).removeprefix("torch.")
        message = f"a tensor has element type {kind}, which is not supported"
        help_line = (
            "x.float() makes it float32" if tensor.is_floating_point() else "x.int() makes it int32"
        )
        help_line = "pass x.real and x.imag" if tensor.is_complex() else help_line
        raise DataTypeError("E0703", message, help=help_line)
    try:
        return tensor.numpy()
    except (RuntimeError, TypeError) as error:
        message = f"a tensor cannot be read as an array: {error}"
        help_line = "pass a dense tensor on a processor or a GPU"
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):  # noqa: SLF001
            message = "a tensor inside torch.vmap or torch.func has no elements"
            help_line = 'write the axis in the program: `+ij~i` for `+j~.`, or einx.vmap("a [b]")'
        raise DataTypeError("E0702", message, help=help_line) from None


def given_back(results: Any) -> Any:
    """Results as tensors, of the same memory."""
    if isinstance(results, tuple):
        return tuple(map(given_back, results))
    if isinstance(results, torch.Tensor):
        return results
    return (
        torch.from_numpy(results) if isinstance(results, np.ndarray) else torch.from_dlpack(results)
    )


class TrackedCall(torch.autograd.Function):  # type: ignore[misc]
    """A call of a component as autograd takes it."""

    @staticmethod
    def forward(component: Component, options: Mapping[str, Any], *arrays: Any) -> Any:
        """The results."""
        return run(component, arrays, options)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what the gradient reads."""
        ctx.component, ctx.options, *arrays = inputs
        ctx.others = [None if isinstance(each, torch.Tensor) else each for each in arrays]
        ctx.save_for_backward(*(each for each in arrays if isinstance(each, torch.Tensor)))
        outputs = output if isinstance(output, tuple) else (output,)
        ctx.mark_non_differentiable(*(each for each in outputs if not each.is_floating_point()))

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """The gradients of the inputs for which they are wanted."""
        saved = iter(ctx.saved_tensors)
        arrays = [next(saved) if each is None else each for each in ctx.others]
        wanted = tuple(n for n, needs in enumerate(ctx.needs_input_grad[2:]) if needs)
        gradient = ctx.component.gradient_for(wanted)
        results = call(gradient, [*arrays, *map(as_float, cotangents)], ctx.options)
        given = iter(results if isinstance(results, tuple) else (results,))
        return (None, None, *(next(given) if n in wanted else None for n in range(len(arrays))))


def as_float(cotangent: Any) -> Any:
    """A cotangent; that of integers as zeros of float32, as ``f.grad()`` takes it."""
    return cotangent if cotangent.is_floating_point() else cotangent.to(torch.float32)
