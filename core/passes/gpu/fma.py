"""Contract a product that only a sum takes to a fused multiply-add: one instruction, rounded once.

Example:
    in:   t = x[i] * y[i]; acc += t      out:  acc += x[i] * y[i], rounded once

The pass contracts the products that a reduction adds, as in register tiles of a CPU. A product and a sum that a person
wrote as separate expressions are rounded separately.
"""

from __future__ import annotations

from ilang.core.dtype import FLOATS
from ilang.core.ir import kernel as ir
from ilang.core.ir.rewriting import parts_of, unless_same, with_bodies
from ilang.core.ir.scalar import Apply, Load, Local, Scalar
from ilang.core.record import replace


def kernel_to_fma(program: ir.Program) -> ir.Program:
    """The program with products contracted to fused multiply-adds."""
    return with_bodies(program, lambda kernel: _contracted(kernel.body))


def _contracted(body: ir.Block) -> ir.Block:
    out: list[ir.Statement] = []
    for n, s in enumerate(body):
        sum_ = _sum(s) if isinstance(s, (ir.Change, ir.Store)) else None
        if sum_ is None:
            out.append(ir.map_blocks(s, _contracted))
            continue
        assert isinstance(s, (ir.Change, ir.Store))
        old, term = sum_.arguments
        last = out[-1] if out else None
        if isinstance(last, ir.Define) and _is_only_for(last, term, sum_, body[n + 1 :]):
            out.pop()
            term = last.value
        if _is_product(term, sum_.dtype):
            whole = replace(sum_, arguments=(old, term))
            out.append(replace(s, value=whole, contracts=True))
        else:
            out.append(s)
    return unless_same(body, out)


def _sum(s: ir.Change | ir.Store) -> Apply | None:
    """The sum that a statement adds to what it changes; None where it does something else."""
    value = s.value
    if not isinstance(value, Apply) or value.primitive != "add" or value.dtype not in FLOATS:
        return None
    old = value.arguments[0]
    if isinstance(s, ir.Change):
        return value if isinstance(old, Local) and old.variable == s.variable else None
    same = isinstance(old, Load) and (old.buffer, old.index) == (s.buffer, s.index)
    return value if same else None


def _is_product(value: Scalar, dtype: str | None) -> bool:
    return isinstance(value, Apply) and value.primitive == "mul" and value.dtype == dtype


def _is_only_for(defined: ir.Define, term: Scalar, sum_: Apply, after: ir.Block) -> bool:
    """Whether a variable is a product that a sum takes, and that nothing reads after it."""
    if defined.mutable or term != Local(defined.variable, defined.dtype):
        return False
    read = any(
        isinstance(part, Local) and part.variable == defined.variable
        for s in ir.statements_within(after)
        for part in parts_of(s)
    )
    return _is_product(defined.value, sum_.dtype) and not read
