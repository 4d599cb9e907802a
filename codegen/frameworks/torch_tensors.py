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
from torch.autograd import forward_ad

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
WIDER = {
    **dict.fromkeys((torch.float16, torch.bfloat16), torch.float32),
    **dict.fromkeys((torch.uint8, torch.int8, torch.int16), torch.int32),
}
"""The element types that smaller ones are read as."""
NUMPY = {np.dtype(str(dtype).removeprefix("torch.")): dtype for dtype in DTYPES}
"""The element types of PyTorch by those of NumPy."""


def call(component: Component, arrays: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The results of a component for arrays, tensors among them.

    Raises:
        Error: DataError E0703 (element type), E0716 (devices, ``out``), and those of a call.
    """
    results = _answered(component, arrays, options)
    return uncompiled(_call)(component, arrays, options) if results is None else results


def _answered(component: Component, arrays: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The results of a call like an earlier one, with tensors of which no gradient is wanted; None for another one."""
    if torch.compiler.is_compiling() or not all(map(_is_like_an_array, arrays)):
        return None
    if options["out"] is not None:
        return None
    views = tuple([each.numpy() for each in arrays])
    return given_back(component.program.answer(views, **options))


def _is_like_an_array(value: Any) -> bool:
    """Whether a value is a dense tensor on a processor that neither autograd nor a transform follows."""
    return (
        type(value) is torch.Tensor
        and value.is_cpu
        and value.dtype in DTYPES
        and value.layout == torch.strided
        and not value.requires_grad
        and not value.is_neg()
        and not is_transformed(value)
    )


def _call(component: Component, arrays: Sequence[Any], options: Mapping[str, Any]) -> Any:
    arrays = [widened(each) for each in arrays]
    if not tracks(arrays):
        return run(component, arrays, options)
    if options["out"] is not None:
        message = "out= has no gradient, and an input asks for one"
        raise DataError("E0716", message, help="leave out= out, or call inside torch.no_grad()")
    return TrackedCall.apply(component, options, *arrays)


def widened(value: Any) -> Any:
    """A tensor of an element type of ours, the same one where it has it; another value as it is."""
    is_small = isinstance(value, torch.Tensor) and value.dtype in WIDER
    return value.to(WIDER[value.dtype]) if is_small else value


def is_tracked(value: Any) -> bool:
    """Whether a value is a tensor for which a gradient is wanted."""
    return isinstance(value, torch.Tensor) and value.requires_grad


def is_transformed(value: Any) -> bool:
    """Whether a value is a tensor inside `torch.func`, such as one of a batch, or in forward mode."""
    if not isinstance(value, torch.Tensor):
        return False
    in_transform: bool = torch._C._functorch.is_functorch_wrapped_tensor(value)  # noqa: SLF001
    return in_transform or forward_ad._current_level >= 0  # noqa: SLF001


def tracks(arrays: Sequence[Any]) -> bool:
    """Whether autograd or a transform of `torch.func` follows one of the arrays."""
    wanted = torch.is_grad_enabled() and any(map(is_tracked, arrays))
    return wanted or any(map(is_transformed, arrays))


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
        or tensor.dtype not in DTYPES
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
    tensor = widened(array.detach().resolve_conj().resolve_neg())
    if tensor.device.type == "cuda":
        return tensor
    if tensor.dtype not in DTYPES and tensor.layout == torch.strided:
        kind = str(tensor.dtype).removeprefix("torch.")
        message = f"a tensor has element type {kind}, which is not supported"
        help_line = (
            "pass x.real and x.imag" if tensor.is_complex() else "x.float() makes it float32"
        )
        raise DataTypeError("E0703", message, help=help_line)
    try:
        return tensor.numpy()
    except (RuntimeError, TypeError) as error:
        message = f"a tensor cannot be read as an array: {error}"
        help_line = "pass a dense tensor on a processor or a GPU"
        raise DataTypeError("E0702", message, help=help_line) from None


def given_back(results: Any) -> Any:
    """Results as tensors, of the same memory; None where there are none."""
    if isinstance(results, tuple):
        return tuple(map(given_back, results))
    if results is None or isinstance(results, torch.Tensor):
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
        tensors = [each for each in arrays if isinstance(each, torch.Tensor)]
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        outputs = output if isinstance(output, tuple) else (output,)
        ctx.mark_non_differentiable(*(each for each in outputs if not each.is_floating_point()))

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """The gradients of the inputs for which they are wanted."""
        arrays = _saved(ctx)
        wanted = tuple(n for n, needs in enumerate(ctx.needs_input_grad[2:]) if needs)
        gradient = ctx.component.gradient_for(wanted)
        results = call(gradient, [*arrays, *map(as_float, cotangents)], ctx.options)
        given = iter(results if isinstance(results, tuple) else (results,))
        return (None, None, *(next(given) if n in wanted else None for n in range(len(arrays))))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """The tangents of the results."""
        moved = [n for n, each in enumerate(tangents[2:]) if each is not None]
        given = [*_saved(ctx), *(tangents[2 + n] for n in moved)]
        results = call(ctx.component.jvp(moved), given, ctx.options)
        of_results = results[len(results) // 2 :]
        return of_results if 1 < len(of_results) else of_results[0]

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, component: Component, options: Mapping[str, Any], *arrays: Any
    ) -> Any:
        """The results for a batch, which is their first axis."""
        along = [dim is not None for dim in in_dims[2:]]
        first = [
            each if dim is None else each.movedim(dim, 0)
            for each, dim in zip(arrays, in_dims[2:], strict=True)
        ]
        if component.program.is_derivative and not all(along):  # else it is that of a sum
            size = info.batch_size
            first = [
                each if is_along else torch.as_tensor(each).expand(size, *np.shape(each))
                for each, is_along in zip(first, along, strict=True)
            ]
            along = [True for _ in arrays]
        ranks = [np.ndim(each) - is_along for each, is_along in zip(first, along, strict=True)]
        whole = component.along_batch(ranks, along)
        if whole is not None:
            results = call(whole, first, options)
            return results, (0,) * len(results) if isinstance(results, tuple) else 0
        pairs = list(zip(first, along, strict=True))
        each_result = [
            call(component, [each[n] if is_along else each for each, is_along in pairs], options)
            for n in range(info.batch_size)
        ]
        if not isinstance(each_result[0], tuple):
            return torch.stack(each_result), 0
        stacked = tuple(map(torch.stack, zip(*each_result, strict=True)))
        return stacked, (0,) * len(stacked)


def _saved(ctx: Any) -> list[Any]:
    """The arrays of a call, as they were kept."""
    saved = iter(ctx.saved_tensors)
    return [next(saved) if each is None else each for each in ctx.others]


def as_float(cotangent: Any) -> Any:
    """A cotangent; that of integers as zeros of float32, as ``f.grad()`` takes it."""
    return cotangent if cotangent.is_floating_point() else cotangent.to(torch.float32)
