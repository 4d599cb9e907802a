"""Constants whose sizes come from use: output axes, and repeated along all others."""

from pathlib import Path

import numpy as np
import pytest

from ilang import ShapeError, load, tensor


@pytest.mark.deep
@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
def test_constants_are_repeated_along_batch_and_input_axes(target: str, tmp_path: Path) -> None:
    path = tmp_path / "constants.i"
    path.write_text(
        "op scaled(x[b|o]) = values(1, 2, 3) *. x\n"
        "op mapped(x[|i->o]) = values(1, 2, 3) *. x\n"
        "op counted(x[b|o]) = x + range()\n"
        "op contracted(x[b|o]) = values(1, 2, 3, 4, 5, 6) * x\n"
        "op whole(x[b|o]) = x + values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)\n"
        "op either(x[b|o]) = where(x > 5, values(1, 2, 3), 0)\n"
        "op apart(x[b|n,m]) = values(1, 2, 3) *. x\n"
    )
    functions, x = load(str(path)), np.arange(12, dtype=np.float32).reshape(4, 3)
    numbers, matrix = np.array([1, 2, 3]), np.arange(1, 7).reshape(2, 3)
    for name, array, expected in (
        ("scaled", x, numbers * x),
        ("mapped", x.T.copy(), numbers[:, None] * x.T),
        ("counted", x, x + np.arange(12).reshape(4, 3)),
        ("contracted", x, x @ matrix.T),
        ("whole", x, x + np.arange(1, 13).reshape(4, 3)),
        ("either", x, np.where(x > 5, numbers, 0)),
        ("apart", x[:, None], (numbers * x)[:, None]),
    ):
        np.testing.assert_allclose(functions[name](array, target=target), expected, err_msg=name)


def test_a_constant_with_values_for_no_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "constants.i"
    path.write_text("op f(x[b|o]) = values(1, 2, 3, 4) *. x\n")
    with pytest.raises(ShapeError) as caught:
        load(str(path))["f"](np.ones((2, 3), np.float32))
    assert caught.value.code == "E0519"


def test_filled_tensors_are_constants() -> None:
    x = tensor.data(np.ones((4, 3), np.float32), (4,), (), (3,))
    scale = tensor.fill(np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal((scale * x).value(target="numpy"), [[0, 1, 2]] * 4)
