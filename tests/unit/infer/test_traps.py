"""Where a naive inference goes wrong, one test each, as a user meets it.

The rules behind them are tested one by one in ``test_solver.py``. Gradients have traps of their own.
"""

from __future__ import annotations

import numpy as np
import pytest

from ilang import Error, einsum, tensor
from ilang.core.notation.einsum.specification import parse_shape
from ilang.core.source import Source
from ilang.tensor import Tensor


def arange(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)


def known(*output: int, name: str = "x") -> Tensor:
    return tensor.data(None, (), (), output, name)


def refusal(code: str, *tensors: Tensor, **more: object) -> Error:
    with pytest.raises(Error) as caught:
        tensor.solve(*tensors, **more)  # type: ignore[arg-type]
    assert caught.value.code == code, caught.value
    return caught.value


def test_an_operand_used_with_two_sizes_becomes_the_stretchable_one() -> None:
    p = tensor.param("p")
    program = tensor.solve(p + known(3), p + known(5))
    assert program.shape(p).output == (1,)


def test_caps_with_unknown_axes_keep_every_cap() -> None:
    # p meets [2, 3] and [?, 3], and the unknown axis turns out to be 4: no cap may be dropped for the other
    p, q = tensor.param("p"), tensor.param("q")
    late = q + p
    for order in ((known(2, 3) + p, late), (late, known(2, 3) + p)):
        program = tensor.solve(*order, late + known(4, 3))
        assert program.shape(p).output == (1, 3)


def test_caps_reach_leaves_through_results_in_between() -> None:
    p = tensor.param("p")
    program = tensor.solve(tensor.relu(tensor.relu(p)) + known(4, 2))
    assert program.shape(p).output == (4, 2)


def test_a_specification_with_a_trailing_row_variable_grows_by_what_is_missing_in_all() -> None:
    x = known(5, 2, 3)
    program = tensor.solve(y := tensor.einsum("j... => ...j", x))
    assert program.shape(y).output == (2, 3, 5)
    assert tensor.solve(z := tensor.einsum("j... => ...j", known(5))).shape(z).output == (5,)


def test_rows_that_grow_into_each_other_are_refused_and_end() -> None:
    p = tensor.param("p")
    longer = tensor.einsum("... => ...0", p)
    refusal("E0514", p, fits=[(p, longer)])


def test_axes_across_a_row_variable_wait_until_it_is_known() -> None:
    # `j` may be any axis of the closed row until it is known what `...` stands for
    p = tensor.param("p")
    y = tensor.einsum("j... => j...", p)
    program = tensor.solve(y, fits=[(known(2, 3), p)])
    assert program.shape(p).output == (2, 3)
    assert program.sizes()["j"] == 2


def test_axes_that_fill_a_row_variable_stand_in_the_middle() -> None:
    program = tensor.solve(y := tensor.einsum("..v.. => i..v..j", known(4, 5)), constraints=[
        tensor.SetSize("i", 2), tensor.SetSize("j", 3),
    ])  # fmt: skip
    assert program.shape(y).output == (2, 4, 5, 3)


def test_leading_axes_align_from_the_left() -> None:
    # the row [2, .., 3] against four axes: the first and the last meet, the others are inserted between them
    kept = tensor.einsum("i..v..j => i..v..j", known(2, 3))
    y = kept + known(2, 7, 8, 3)
    assert tensor.solve(y).shape(y).output == (2, 7, 8, 3)
    refusal("E0510", tensor.einsum("..v..ij => ..v..ij", known(2, 3)) + known(2, 7, 8, 3))


@pytest.mark.parametrize("read", ["j... => 0", "j... => ...", "...j => ...j", "ij... => 0"])
def test_who_reads_a_result_does_not_tell_where_its_axes_align(read: str) -> None:
    # the last axis of h is its last one for whoever meets h, however else h is read
    sizes = (3, 4) if "i" in read else (4,)
    h = tensor.relu(known(*sizes, name="y"))
    met, other = known(2, *sizes) + h, tensor.einsum(read, h)
    for whole in (met + other, other + met):
        assert tensor.solve(whole).shape(whole).output == (2, *sizes)


def test_a_slice_does_not_tell_where_the_axes_of_what_it_reads_align() -> None:
    h = tensor.relu(tensor.data(None, (3,), (), (), "y"))
    z = tensor.data(None, (2, 3), (), (), "x") + (h + tensor.slice_(h, 2))
    assert tensor.solve(z).shape(z).batch == (2, 3)


def test_an_index_of_zero_decides_last_and_yields_to_no_use() -> None:
    eye = tensor.einsum("i => i0", known(3))
    program = tensor.solve(eye + known(3, 5))
    assert program.shape(eye).output == (3, 1)
    read = tensor.einsum("i2 => i", eye)
    assert tensor.solve(read).shape(eye).output == (3, 3)


