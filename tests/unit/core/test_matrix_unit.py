"""The roles m and m16: which products a unit does, what it rounds, what is refused, and what the verifier holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ilang.core.calculus.affine import Affine, Within
from ilang.core.check.gpu import verify
from ilang.core.diagnostic import InternalError, ScheduleError
from ilang.core.explain.page import explanation_text
from ilang.core.ir.gpu import MatrixProduct, ThreadLoop
from ilang.core.ir.kernel import If, Program, Statement, Store, map_statements
from ilang.core.ir.scalar import Apply, Convert, Load, Operand, Select
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import CPU, GPU
from ilang.core.matrix_unit import sum_of_products, unrounded
from ilang.core.pipeline import (
    explain,
    fit,
    graph_of,
    infer,
    lower,
    shapes_text,
    stage_text,
    text_component,
)
from ilang.core.record import replace
from ilang.core.reference import evaluate
from ilang.core.transform.reverse import gradient

TERMS = "ik*kj~ijk | i:16,j:8,k:8 | i j k 0 1 k' i' j'"
UNIT_LOOPS = "i':m,j':m,k':m"
SUMS = f"+ijk~ij | i:16,j:8,k:8 | i j k k' i' j' 0 | {UNIT_LOOPS}"
PRODUCT = f"{TERMS} >> {SUMS}"
HALF = PRODUCT.replace("k 0 1", "k 0")
"""Of which one factor is copied, and the other one read where it is."""
PRODUCT_16 = PRODUCT.replace(":m", ":m16").replace("k:8", "k:16")
HALF_16 = PRODUCT_16.replace("k 0 1", "k 0")
"""The same of factors of 16 bits."""


def shaped_of(text: str) -> Shaped:
    return infer(graph_of(text_component(text), "f"))


def scalar_of(shaped: Shaped, value: int) -> object:
    node = shaped.nodes[value]
    assert isinstance(node, Assignment)
    return node.scalar


def rounded(number: int, rounding: str) -> Apply:
    return Apply(rounding, (Operand(number, "f32"),), "f32")


@pytest.mark.parametrize(
    ("text", "rounding", "name"),
    [
        (PRODUCT, "tf32", "TF32"),
        ("einsum(\"ik,kj->ij\") | i:16,j:8,k:8 | i j k k' i' j' | i':m,j':m,k':m", "tf32", "TF32"),
        (PRODUCT_16, "bf16", "bf16"),
    ],
)
def test_factors_are_rounded_where_a_schedule_asks(text: str, rounding: str, name: str) -> None:
    shaped = shaped_of(text)
    (output,) = shaped.outputs
    found = sum_of_products(shaped, output)
    assert not isinstance(found, str)
    factors = rounded(0, rounding), rounded(1, rounding)
    assert scalar_of(shaped, found[1]) == Apply("mul", factors, "f32")
    assert f"factors rounded to {name}" in shapes_text(shaped)


def test_and_nowhere_else() -> None:
    shaped = shaped_of(PRODUCT.replace(" | i':m,j':m,k':m", ""))
    assert scalar_of(shaped, 2) == Apply("mul", (Operand(0, "f32"), Operand(1, "f32")), "f32")
    assert "TF32" not in shapes_text(shaped)


@pytest.mark.parametrize(
    ("text", "name", "unit"), [(PRODUCT, "TF32", "m"), (PRODUCT_16, "bf16", "m16")]
)
def test_a_processor_rounds_alike_and_is_told_the_same_schedule(
    text: str, name: str, unit: str
) -> None:
    graph = graph_of(text_component(text), "f")
    for machine in (CPU, GPU):
        page = explanation_text(explain(graph, machine=machine))
        assert f"multiply over i j k, factors rounded to {name}" in page
        assert "2·i·j·k flops" in page
        roles = f"k':{unit},i':{unit},j':{unit}"
        assert roles in stage_text(graph, "schedule", machine=machine)


def test_gradients_pass_through_a_rounding() -> None:
    """What flows back to a factor is as if the other one, rounded, had been given."""
    shaped = gradient(shaped_of(PRODUCT_16), [0, 1], ones=True)
    arrays = np.array([[3.0]], np.float32), np.array([[1 + 2**-8]], np.float32)
    results = evaluate(shaped, arrays, fit(shaped, [array.shape for array in arrays]))
    assert [each.item() for each in results] == [1.0, 3.0]


def test_copies_hold_what_a_unit_takes() -> None:
    """Of bf16 two bytes, in what is shared and in registers; a copy that others read, or two units, is not rounded."""

    def held(text: str) -> set[tuple[str, str]]:
        buffers = lower(shaped_of(text), GPU).buffers
        return {(b.name, b.dtype) for b in buffers if "_copy" in b.name}

    assert held(PRODUCT) == {("in0_copy", "f32"), ("in1_copy", "f32")}
    names = ("in0_copy", "in1_copy", "in0_copy_held", "in1_copy_held")
    assert held(PRODUCT_16) == {(name, "bf16") for name in names}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ij+ij~ij | i:16 | i j i' | i':m", "no plain sum"),
        (PRODUCT.replace("+ijk", ">ijk"), "no plain sum"),
        (PRODUCT.replace("+ijk~", "+ijk[k<=i]~"), "no plain sum"),
        (PRODUCT.replace(",k':m", ""), "the last two over the result"),
        (PRODUCT.replace("k' i' j'", "i' j' k'"), "128 terms at a time"),
        (PRODUCT.replace("| i':m", "| i:m"), "the last two over the result"),
        (PRODUCT_16.replace("| i':m16", "| i:m16"), "the last two over the result"),
        (PRODUCT_16.replace("ik*kj", "ik+kj"), "no products"),
        (PRODUCT_16.replace("k:16", "k:256"), "128 terms at a time"),
        (PRODUCT.replace("ik*kj", "ik+kj"), "no products"),
        (PRODUCT.replace("ik*kj", "ik*ij"), "the axis that is reduced"),
        (PRODUCT.replace("ik*kj", "ijk*kj"), "the axis that is reduced"),
        (f"{TERMS} >> ({SUMS} & >ijk~ij)", "other readers"),
        (f"{SUMS}", "no product"),
        (f"{PRODUCT} >> -ij~ij | i:16,j:8 | i j 0 i' j'", "staged inside"),
        (PRODUCT.replace("| i':m", "| i:tx,i':m"), "by the role tx"),
        (PRODUCT.replace("k:8", "k:256"), "128 terms at a time"),
    ],
)
def test_what_no_unit_does_is_refused(text: str, says: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        lower(shaped_of(text), GPU)
    assert caught.value.code == "E0337"
    assert says in caught.value.message
    assert caught.value.fix is not None


@pytest.mark.parametrize("what", ["ij+ij~ij | i:16 | i j i' | i':m", PRODUCT.replace(",k':m", "")])
def test_on_any_machine(what: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        lower(shaped_of(what), CPU)
    assert caught.value.code == "E0337"


@pytest.mark.parametrize(
    ("split", "numbers", "instead"),
    [
        ("i:12,j:8,k:8", ("12 rows", "16"), "i:16,j:8,k:8"),
        ("i:16,j:4,k:8", ("4 columns", "8"), "i:16,j:8,k:8"),
        ("i:16,j:8,k:5", ("5 terms", "8"), "i:16,j:8,k:8"),
        ("i:40,j:8,k:8", ("40 rows", "16"), "i:64,j:8,k:8"),
        ("i:16,j:8,k:8 16", ("8 terms", "16"), "i:16,j:8,k:16"),
        ("i:24,j:8,k:16 16", ("24 rows", "16"), "i:32,j:8,k:16"),
    ],
)
def test_matrices_are_whole(split: str, numbers: tuple[str, ...], instead: str) -> None:
    split, _, bits = split.partition(" ")
    sums = SUMS.replace(":m", f":m{bits}")
    text = f"ik*kj~ijk >> {sums}".replace("i:16,j:8,k:8", split)
    lower(shaped_of(text), CPU)
    with pytest.raises(ScheduleError) as caught:
        lower(shaped_of(text), GPU)
    assert caught.value.code == "E0338"
    assert all(number in caught.value.message for number in numbers), caught.value.message
    assert caught.value.fix is not None
    assert caught.value.fix.text == sums.replace("i:16,j:8,k:8", instead)[len("+ijk~ij ") :]


@pytest.mark.parametrize(
    ("roles", "instead"),
    [("i':m,j':m16,k':m", "i':m,j':m,k':m"), ("i':m16,j':m,k':m", "i':m16,j':m16,k':m16")],
)
@pytest.mark.parametrize("terms", ["ik*kj~ijk", TERMS.replace("k:8", "k:16")])
def test_a_product_is_one_units(roles: str, instead: str, terms: str) -> None:
    sums = SUMS.replace("k:8", "k:16")
    text = f"{terms} >> {sums.removesuffix(UNIT_LOOPS)}"
    for machine in (CPU, GPU):
        with pytest.raises(ScheduleError) as caught:
            lower(shaped_of(text + roles), machine)
        assert caught.value.code == "E0337"
        assert "of two units, m and m16" in caught.value.message
        assert caught.value.fix is not None
        assert caught.value.fix.text.endswith(f"| {instead}")


@pytest.mark.parametrize("unit", ["m", "m16"])
def test_factors_of_64_bits_are_refused(unit: str) -> None:
    text = PRODUCT_16.replace(":m16", f":{unit}")
    shaped = infer(graph_of(text_component(text), "f"), dtypes=("f64", "f64"))
    with pytest.raises(ScheduleError) as caught:
        lower(shaped, GPU)
    assert caught.value.code == "E0337"
    assert "not both f32" in caught.value.message


def test_a_block_has_so_many_warps() -> None:
    text = "ik*kj~ijk >> +ijk~ij | i:64:16,j:8,k:8 | i j k k' i' i'' j' 0 | i':t,i'':m,j':m,k':m"
    with pytest.raises(ScheduleError) as caught:
        lower(shaped_of(text), GPU)
    assert caught.value.code == "E0332"
    assert "2,048" in caught.value.message
    assert "1,024" in caught.value.message


def planted(program: Program, change: Callable[[Statement], Statement | None]) -> Program:
    """A program with one thing wrong in it."""
    kernels = tuple(
        replace(kernel, body=map_statements(kernel.body, change)) for kernel in program.kernels
    )
    assert kernels != program.kernels
    return replace(program, kernels=kernels)


def of_product(change: Callable[[MatrixProduct], Statement]) -> Callable[[Statement], Statement]:
    return lambda s: change(s) if isinstance(s, MatrixProduct) else s


def bare(s: MatrixProduct) -> MatrixProduct:
    """What is read of an array, not rounded."""
    assert all(isinstance(part, Apply) for part in s.right)
    return replace(s, right=tuple(p.arguments[0] for p in s.right if isinstance(p, Apply)))


def other_way(s: MatrixProduct) -> MatrixProduct:
    """Rounded to what another unit multiplies."""
    return replace(s, right=tuple(Apply("bf16", (unrounded(p),), "f32") for p in s.right))


def other_lanes(s: Statement) -> Statement:
    """Lanes the other way around."""
    if isinstance(s, ThreadLoop) and len(s.loops) == 2 and s.over == "threads":
        return replace(s, loops=s.loops[::-1])
    return s


def under_a_condition_of_lanes(s: Statement) -> Statement:
    if isinstance(s, ThreadLoop) and any(isinstance(x, MatrixProduct) for x in s.body):
        lane = Affine(((-1, s.loops[-1].variable),), 2)
        return replace(s, body=(If((Within(lane, None),), s.body),))
    return s


@pytest.mark.parametrize(
    ("change", "invariant"),
    [
        (of_product(bare), "multiplies what is rounded"),
        (of_product(other_way), "multiplies what is rounded"),
        (of_product(lambda s: replace(s, rounding="bf16")), "as many elements"),
        (of_product(lambda s: replace(s, left=s.left[::-1])), "rows by group"),
        (of_product(lambda s: replace(s, right=s.right[::-1])), "columns by group"),
        (of_product(lambda s: replace(s, left=s.left[:2])), "as many elements"),
        (of_product(lambda s: replace(s, sums=s.sums[:1] * 4)), "each of its sums once"),
        (of_product(lambda s: replace(s, sums=_loads(s))), "sums of its own"),
        (other_lanes, "the last loops are of lanes"),
        (under_a_condition_of_lanes, "come to a product together"),
    ],
)
def test_the_verifier_finds(
    change: Callable[[Statement], Statement | None], invariant: str
) -> None:
    program = lower(shaped_of(HALF), GPU)
    verify(program)
    with pytest.raises(InternalError, match=invariant):
        verify(planted(program, change))


def bits_as_they_were(s: Statement) -> Statement:
    """Elements that stay as they are where those of an array were rounded."""
    match s:
        case Store(value=Convert(argument=Select(), dtype="bf16")):
            return replace(s, value=Load(s.buffer, s.index, "bf16"))
        case _:
            return s


def turned_pairs(s: MatrixProduct) -> MatrixProduct:
    """The second term of each pair before the first one."""
    return replace(s, left=tuple(s.left[n ^ 1] for n in range(len(s.left))))


@pytest.mark.parametrize(
    ("change", "invariant"),
    [
        (bits_as_they_were, "multiplies what is rounded"),
        (of_product(turned_pairs), "rows by group"),
        (of_product(lambda s: replace(s, right=s.right[::-1])), "columns by group"),
        (of_product(lambda s: replace(s, right=s.right[:2])), "as many elements"),
        (of_product(lambda s: replace(s, rounding="tf32")), "as many elements"),
    ],
)
def test_the_verifier_finds_of_16_bits(
    change: Callable[[Statement], Statement | None], invariant: str
) -> None:
    program = lower(shaped_of(HALF_16), GPU)
    verify(program)
    with pytest.raises(InternalError, match=invariant):
        verify(planted(program, change))


def _loads(s: MatrixProduct) -> tuple[Load, ...]:
    """The factors of a product, which are a block's."""
    return tuple(part for part in s.left if isinstance(part, Load))
