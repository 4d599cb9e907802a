"""Full tiles split from boundary tiles: which loops run to their ends, and what has to hold for that."""

from ilang.core.calculus.affine import Affine, Within, axis_index
from ilang.core.calculus.extent import size
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.kernel import For, If, Store
from ilang.core.ir.scalar import Constant
from ilang.core.ir.shaped import Size
from ilang.core.passes.full_tiles import full_test, split

N, WIDTH = 0, 1
J, J1 = VariableId(0), VariableId(1)
SIZES = [Size("n", None, ()), Size("n_64", 64, ())]
REST = size(WIDTH).among("min", [(Affine(((-64, J),), sizes=((1, N),)), 1)])


def loop(end: object = REST) -> For:
    index = (Affine(((64, J), (1, J1))),)
    return For(J1, end, (Store(BufferId(0), index, Constant(0, "f32")),))  # type: ignore[arg-type]


def test_a_loop_runs_to_its_end_where_its_last_iteration_is_inside() -> None:
    (branch,) = split(SIZES, (loop(),), {J1})
    assert branch == If((Within(Affine(((64, J),), 63), N),), (loop(size(WIDTH)),), (loop(),))


def test_other_loops_stay() -> None:
    assert split(SIZES, (loop(),), {J}) == (loop(),)
    assert split(SIZES, (loop(size(WIDTH)),), {J1}) == (loop(size(WIDTH)),)


def test_nothing_is_split_from_a_tile_that_is_larger_than_its_dimension() -> None:
    assert split([Size("n", 63, ()), SIZES[WIDTH]], (loop(),), {J1}) == (loop(),)


def test_a_condition_on_a_loop_of_unknown_length_has_no_test() -> None:
    assert full_test(SIZES, Within(axis_index(J1), N), {J1: None}) is None
    assert full_test(SIZES, Within(axis_index(J1), N), {J1: 8}) == Within(Affine((), 7), N)
