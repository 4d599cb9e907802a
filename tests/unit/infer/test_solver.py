"""The solver: its rules, its closing stages, the traps named in their tests, and its indifference to order."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from ilang import ShapeError, tensor
from ilang.core.infer.solver import solve
from ilang.core.ir.rows import (
    Constraint,
    Dim,
    DimBelow,
    DimEqual,
    Known,
    LeafRow,
    Origin,
    Product,
    Row,
    RowBelow,
    RowEqual,
    Var,
    closed,
    opened,
    weighted,
    window,
)
from tests.property.growth import PROPORTIONAL, layers, normalized, times_as_long
from tests.property.orders import differing

AT = Origin("the test", None)


def size(n: int, label: str | None = None) -> Known:
    return Known(n, Origin(f"an axis of {n}", None), label=label)


def unit() -> Known:
    return Known(1, Origin("a literal", None), stretch=True)


def row(*axes: int | Dim) -> Row:
    return closed([size(axis) if isinstance(axis, int) else axis for axis in axes])


def around(leading: Sequence[int], variable: int, trailing: Sequence[int]) -> Row:
    return Row(tuple(map(size, leading)), variable, tuple(map(size, trailing)))


def below(result: Dim, operand: Dim) -> Constraint:
    return DimBelow(result, operand, AT)


def leaf(*dims: Dim, required: bool = False) -> Constraint:
    return LeafRow(closed(dims), required, False, AT)


def dims(count: int, constraints: Sequence[Constraint]) -> list[int]:
    solution = solve(count, 0, constraints)
    return [solution.size(Var(n)) for n in range(count)]


def rows(count: int, constraints: Sequence[Constraint], variables: int = 0) -> list[list[int]]:
    solution = solve(variables, count, constraints)
    return [[solution.size(axis) for axis in solution.row(opened(n)).axes()] for n in range(count)]


def refused(code: str, work: Callable[[], object]) -> None:
    with pytest.raises(ShapeError) as caught:
        work()
    assert caught.value.code == code
    assert caught.value.help


def test_a_result_is_pinned_by_its_operand() -> None:
    assert dims(1, [below(Var(0), size(4))]) == [4]


def test_an_explicit_one_does_not_stretch() -> None:
    refused("E0510", lambda: dims(0, [below(size(3), size(1))]))
    assert dims(0, [below(size(3), unit())]) == []


def test_a_stretchable_axis_made_rigid_later_wakes_what_relied_on_it() -> None:
    relied = [DimEqual(Var(0), unit(), AT), below(size(3), Var(0))]
    rigid = DimEqual(Var(0), size(1), AT)
    for order in ([*relied, rigid], [rigid, *relied]):
        refused("E0510", partial(dims, 1, order))


def test_bounds_in_a_circle_are_equal() -> None:
    a, b, c = Var(0), Var(1), Var(2)
    assert dims(3, [below(a, b), below(b, c), below(c, a), below(size(6), b)]) == [6, 6, 6]


def test_labels_are_adopted_through_what_is_between() -> None:
    first, second = size(3, "rgb"), size(3)
    solution = solve(1, 0, [DimEqual(Var(0), second, AT), below(second, first)])
    assert solution.label(Var(0)) == "rgb"
    refused("E0511", lambda: dims(0, [below(size(3, "a"), size(3, "b"))]))


def test_affine_axes_solve_for_what_is_missing() -> None:
    assert dims(1, [DimEqual(size(9), window(2, Var(0), 1, size(3), AT), AT)]) == [4]
    assert dims(1, [DimEqual(size(9), window(2, size(4), 1, Var(0), AT), AT)]) == [3]
    assert dims(1, [DimEqual(size(8), window(2, Var(0), 1, None, AT), AT)]) == [4]
    refused("E0517", lambda: dims(1, [DimEqual(size(10), window(2, Var(0), 1, size(3), AT), AT)]))


def test_concatenations_solve_for_the_rest() -> None:
    joined = weighted([(1, size(2)), (1, Var(0))], 0, AT)
    assert dims(1, [DimEqual(joined, size(5), AT)]) == [3]
    refused("E0518", lambda: dims(1, [DimEqual(joined, size(1), AT)]))
    itself = weighted([(1, Var(0)), (1, size(3))], 0, AT)
    refused("E0515", lambda: dims(1, [DimEqual(Var(0), itself, AT)]))


def test_a_long_chain_of_affine_axes_needs_no_recursion() -> None:
    count = 5000
    chain: list[Constraint] = [
        DimEqual(Var(n), weighted([(1, Var(n + 1))], 1, AT), AT) for n in range(count - 1)
    ]
    assert dims(count, [*chain, DimEqual(Var(count - 1), size(1), AT)])[0] == count


def test_growth_is_by_total_deficit_trailing_axes_first() -> None:
    # [3, r] below [5]: the leading 3 may be the one axis, so nothing grows
    refused("E0510", lambda: rows(1, [RowBelow(around([3], 0, []), row(5), AT)]))
    assert rows(1, [RowBelow(around([5], 0, []), row(5), AT)]) == [[]]
    assert rows(1, [RowBelow(opened(0), row(2, 3), AT)]) == [[2, 3]]


def test_shifted_rows_of_one_variable_close_to_nothing() -> None:
    assert rows(1, [RowEqual(around([3], 0, []), around([], 0, [3]), AT)]) == [[]]
    refused("E0505", lambda: rows(1, [RowEqual(around([3], 0, []), around([], 0, [4]), AT)]))
    refused("E0514", lambda: rows(1, [RowEqual(around([3], 0, []), around([], 0, []), AT)]))


def test_crossing_rows_close_the_longer_side_first() -> None:
    assert rows(2, [RowEqual(around([5], 0, []), around([], 1, [5, 3]), AT)]) == [[3], []]


def test_rank_cycles_are_refused_not_followed() -> None:
    circle: list[Constraint] = [
        RowBelow(opened(n), around([], (n + 1) % 3, [2]), AT) for n in range(3)
    ]
    refused("E0514", lambda: rows(3, circle))
    refused("E0514", lambda: rows(1, [RowBelow(opened(0), around([], 0, [2]), AT)]))
    fits: list[Constraint] = [
        RowBelow(opened(0), around([], 1, [2]), AT),
        RowBelow(around([], 1, [2]), opened(0), AT),
    ]
    assert rows(2, fits) == [[2], []]


def test_caps_of_rows_merge_axis_by_axis_when_they_close() -> None:
    leaf_row = LeafRow(opened(0), False, False, AT)
    capped: list[Constraint] = [
        RowBelow(row(4, 3), opened(0), AT),
        RowBelow(row(7, 6, 3), opened(0), AT),
        leaf_row,
    ]
    for order in (capped, capped[::-1]):
        assert rows(1, order) == [[1, 3]]


def test_too_many_axes_in_an_operand() -> None:
    refused("E0513", lambda: rows(0, [RowBelow(row(3), row(2, 3), AT)]))
    refused("E0512", lambda: rows(0, [RowEqual(row(3), row(2, 3), AT)]))


def test_counts_never_guess_two_axes() -> None:
    total = closed((size(12),))
    assert rows(1, [Product((opened(0), row(3)), (total,), AT)]) == [[4]]
    counted = Product((opened(0),), (total,), AT)
    used: list[Constraint] = [
        RowBelow(row(3, 4), opened(0), AT),
        LeafRow(opened(0), False, False, AT),
    ]
    assert rows(1, [counted, *used]) == [[3, 4]]
    wrong: list[Constraint] = [
        RowBelow(row(3, 5), opened(0), AT),
        LeafRow(opened(0), False, False, AT),
    ]
    refused("E0519", lambda: rows(1, [counted, *wrong]))


def test_a_known_incompleteness_leaves_close_first() -> None:
    a, b, c = Var(0), Var(1), Var(2)
    both = [below(size(3), a), below(size(5), b), below(c, a), below(c, b), leaf(a), leaf(b)]
    refused("E0510", lambda: dims(3, both))


# -- order -----------------------------------------------------------------------------------------------------------


def test_the_answer_does_not_depend_on_the_order() -> None:
    solved = 0
    for seed in range(1500):
        first, other = differing(seed, 4)
        assert first == other, seed
        solved += first != "refused"
    assert 300 < solved


# -- growth ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [layers, normalized])
def test_work_grows_linearly(build: Callable[[int], tensor.Tensor]) -> None:
    steps = [tensor.solve(build(count)).steps() for count in (300, 600, 1200)]
    assert steps[0] < 20 * 300
    assert steps[2] - steps[1] <= 2.02 * (steps[1] - steps[0])


@pytest.mark.deep
def test_ten_thousand_operations_take_time_in_proportion() -> None:
    nets = {count: layers(count) for count in (1_250, 10_000)}
    assert tensor.solve(nets[10_000]).steps() < 20 * 10_000
    assert times_as_long(lambda count: tensor.solve(nets[count]), 10_000) < PROPORTIONAL
