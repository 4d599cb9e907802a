"""How a scorer that lives outside this repository drives the product: its public API, and nothing else.

The scorer runs this file by its path and calls the functions by name; it knows the inputs and the answers.
"""

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ilang import Error, I, elementwise, i, load
from ilang import einx as einx_functions
from ilang import tensor as t
from ilang.core.infer.solver import solve
from ilang.core.ir.rows import (
    KINDS,
    Dim,
    DimBelow,
    DimEqual,
    Known,
    LeafRow,
    Origin,
    Row,
    RowBelow,
    RowEqual,
    Var,
    closed,
    opened,
    weighted,
    window,
)
from ilang.core.notation.einsum.specification import parse_shape
from ilang.core.source import Source


def index(program: str, inputs: Sequence[Any], target: str) -> Any:
    """Run ``(i("ij~ji") & I) >> i("ij+ij~ij")``, a program in the Python spelling, on arrays."""
    component = eval(program, {"__builtins__": {}, "i": i, "I": I})
    return component(*inputs, target=_here(target))


def module(source: str, name: str, inputs: Sequence[Any], target: str) -> Any:
    """Run one definition of a module."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "module.i")
        path.write_text(source, "utf-8")
        return load(path)[name](*inputs, target=_here(target))


def routine(  # noqa: PLR0917 - the scorer gives them so
    source: str,
    name: str,
    shapes: dict[str, str],
    config: dict[str, float],
    parameters: dict[str, Any],
    steps: Sequence[dict[str, Any]],
    want: Sequence[str],
    target: str,
) -> dict[str, Any]:
    """Run a tensor function or a routine of a module, step by step, and read what is wanted after the last."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "module.i")
        path.write_text(source, "utf-8")
        keep = [each for each in want if each != "return"]
        session = load(path).session(name, shapes, config, target=_here(target), keep=keep)
        for each, values in parameters.items():
            session.parameters[each] = values
        result: Any = None
        for step in steps:
            result = session(**step)
        first = result[0] if isinstance(result, tuple) else result
        return {each: first if each == "return" else session.value(each) for each in want}


def einx(
    op: str, description: str, inputs: Sequence[Any], params: dict[str, Any], target: str
) -> Any:
    """Call an operation in einx notation."""
    operation = getattr(einx_functions, op)
    if op in ("solve", "solve_axes", "solve_shapes", "matches"):
        return operation(description, *inputs, **params)
    return operation(description, *inputs, target=_here(target), **params)


def gradient(
    program: str, inputs: Sequence[Any], cotangents: Sequence[Any] | None, target: str
) -> list[Any]:
    """The gradients of a program in the Python spelling; without cotangents those of the sum of its outputs."""
    component = eval(program, {"__builtins__": {}, "i": i, "I": I})
    return _gradients(component, inputs, cotangents, target)


def kernel_gradient(
    order: str,
    outputs: Sequence[dict[str, Any]],
    inputs: Sequence[Any],
    cotangents: Sequence[Any] | None,
    target: str,
) -> list[Any]:
    """The gradients of an elementwise kernel."""
    return _gradients(elementwise(order, outputs, len(inputs)), inputs, cotangents, target)


def _gradients(component: Any, inputs: Sequence[Any], cotangents: Any, target: str) -> list[Any]:
    result = component.grad()(*inputs, *(cotangents or ()), target=_here(target))
    return list(result) if isinstance(result, tuple) else [result]


@functools.cache
def _here(target: str) -> str:
    """A target that this machine can run: without a GPU, CUDA is emulated."""
    if target == "cuda":
        try:
            i("-i~i")(np.zeros(1, np.float32), target=target)
        except Error as error:
            if error.code != "E0923":
                raise
            return "cuda-emulated"
    return target


# -- tensor ----------------------------------------------------------------------------------------------------------


def tensor(notation: dict[str, Any]) -> dict[str, Any]:
    """Solve and run a tensor expression, a set of constraints, or read a shape specification."""
    if "vars" in notation:
        return _solved(notation)
    if "parse_shape_spec" in notation:
        shape, named = parse_shape(Source("<spec>", notation["parse_shape_spec"]))
        counts = {kind: len(row.axes()) for kind, row in zip(KINDS, shape.rows, strict=True)}
        return {"axis_counts": counts, "multichar": named}
    found = _Let(notation)
    result = found.shapes()
    if "of" in notation:
        result |= found.projection(notation["of"])
    if "grad" in notation:
        result |= found.gradients(notation["grad"])
    return result | {"values": found.values()}


