"""Components inside `torch.compile`: an operator of PyTorch, with its gradient, for each.

    import ilang.torch

    softmax = ilang.torch.function(i("softmax"))
    torch.compile(lambda x: softmax(x).sum(), fullgraph=True)(x)

Outside of it, a component takes tensors as it is: ``f(x).sum().backward()``. Needs ``pip install 'ilang[torch]'``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import torch

from ilang.codegen.runtime.arguments import check_is
from ilang.codegen.runtime.component import Component
from ilang.codegen.runtime.result_types import results_for
from ilang.codegen.runtime.torch_tensors import DTYPES, NUMPY, as_float, run

__all__ = ["function"]

_serial = count()
"""Numbers of operators: PyTorch wants another name for each."""


def function(component: Component, **options: Any) -> Callable[..., Any]:
    """A component as a function of tensors that `torch.compile` takes without a break in its graph.

    Args:
        component: what it computes.
        options: ``threads``, ``target`` of each call.

    Returns:
        A function of as many tensors as the component has inputs; it has a gradient, which has none.

    Raises:
        DataError: E0716 (no component).
    """
    says = "a function is made of a component"
    check_is(component, Component, "E0716", says, 'ilang.torch.function(i("softmax"))')
    options = {"out": None, "threads": 1, "target": "c", "stream": None, **options}
    operator = _operator(component, options)
    backward = _operator(component.grad(), options)
    count_of_inputs = component.takes()

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        del output  # gradients read inputs alone
        ctx.save_for_backward(*inputs)

    def flow_back(ctx: Any, *cotangents: Any) -> Any:
        given = [as_float(each) for each in cotangents]
        gradients = backward(*ctx.saved_tensors, *given)
        gradients = gradients if isinstance(gradients, tuple | list) else (gradients,)
        needs = ctx.needs_input_grad[:count_of_inputs]
        return tuple(each if need else None for each, need in zip(gradients, needs, strict=True))

    operator.register_autograd(flow_back, setup_context=keep)

    def call(*tensors: Any) -> Any:
        return operator(*tensors)

    return call


def _operator(component: Component, options: dict[str, Any]) -> Any:
    """An operator of PyTorch, without a gradient."""
    several = component.program.wires.outputs != 1
    takes = ", ".join(f"Tensor in{n}" for n in range(component.takes()))
    gives = ", ".join(["Tensor"] * component.program.wires.outputs)
    schema = f"({takes}) -> {f'({gives})' if several else gives}"

    def compute(*tensors: Any) -> Any:
        return run(component, tensors, options)

    def shapes(*tensors: Any) -> Any:
        sizes = [tuple(map(int, each.shape)) for each in tensors]
        results = results_for(component, [DTYPES[each.dtype] for each in tensors], sizes)
        given = [tensors[0].new_empty(shape, dtype=NUMPY[dtype]) for shape, dtype in results]
        return tuple(given) if several else given[0]

    name = f"ilang::f{next(_serial)}"
    operator = torch.library.custom_op(name, compute, mutates_args=(), schema=schema)
    operator.register_fake(shapes)
    return operator
