"""Components and definitions inside `torch.compile`, and networks of files as modules of PyTorch.

    import ilang.torch

    softmax = ilang.torch.function(i("softmax"))
    torch.compile(lambda x: softmax(x).sum(), fullgraph=True)(x)
    net = ilang.torch.Network(load("model.i").net, torch.zeros(32, 784))
    torch.optim.Adam(net.parameters())

Outside of it, a component takes tensors as it is: ``f(x).sum().backward()``. Needs ``pip install 'ilang[torch]'``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import torch

from ilang.codegen.call.arguments import SUPPORTED, check_is
from ilang.codegen.call.threads import THREADS
from ilang.codegen.components.component import Component
from ilang.codegen.frameworks.torch_tensors import (
    DTYPES,
    NUMPY,
    as_float,
    call_pure,
    is_transformed,
    run,
    widened,
)
from ilang.codegen.session.function import Function
from ilang.codegen.session.pure_call import PureCall
from ilang.core.diagnostic import DataError, counted

__all__ = ["Network", "function"]

_serial = count()
"""Numbers of operators: PyTorch wants another name for each."""
OPTIONS = {"out": None, "threads": THREADS, "target": "c", "stream": None}
"""The options of a call."""


class TracedCall(NamedTuple):
    """A function of tensors: how many it takes and gives, and how a call is one of a component."""

    takes: int
    gives: int
    resolved: Callable[[Sequence[Any]], PureCall]

    def gradient(self) -> TracedCall:
        """Of the tensors, then a cotangent for each result: the gradient of each tensor."""

        def resolved(tensors: Sequence[Any]) -> PureCall:
            known = self.resolved(tensors[: self.takes])
            wanted = tuple(n for n, each in enumerate(known.sources) if isinstance(each, int))
            cotangents = range(self.takes, self.takes + self.gives)
            return PureCall(
                known.component.gradient_for(wanted),
                (*known.sources, *cotangents),
                known.tensors,
                tuple(n for n in known.sources if isinstance(n, int)),
            )

        return TracedCall(self.takes + self.gives, self.takes, resolved)

    def run(self, tensors: Sequence[Any], options: Mapping[str, Any]) -> list[Any]:
        """The results."""
        known = self.resolved(tensors)
        results = run(known.component, known.arranged(tensors), options)
        return self._in_order(known, results if isinstance(results, tuple) else (results,), tensors)

    def shapes(self, tensors: Sequence[Any]) -> list[Any]:
        """Tensors of the shapes and types of the results."""
        known = self.resolved(tensors)
        given = known.arranged(tensors)
        sizes = [tuple(map(int, each.shape)) for each in given]
        dtypes = [
            DTYPES[each.dtype] if isinstance(each, torch.Tensor) else SUPPORTED[each.dtype]
            for each in given
        ]
        results = known.component.program.results(sizes, dtypes)
        empty = [tensors[0].new_empty(shape, dtype=NUMPY[dtype]) for shape, dtype in results]
        return self._in_order(known, empty, tensors)

    def _in_order(
        self, known: PureCall, results: Sequence[Any], tensors: Sequence[Any]
    ) -> list[Any]:
        """The results in order: gradients of what nothing reads are zeros."""
        if known.results is None:
            return list(results)
        by_place = dict(zip(known.results, results, strict=True))
        return [
            by_place[n] if n in by_place else torch.zeros_like(tensors[n])
            for n in range(self.gives)
        ]


def function(of: Component | Function, config: Any = None, **options: Any) -> Callable[..., Any]:
    """A component, or a tensor function or a routine, as a function that `torch.compile` takes whole.

    Args:
        of: what it computes; a definition without parameters and without state.
        config: configuration values of a definition, by name.
        options: ``threads``, ``target`` of each call.

    Returns:
        A function of as many tensors as there are inputs; it has a gradient, which has one, too.

    Raises:
        DataError: E0716 (neither). Calls: E0758 (an element type), E0764 (a definition that keeps something).
    """
    says = "a function is made of a component or a definition"
    check_is(of, (Component, Function), "E0716", says, 'ilang.torch.function(i("softmax"))')
    if isinstance(of, Component):
        whole = PureCall(of, tuple(range(of.takes())), ())
        traced = TracedCall(of.takes(), of.program.wires.outputs, lambda _: whole)
    else:
        heads, gives = of.pure.ends()
        traced = TracedCall(heads, gives, lambda tensors: call_pure(of, tensors, config))
    operator = _operator(traced, {**OPTIONS, **options}, 2)

    def call(*tensors: Any) -> Any:
        given = [widened(each) for each in tensors]
        if not torch.compiler.is_compiling() and any(map(is_transformed, given)):
            known = traced.resolved(given)  # torch.func takes no operator that has a gradient
            return known.component(*known.arranged(given), **options)
        return operator(*given)

    return call


def _operator(traced: TracedCall, options: dict[str, Any], gradients: int) -> Any:
    """An operator of PyTorch, which has so many gradients, each of the one before."""
    several = traced.gives != 1
    takes = ", ".join(f"Tensor in{n}" for n in range(traced.takes))
    gives = ", ".join(["Tensor"] * traced.gives)
    schema = f"({takes}) -> {f'({gives})' if several else gives}"

    def compute(*tensors: Any) -> Any:
        results = traced.run(tensors, options)
        return tuple(results) if several else results[0]

    def shapes(*tensors: Any) -> Any:
        results = traced.shapes(tensors)
        return tuple(results) if several else results[0]

    name = f"ilang::f{next(_serial)}"
    operator = torch.library.custom_op(name, compute, mutates_args=(), schema=schema)
    operator.register_fake(shapes)
    if gradients:
        backward = _operator(traced.gradient(), options, gradients - 1)
        operator.register_autograd(_flow(backward, traced.takes), setup_context=_keep)
    return operator


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    del output  # gradients read inputs alone
    ctx.save_for_backward(*inputs)


def _flow(backward: Any, takes: int) -> Callable[..., Any]:
    """The function by which cotangents flow back: it calls the operator of a gradient."""

    def flow_back(ctx: Any, *cotangents: Any) -> Any:
        given = [as_float(each) for each in cotangents]
        gradients = backward(*ctx.saved_tensors, *given)
        gradients = gradients if isinstance(gradients, tuple | list) else (gradients,)
        needs = ctx.needs_input_grad[:takes]
        return tuple(each if need else None for each, need in zip(gradients, needs, strict=True))

    return flow_back


class Network(torch.nn.Module):  # type: ignore[misc]
    """A tensor function of a file as a module of PyTorch, which has its parameters, drawn as a session draws them.

    Attributes:
        paths: the path of each parameter in the file, by its name in the module.
    """

    def __init__(self, of: Function, *examples: Any, config: Any = None, seed: int = 0) -> None:
        """For inputs like some tensors, of which axis 0 may have any extent later, if it is the batch.

        Raises:
            DataError: E0716 (no definition), E0764 (its runs change what it keeps).
        """
        super().__init__()
        check_is(of, Function, "E0716", "a module is made of a definition", "load('m.i').net")
        self._of, self._config = of, config
        call_pure(of, examples, config, parameters=True)
        session = of.session(None, config, seed=seed)
        session.fit(*[each.detach().cpu().numpy() for each in examples])
        self._shapes = [tuple(each.shape) for each in examples]
        self.paths = {path.replace(".", "_"): path for path in session.parameters}
        for name, path in self.paths.items():
            values = torch.from_numpy(session.parameters[path].copy())
            self.register_parameter(name, torch.nn.Parameter(values))

    def extra_repr(self) -> str:
        """The definition, and how many parameters it has."""
        numbers = sum(each.numel() for each in self.parameters())
        return f"{self._of!r}, {counted(len(self.paths), 'parameter')}, {numbers:,} numbers"

    def forward(self, *tensors: Any) -> Any:
        """Compute what the definition returns, with gradients of parameters and of inputs.

        Raises:
            DataError: E0754 (the inputs ask for parameters of other shapes). Error: what a call refuses.
        """
        given = [widened(each) for each in tensors]
        known = call_pure(self._of, given, self._config, parameters=True)
        kept = [widened(getattr(self, name)) for name in self.paths]
        for path, tensor, values in zip(
            self.paths.values(), known.tensors[len(given) :], kept, strict=True
        ):
            if tensor.shape.memory() != tuple(values.shape):
                raise self._of_other_inputs(path, tensor.shape.memory(), values, given)
        return known.component(*known.arranged([*given, *kept]))

    def _of_other_inputs(
        self, path: str, asked: tuple[int, ...], values: Any, given: Sequence[Any]
    ) -> DataError:
        """The error for inputs to which the parameters do not fit."""
        shapes = ", ".join(str(tuple(each.shape)) for each in given)
        like = ", ".join(map(str, self._shapes))
        message = f"inputs of shape {shapes} give {path} the shape {asked}, and this network has {tuple(values.shape)}"
        few = any(each.dim() < len(shape) for each, shape in zip(given, self._shapes, strict=False))
        one = "; one example is a batch of one: x.unsqueeze(0)" * few
        return DataError(
            "E0754", message, help=f"it was made for inputs like {like}, axis 0 the batch{one}"
        )