def _where(spec: str, test: Any, x: Any, y: Any) -> Any:
    return t.where(test, x, y, spec)


UNARY: dict[str, Any] = {
    "neg": lambda x: -x, "relu": t.relu, "exp": t.exp, "log": t.log, "sin": t.sin, "cos": t.cos, "tanh": t.tanh,
    "sqrt": t.sqrt, "id": lambda x: x + 0, "recip": t.recip, "recip_sqrt": t.recip_sqrt, "not": t.not_,
    "transpose": t.transpose,
}  # fmt: skip
BINARY: dict[str, Any] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "pow": lambda x, y: x ** y, "lt": t.lt, "eq": t.eq, "matmul": t.matmul, "interleave": t.interleave,
    "fma": t.fma, "fma_compose": lambda x, y, z: t.matmul(x, y) + z, "where": t.where,
}  # fmt: skip
SPECIFIED: dict[str, Any] = {
    "einsum": t.einsum, "einsum1": t.einsum, "einsum3": t.einsum, "einmax1": t.einmax, "tropical": t.tropical,
    "outer_sum": t.outer_sum, "concat": t.concat, "where": _where,
}  # fmt: skip


class _Let:
    """The tensors of a notation by name, solved together."""

    def __init__(self, notation: dict[str, Any]) -> None:
        self.named: dict[str, Any] = {}
        for name, node in notation["let"]:
            self.named[name] = self.tensor(node, name)
        constraints, fits = [], []
        for kind, *arguments in notation.get("constraints", ()):
            if kind == "le":
                fits.append(tuple(self.named[name] for name in arguments))
            else:
                constraint: dict[str, Any] = {
                    "set_dim": t.SetSize,
                    "set_equal": t.SameSize,
                    "set_scale": t.Scaled,
                }
                constraints.append(constraint[kind](*arguments))
        self.program = t.solve(*self.named.values(), constraints=constraints, fits=fits)

    def tensor(self, node: Any, name: str | None = None) -> Any:
        if isinstance(node, str):
            return self.named[node]
        if "leaf" in node:
            return self.leaf(node, name)
        if "literal" in node:
            return t.literal(node["literal"], name)
        op: str = node["op"]
        args: list[Any] = [self.tensor(arg) for arg in node["args"]]
        if op == "slice":
            return t.slice_(args[0], node["index"], node.get("static_range"))
        if op == "stack":
            return t.stack(*args, row=node.get("row", "output"))
        if "spec" in node:
            return SPECIFIED[op](node["spec"], *args)
        return (UNARY.get(op) or BINARY[op])(*args)

    @staticmethod
    def leaf(node: dict[str, Any], name: str | None) -> Any:
        if node["leaf"] == "number":
            return t.number(node["value"])
        rows: list[Any] = [
            None
            if axes is None
            else [(a["d"], a.get("basis")) if isinstance(a, dict) else a for a in axes]
            for axes in (node["shape"].get(kind) for kind in KINDS)
        ]
        values = node.get("values")
        if values == "range":
            sizes = [axis[0] if isinstance(axis, tuple) else axis for row in rows for axis in row]
            values = np.arange(int(np.prod(sizes)))
        values = None if values is None else np.asarray(values, np.float64)
        if node["leaf"] == "param":
            value = values if values is not None else node.get("value")
            return t.param(name or "w", rows[1], rows[2], value)
        if node["leaf"] == "fill":
            return t.fill(values, rows[0], rows[1], rows[2], name)
        return t.data(values, rows[0], rows[1], rows[2], name)

    def shapes(self) -> dict[str, Any]:
        shapes, basis = {}, {}
        for name, tensor in self.named.items():
            shape = self.program.shape(tensor)
            shapes[name] = {kind: list(getattr(shape, kind)) for kind in KINDS}
            basis[name] = list(self.program.labels(tensor))
        return {"shapes": shapes, "basis": basis, "captured": self.program.sizes()}

    def values(self) -> dict[str, Any]:
        """The values of every tensor that needs no leaf without values."""
        known = [name for name, tensor in self.named.items() if _has_values(tensor)]
        if not known:
            return {}
        arrays = self.program.values([self.named[name] for name in known])
        return dict(zip(known, arrays, strict=True))

    def gradients(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """The gradients of the sum of a tensor, and what a step against them leaves of the leaves."""
        leaves = [self.named[name] for name in wanted["wrt"]]
        result = self.program.grad(self.named[wanted["of"]], leaves)()
        arrays = list(result) if isinstance(result, tuple) else [result]
        told = {"grads": dict(zip(wanted["wrt"], arrays, strict=True))}
        if "lr" in wanted:
            values = self.program.values(leaves)
            told["after_sgd"] = {
                name: value - wanted["lr"] * array
                for name, value, array in zip(wanted["wrt"], values, arrays, strict=True)
            }
        return told

    def projection(self, name: str) -> dict[str, Any]:
        tensor = self.named[name]
        (found,) = self.program.projections(tensor)
        sizes = self.program.shape(tensor).memory()

        def index(part: Any) -> Any:
            if part.axis() is not None:
                return found.loops[part.axis()].name
            if not part.terms:
                return {"fixed": part.offset}
            terms = [[c, found.loops[axis].name] for c, axis in part.terms]
            return {"affine": terms, "offset": part.offset}

        return {
            "product": {loop.name: loop.extent for loop in found.loops},
            "lhs": [index(part) for part in found.target],
            "rhs": [[index(part) for part in read] for _, read in found.reads],
            "lhs_surjective": found.is_surjective(sizes),
            "lhs_injective": found.is_injective(),
        }


def _has_values(tensor: Any) -> bool:
    todo = [tensor]
    while todo:
        here = todo.pop()
        if not here.operands and getattr(here.node, "values", 0) is None:
            return False
        todo.extend(here.operands)
    return True


def _solved(notation: dict[str, Any]) -> dict[str, Any]:
    """The variables of a set of constraints."""
    names = notation["vars"]
    dims = {name: number for number, name in enumerate(names.get("dim", ()))}
    rows = {name: number for number, name in enumerate(names.get("row", ()))}
    at = Origin("a constraint", None)

    def dim(d: Any) -> Dim:
        if isinstance(d, int):
            return Known(d, Origin("an axis", None))
        if isinstance(d, str):
            return Var(dims[d])
        if "d" in d:
            return Known(d["d"], Origin("an axis", None), label=d.get("basis"))
        if "concat" in d:
            return weighted([(1, dim(part)) for part in d["concat"]], 0, at)
        w = d["affine"]
        kernel = None if "kernel" not in w or w.get("padded") else dim(w["kernel"])
        return window(w["stride"], dim(w["over"]), w.get("dilation", 1), kernel, at)

    def row(r: Any) -> Row:
        variable = None if r["var"] is None else rows[r["var"]]
        return Row(tuple(map(dim, r["beg"])), variable, tuple(map(dim, r["dims"])))

    make: dict[str, Any] = {
        "dim_eq": lambda a, b: DimEqual(dim(a), dim(b), at),
        "dim_le": lambda a, b: DimBelow(dim(a), dim(b), at),
        "row_eq": lambda a, b: RowEqual(row(a), row(b), at),
        "row_le": lambda a, b: RowBelow(row(a), row(b), at),
        "terminal_dim": lambda a: LeafRow(closed((dim(a),)), False, False, at),
    }
    constraints = [make[kind](*rest) for kind, *rest in notation["constraints"] if kind in make]
    solution = solve(len(dims), len(rows), constraints)
    axes = {name: solution.row(opened(number)).axes() for name, number in rows.items()}
    return {
        "dims": {name: solution.size(Var(number)) for name, number in dims.items()},
        "rows": {name: [solution.size(axis) for axis in row] for name, row in axes.items()},
    }


# -- elementwise kernels ---------------------------------------------------------------------------------------------


def kernel(
    order: str, outputs: Sequence[dict[str, Any]], inputs: Sequence[Any], target: str
) -> list[Any]:
    """Run an elementwise kernel: outputs with their expressions and modes, as the scorer writes them."""
    result = elementwise(order, outputs, len(inputs))(*inputs, target=_here(target))
    return list(result) if isinstance(result, tuple) else [result]