def test_a_kept_mean_is_not_repeated_along_what_it_meets() -> None:
    x = tensor.data(arange(4, 5), batch=1)
    total = tensor.einsum("...|... => 0|...", x)
    mean = total / 4
    program = tensor.solve((x - mean) * (x - mean))
    assert program.shape(mean).batch == (1,)


def test_loops_belong_to_one_operation() -> None:
    w = tensor.param("w")
    x = known(3)
    first = w @ x
    program = tensor.solve(w @ first + x)
    (walk,) = program.projections(first)
    assert [loop.extent for loop in walk.loops] == [3, 3]


def test_a_part_of_size_one_has_an_index_and_an_offset() -> None:
    parts = (tensor.data(arange(1) + 7), tensor.data(arange(2)))
    assert tensor.concat("a; b => a^b", *parts).value(target="numpy").tolist() == [7, 0, 1]


def test_blanks_are_axes_of_their_own() -> None:
    assert einsum("__ => 0", arange(2, 3), target="numpy").tolist() == [15]


def test_every_digit_is_an_index_of_its_own() -> None:
    shape, named = parse_shape(Source("<spec>", "b00c"))
    assert len(shape.rows[2].axes()) == 4
    assert not named


def test_a_specification_that_is_wrong_spoils_none_after_it() -> None:
    for _ in range(2):
        with pytest.raises(Error):
            tensor.einsum("a,? => a", known(3))
        assert tensor.einsum("ij => ji", known(2, 3)).shape.output == (3, 2)


def test_a_window_over_one_axis_ends() -> None:
    assert einsum("o<+k; k => o", arange(5), np.ones(3), target="numpy").tolist() == [3, 6, 9]


def test_a_window_that_only_one_operand_names_has_a_loop() -> None:
    y = tensor.einsum("o<+k => o", tensor.data(arange(5)))
    program = tensor.solve(y, constraints=[tensor.SetSize("k", 2)])
    assert program.value(y, target="numpy").tolist() == [1, 3, 5, 7]


def test_results_start_from_the_neutral_element_of_their_operator() -> None:
    x = tensor.data(-1 - arange(2))
    assert tensor.einsum("i => ii", x).value(target="numpy").tolist() == [[-1, 0], [0, -2]]
    lowest = tensor.einmax("i => ii", x).value(target="numpy")
    assert lowest.tolist() == [[-1, -np.inf], [-np.inf, -2]]


def test_windows_divide_exactly_and_padding_keeps_the_size() -> None:
    k = known(3, name="k")
    refused = refusal("E0517", tensor.einsum("2*o<+k; k => o", known(10), k))
    assert "output axis 0 of x is 10" in refused.message
    assert tensor.einsum("2*o=+k; k => o", known(10), k).shape.output == (5,)
    assert tensor.einsum("i+1 => i", known(4)).shape.output == (4,)


def test_numbers_of_values_are_looked_at_after_uses() -> None:
    filled = tensor.fill(np.ones(12))
    assert tensor.solve(filled + known(3, 4)).shape(filled).output == (3, 4)
    refusal("E0519", tensor.fill(np.ones(12)) + known(3, 5))


def test_a_size_that_is_set_is_named_where_it_contradicts() -> None:
    y = tensor.einsum("ij => j", known(2, 3))
    refused = refusal("E0505", y, constraints=[tensor.SetSize("i", 5)])
    assert 'SetSize("i", 5)' in refused.message
    assert "output axis 0 of x is 2" in refused.message


def test_one_name_is_not_an_axis_and_a_row() -> None:
    with pytest.raises(Error) as caught:
        tensor.einsum("..d.., d => d", known(3))
    assert caught.value.code == "E0147"


def test_refusals_show_both_places_and_where_they_meet() -> None:
    refused = refusal("E0510", tensor.relu(known(3, name="a")) + known(4, name="b"))
    shown = [(label.span.text(), label.text) for label in refused.labels]
    assert shown == [("3", "3 here"), ("4", "4 here"), ("relu(a) + b", "meets both here")]
    refused = refusal("E0513", tensor.data(None, (), (3,), (4,), "w") @ known(3, 3))
    assert "the input row of w against the output row of x" in refused.message
    assert refused.help is not None
    assert "element by element is `*.` and `/.`" in refused.help


def test_a_parameter_that_nothing_determines_names_what_would() -> None:
    hidden = tensor.param("w1") @ known(2) + tensor.param("b1")
    refused = refusal("E0520", tensor.param("w2", output=(3,)) @ hidden)
    assert "the input row of w2" in refused.message
    assert refused.help is not None
    assert "the output row of w1, the output row of b1" in refused.help
