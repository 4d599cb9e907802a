"""Gradients of random programs against those of JAX, where that is installed: no part of the tests needs it.

A shaped program is computed by ``jax.numpy``, and JAX differentiates that. Both share what flows back at a tie of two
operands, but at 0 ``max(x, 0)`` is a tie to JAX, and a program of a NaN tells nothing: what is not finite, or bends
where it is, is not compared. Tensor functions and routines are compared by ``jax_tensors.py``.

    python tests/property/jax_gradients.py --programs 300
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ilang.core import pipeline
from ilang.core.calculus.affine import Affine, Within
from ilang.core.diagnostic import MeaningError
from ilang.core.dtype import INTEGER_ENDS
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Position, Scalar
from ilang.core.ir.shaped import Assignment, Shaped, View
from ilang.core.ops import OPS
from ilang.core.reference import MEANING, NUMPY_TYPES, evaluate
from ilang.core.transform.reverse import gradient
from tests.property import jax_tensors
from tests.property.gradients import Case, Tally, index_case, mixed_case, spec_case
from tests.property.tensor_checking import Tally as TensorTally

KINDS: dict[str, Callable[[int], Case]] = {
    "index": index_case,
    "specifications": spec_case,
    "mixed": mixed_case,
}
TYPES = {**NUMPY_TYPES, "f32": NUMPY_TYPES["f64"]}
CLOSE = 1e-9
STEP = 1e-7
FOLDS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}


class Jax:
    """``jax.numpy`` in float64."""

    def __init__(self) -> None:
        """Load it."""
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.np = importlib.import_module("jax.numpy")
        named = {
            name: getattr(self.np, f.__name__) for name, f in MEANING.items() if hasattr(f, "nin")
        }
        self.meaning = {
            **named,
            "max": self.np.maximum,
            "min": self.np.minimum,
            "copy": lambda x: x,
            "recip": lambda x: 1 / x,
            "log": lambda base, x: self.np.log(x) / self.np.log(base),
            "where": lambda test, x, y: self.np.where(test != 0, x, y),
            "truth": lambda x: x != 0,
        }

    def gradients(
        self, case: Case, wrt: Sequence[int], extents: Sequence[int], weights: Sequence[Any]
    ) -> list[Any]:
        """The gradients of the weighed sum of all results with respect to some inputs."""

        def loss(*moved: Any) -> Any:
            arrays = list(case.arrays)
            for n, array in zip(wrt, moved, strict=True):
                arrays[n] = array
            results = _Evaluation(self, case.shaped, extents).outputs(arrays)
            floats = [(w, r) for w, r in zip(weights, results, strict=True) if r.dtype.kind == "f"]
            return sum(((w * r).sum() for w, r in floats), start=self.np.zeros(()))

        given = tuple(case.arrays[n] for n in wrt)
        return [np.asarray(g) for g in self.jax.grad(loss, tuple(range(len(wrt))))(*given)]


class _Evaluation:
    """One evaluation of a program: what ``core/reference.py`` does, in ``jax.numpy``."""

    def __init__(self, jax: Jax, shaped: Shaped, extents: Sequence[int]) -> None:
        self.jax, self.np = jax, jax.np
        self.shaped, self.extents = shaped, extents
        self.values: list[Any] = []
        self.domain: tuple[int, ...] = ()

    def outputs(self, arrays: Sequence[Any]) -> list[Any]:
        for number, node in enumerate(self.shaped.nodes):
            tensor = self.shaped.tensors[number]
            dims = tuple(self.extents[size] for size in tensor.dims)
            match node:
                case Assignment():
                    value = self._assigned(node, dims)
                case View():
                    value = self.values[node.value].reshape(dims)
                case _:
                    value = self.np.asarray(arrays[node.number])
            self.values.append(value.astype(TYPES[tensor.dtype]))
        return [self.values[number] for number in self.shaped.outputs]

    def _assigned(self, node: Assignment, dims: tuple[int, ...]) -> Any:
        self.domain = tuple(self.extents[size] for size in node.sizes)
        operands = []
        for read in node.reads:
            element = self._read(self.values[read.value], [self._index(i) for i in read.index])
            nothing = self.np.zeros((), element.dtype)
            operands.append(self.np.where(self._holds(read.guards), element, nothing))
        counted = self.np.broadcast_to(self._holds(node.guards), self.domain)
        full = self.np.broadcast_to(self._scalar(node.scalar, operands), self.domain)
        if node.base is not None:
            at = [self.np.broadcast_to(self._index(part), self.domain) for part in node.target]
            return self._onto(node, self.values[node.base], full, at, counted)
        kept = node.output_axes()
        if node.acc is not None:
            full = full.astype(TYPES[node.acc_dtype()])
            full = self._folded(node.acc, full, node.reduced_axes(), counted)
        index = tuple(slice(None) if axis in kept else 0 for axis in range(full.ndim))
        present = [axis for axis in range(full.ndim) if axis in kept]
        return self.np.transpose(full[index], [present.index(a) for a in kept]).reshape(dims)

    def _neutral(self, acc: str, dtype: Any) -> Any:
        value = OPS[acc].identity
        assert value is not None
        if dtype.kind in "iu" and abs(value) == float("inf"):
            return INTEGER_ENDS[f"i{dtype.itemsize * 8}"][value > 0]
        return value

    def _folded(self, acc: str, full: Any, axes: Sequence[int], counted: Any) -> Any:
        primitive, start = OPS[acc].binary, self._neutral(acc, full.dtype)
        assert primitive is not None
        full = self.np.where(counted, full, self.np.asarray(start, full.dtype))
        if primitive in FOLDS and 0 < full.size:
            return getattr(self.np, FOLDS[primitive])(full, axis=tuple(axes), keepdims=True)
        shape = tuple(1 if n in axes else extent for n, extent in enumerate(full.shape))
        result = self.np.full(shape, start, full.dtype)
        for place in np.ndindex(*(full.shape[axis] for axis in axes)):
            index: list[Any] = [slice(None)] * full.ndim
            for axis, at in zip(axes, place, strict=True):
                index[axis] = slice(at, at + 1)
            result = self.jax.meaning[primitive](result, full[tuple(index)])
        return result

    def _onto(self, node: Assignment, base: Any, full: Any, index: list[Any], counted: Any) -> Any:
        """Elements stored, or accumulated into: by a table of iterations and of the elements that they write."""
        places = np.zeros(self.domain, int)
        if index:
            parts = tuple(np.asarray(part) for part in index)
            places = np.ravel_multi_index(parts, base.shape, "clip")
        where, values = places.reshape(-1), full.reshape(-1).astype(base.dtype)
        kept = np.flatnonzero(np.asarray(counted).reshape(-1))
        if node.acc is None:
            last = {int(where[n]): int(n) for n in kept}
            cells, rows = (np.asarray(list(part), int) for part in (last.keys(), last.values()))
            return base.reshape(-1).at[cells].set(values[rows]).reshape(base.shape)
        hits = np.zeros((where.size, base.size), bool)
        hits[kept, where[kept]] = True
        primitive = OPS[node.acc].binary
        assert primitive is not None
        table = self.np.broadcast_to(values[:, None], hits.shape)
        folded = self._folded(node.acc, table, (0,), hits)
        return self.jax.meaning[primitive](base.reshape(1, -1), folded).reshape(base.shape)

    # -- indices and scalars -----------------------------------------------------------------------------------------

    def _index(self, part: Affine) -> Any:
        result: Any = np.asarray(part.offset + sum(c * self.extents[s] for c, s in part.sizes))
        for c, axis in part.terms:
            shape = [-1 if n == axis else 1 for n in range(len(self.domain))]
            result = result + c * np.arange(self.domain[axis]).reshape(shape)
        for c, each in part.looked:
            index = [self._index(inner) for inner in each.index]
            result = result + c * np.asarray(self._read(self.values[each.source], index)).astype(
                int
            )
        return result

    def _holds(self, guards: Sequence[Within]) -> Any:
        holds: Any = np.asarray(True)
        for guard in guards:
            index = self._index(guard.index)
            holds = holds & (index >= 0)
            if guard.size is not None:
                holds = holds & (index < self.extents[guard.size])
        return holds

    def _read(self, value: Any, index: list[Any]) -> Any:
        if value.size == 0:
            shape = np.broadcast_shapes(*(np.shape(part) for part in index))
            return self.np.zeros(shape, value.dtype)
        clipped = [np.clip(part, 0, n - 1) for part, n in zip(index, value.shape, strict=True)]
        return value[tuple(clipped)]

    def _scalar(self, scalar: Scalar, operands: list[Any]) -> Any:
        match scalar:
            case Operand():
                return operands[scalar.number]
            case Constant():
                return self.np.asarray(scalar.value, TYPES[scalar.dtype or "f64"])
            case Position():
                return self.np.asarray(self._index(scalar.index), int)
            case Convert():
                return self._converted(self._scalar(scalar.argument, operands), scalar.dtype or "")
            case Apply():
                given = [self._scalar(each, operands) for each in scalar.arguments]
                return self.jax.meaning[scalar.primitive](*given)
            case _:
                raise AssertionError(scalar)

    def _converted(self, value: Any, dtype: str) -> Any:
        if dtype not in INTEGER_ENDS or value.dtype.kind != "f":
            return value.astype(TYPES[dtype])
        low, high = INTEGER_ENDS[dtype]
        fits = (value >= float(low)) & (value < float(high + 1))
        whole = self.np.where(fits, value, 0).astype(TYPES[dtype])
        return self.np.where(fits, whole, self.np.asarray(low, TYPES[dtype]))


def compare(case: Case, jax: Jax, tally: Tally) -> None:
    """Compare the gradients of one program."""
    wrt = [n for n, array in enumerate(case.arrays) if array.dtype == np.float64]
    if not wrt:
        return
    try:
        backward = gradient(case.shaped, wrt)
    except MeaningError:  # E0260: nothing can flow back
        tally.refused += 1
        return
    extents = pipeline.fit(case.shaped, [array.shape for array in case.arrays])
    rng = np.random.default_rng(len(case.name))
    values = evaluate(case.shaped, case.arrays, extents, exact=True)
    weights = [rng.normal(size=value.shape) for value in values]
    given = [*case.arrays, *weights]
    back = pipeline.fit(backward, [array.shape for array in given])
    ours = evaluate(backward, given, back, exact=True)
    try:
        theirs = jax.gradients(case, wrt, extents, weights)
    except jax.jax.errors.TracerArrayConversionError:  # an index that a float gives
        tally.unclear += 1
        return
    if not all(np.isfinite(part).all() for part in (*ours, *theirs)):
        tally.unclear += 1
        return
    scale = 1 + max((float(np.abs(part).max(initial=0)) for part in theirs), default=0.0)
    pairs = list(zip(ours, theirs, strict=True))
    if all(np.allclose(one, other, CLOSE, CLOSE * scale) for one, other in pairs):
        tally.checked += 1
    elif _bends(case, wrt, extents, weights):
        tally.unclear += 1
    else:
        tally.checked += 1
        tally.fail(f"{case.name}\n" + "\n".join(f"  {a}\n  in place of {b}" for a, b in pairs))


def _bends(case: Case, wrt: Sequence[int], extents: Sequence[int], weights: Sequence[Any]) -> bool:
    """Whether slopes before and after differ in some direction: there is no gradient to agree on."""
    rng = np.random.default_rng(1)

    def along(direction: Sequence[Any], step: float) -> float:
        moved = list(case.arrays)
        for n, part in zip(wrt, direction, strict=True):
            moved[n] = moved[n] + step * part
        results = evaluate(case.shaped, moved, extents, exact=True)
        return sum(
            float((w * r.astype(float)).sum()) for w, r in zip(weights, results, strict=True)
        )

    for _ in range(5):
        direction = [rng.normal(size=case.arrays[n].shape) for n in wrt]
        here, before, after = (along(direction, h) for h in (0, -STEP, STEP))
        if abs(before + after - 2 * here) / STEP > 1e-4 * (1 + abs(after - before) / STEP):
            return True
    return False


def main() -> int:
    """Run from the command line; the exit status is 1 if a gradient differs."""
    parser = argparse.ArgumentParser(description="Compare gradients with those of JAX.")
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    jax, status = Jax(), 0
    for name, draw in KINDS.items():
        tally = Tally()
        for seed in range(options.seed, options.seed + options.programs // len(KINDS)):
            compare(draw(seed), jax, tally)
        failures = tally.failures or []
        print(
            f"{name:<16}{tally.checked} agree or fail, {tally.unclear} unclear, {tally.refused} refused"
        )
        print(f"{'failures':<16}{len(failures)}", *failures[:5], sep="\n", flush=True)
        status |= bool(failures)
    return status | tensors(options.seed, options.programs)


def tensors(seed: int, programs: int) -> bool:
    """Compare gradients of tensor functions and routines; whether one differs."""
    meanings, tally = jax_tensors.Meanings(), TensorTally()
    for each in range(seed, seed + programs):
        jax_tensors.compare(each, meanings, tally)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(tally.programs.items()))
    print(
        f"{'tensors':<16}{counts}: {tally.meant} runs and {tally.gradients} elements agree,"
        f" {tally.unclear} unclear, {tally.refused} refused"
    )
    said = (f"{number} {step}\n{words}" for number, step, words in tally.failures[:5])
    print(f"{'failures':<16}{len(tally.failures)}", *said, sep="\n", flush=True)
    return bool(tally.failures)


if __name__ == "__main__":
    sys.exit(main())
