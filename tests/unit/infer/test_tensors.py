"""Tensor expressions from rows to C: projections, several writers, random specifications against the evaluator."""

import random
from typing import Any

import numpy as np
import pytest

from ilang import Error, ShapeError, einsum, tensor


def arange(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)


def refused(code: str, *tensors: tensor.Tensor) -> str:
    with pytest.raises(Error) as caught:
        tensor.solve(*tensors).values(tensors)
    assert caught.value.code == code, caught.value
    return caught.value.message


def test_a_layer_finds_its_weights() -> None:
    x = tensor.data(None, (20,), (), (2,), "x")
    w, b = tensor.param("w"), tensor.param("b", output=(16,))
    y = tensor.relu(w @ x + b)
    p = tensor.solve(y)
    assert p.shape(w) == tensor.Shape((), (2,), (16,))
    assert p.shape(y) == tensor.Shape((20,), (), (16,))


def test_a_shared_size_is_not_a_shared_loop() -> None:
    w = tensor.param("w", value=1.0)
    x = tensor.data(arange(3))
    first = tensor.matmul(w, x)
    both = tensor.matmul(w, first) + tensor.data(arange(3))
    p = tensor.solve(both)
    (found,) = p.projections(first)
    assert [loop.extent for loop in found.loops] == [3, 3]
    assert np.allclose(p.value(both), arange(3) + 9)


def test_fixed_and_diagonal_writes_start_from_the_neutral_element() -> None:
    x = tensor.data(arange(3) + 1)
    assert tensor.einsum("i=>ii", x).value().tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]
    assert tensor.einsum("i=>1i", x).value().tolist() == [[0, 0, 0], [1, 2, 3]]
    assert tensor.einmax("ij=>i1", tensor.data(arange(2, 2))).value().tolist() == [
        [-np.inf, 1],
        [-np.inf, 3],
    ]


def test_an_index_of_zero_is_a_unit_axis_that_stretches() -> None:
    r = tensor.data(arange(3))
    eye = tensor.eq(tensor.einsum("i=>i0", r), tensor.einsum("j=>0j", r))
    assert eye.value().tolist() == np.eye(3).tolist()


def test_a_mean_is_not_materialised() -> None:
    x = tensor.data(arange(4, 5), batch=1)
    total = tensor.einsum("...|... => ...|0", x)
    mean = total / 5
    p = tensor.solve(x - mean)
    assert p.shape(mean).output == (1,)


def test_a_unit_part_still_shifts_the_others() -> None:
    a, b = tensor.data(arange(1) + 7), tensor.data(arange(2))
    assert tensor.concat("a; b => a^b", a, b).value().tolist() == [7, 0, 1]
    assert tensor.concat("b; a => b^a", b, a).value().tolist() == [0, 1, 7]


def test_windows_read_zero_outside_and_maxima_skip() -> None:
    x, k = tensor.data(arange(4) - 9), tensor.data(np.ones(3))
    assert tensor.einsum("o=+k; k => o", x, k).value().tolist() == [-17, -24, -21, -13]
    zero = tensor.data(np.zeros(3))
    assert tensor.tropical("o=+k; k => o", x, zero).value().tolist() == [-8, -7, -6, -6]
    assert tensor.einsum("i+1 => i", x).value().tolist() == [-8, -7, -6, 0]


def test_writes_outside_the_result_are_left_out() -> None:
    x, k = tensor.data(arange(4) + 1), tensor.data(np.array([1.0, 10.0, 100.0]))
    assert tensor.einsum("i => i+1", x).value().tolist() == [0, 1, 2, 3]
    assert tensor.einmax("i => i+1", x).value().tolist() == [-np.inf, 1, 2, 3]
    assert tensor.einsum("i; k => i=+k", x, k).value().tolist() == [12, 123, 234, 340]
    strided = [10, 102, 20, 203, 30, 304, 40, 400]
    assert tensor.einsum("i; k => 2*i=+k", x, k).value().tolist() == strided


def test_writing_through_a_window_is_the_adjoint_of_reading_through_it() -> None:
    rng = np.random.RandomState(7)
    for size, window, stride in ((6, 3, 1), (4, 2, 1), (3, 5, 1), (3, 4, 2)):
        x, k = rng.standard_normal(stride * size), rng.standard_normal(window)
        g = rng.standard_normal(size)
        leaves = [tensor.data(x), tensor.data(k), tensor.data(g)]
        read = tensor.einsum(f"{stride}*o=+k; k => o", leaves[0], leaves[1]).value()
        written = tensor.einsum(f"o; k => {stride}*o=+k", leaves[2], leaves[1]).value()
        assert np.isclose(read @ g, written @ x)


def test_a_maximum_of_nothing_is_the_neutral_element() -> None:
    x = tensor.data(arange(4) - 9)
    assert tensor.einmax("i+1 => i", x).value().tolist() == [-8, -7, -6, -np.inf]
    assert tensor.tropical("i+1; i => i", x, x).value().tolist() == [-17, -15, -13, -np.inf]
    whole = tensor.data(np.arange(3, dtype=np.int32))
    assert tensor.einmax("i+1 => i", whole).value().tolist() == [1, 2, -(2**31)]


def test_results_add_up_where_windows_of_the_result_meet() -> None:
    x, k = tensor.data(arange(3) + 1), tensor.data(np.array([1.0, 10.0]))
    assert tensor.einsum("i; k => i+k", x, k).value().tolist() == [1, 12, 23, 30]


def test_einsum_of_arrays() -> None:
    x, y = arange(2, 3), arange(3, 4)
    assert np.allclose(einsum("ij; jk => ik", x, y), x @ y)
    assert np.allclose(einsum("... => 0", arange(2, 3, 4)), [276])
    assert einsum("..v..|ijk => ..v..kji", arange(5, 2, 3, 4), target="numpy").shape == (5, 4, 3, 2)
    for spec, code in (
        ("..a..|..b.. => ..b..|..a..", "E0509"),
        ("ijk => i", "E0503"),
        ("i; i => i", "E0150"),
    ):
        with pytest.raises(Error) as caught:
            einsum(spec, arange(2, 3))
        assert caught.value.code == code


def test_literals() -> None:
    assert tensor.literal("[|(1, 2); (3, 4)|]").shape == tensor.Shape((2,), (2,), ())
    mixed = tensor.literal("([1; 2; 3], [4; 5; 6])")
    assert mixed.shape == tensor.Shape((), (2,), (3,))
    assert mixed.value().tolist() == [[1, 4], [2, 5], [3, 6]]
    for text, code in (
        ("[1; [2]]", "E0149"),
        ("[1, 2]", "E0148"),
        ("[]", "E0148"),
        ("[1", "E0148"),
    ):
        with pytest.raises(Error) as caught:
            tensor.literal(text)
        assert caught.value.code == code


def test_refusals_name_what_met() -> None:
    a, b = tensor.data(arange(3), name="a"), tensor.data(arange(4), name="b")
    message = refused("E0510", a + b)
    assert "axis 0 of a is 3" in message
    assert "axis 0 of b is 4" in message
    assert "`a + b`" in message
    assert "w" in refused("E0520", tensor.param("w") @ tensor.param("x") + a)
    refused("E0503", tensor.einsum("ij => ji", a))
    refused("E0512", tensor.stack(a, tensor.data(arange(2, 3))))
    refused("E0574", tensor.einsum("3 => 0", a))
    refused("E0521", tensor.einsum("o<+k => o", a))


def test_parts_of_an_operand_are_not_guessed() -> None:
    x, y = tensor.data(arange(4)), tensor.data(arange(3))
    message = refused("E0521", tensor.einsum("i^j; u^i => i,j,u", x, y))
    assert "the size of i is never given" in message
    refused("E0521", tensor.einsum("i^j => j", x))
    assert tensor.einsum("i^j; i => j", x + 1, y).value().tolist() == [4]


def test_specifications_that_are_wrong() -> None:
    x = tensor.data(arange(3))
    for spec, code in (
        ("..d.., d => d", "E0147"), ("i => i => i", "E0141"), ("a|b|c => a", "E0142"), ("...a... => a", "E0143"),
        ("i; j => ij", "E0150"), ("i? => i", "E0140"), ("0*i => i", "E0145"), ("a^a => a", "E0146"),
    ):  # fmt: skip
        with pytest.raises(Error) as caught:
            tensor.einsum(spec, x)
        assert caught.value.code == code, spec


# -- random specifications -------------------------------------------------------------------------------------------


class Drawn:
    """A random specification and tensors that fit it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.sizes = {name: self.rng.choice((1, 2, 3, 4)) for name in "ijkm"}
        self.rows = {"v": [2, 3][: self.rng.randint(0, 2)]}
        operands = [self.operand() for _ in range(self.rng.randint(1, 3))]
        seen = sorted({name for words, _ in operands for name in words if name in self.sizes})
        kept = self.rng.sample(seen, self.rng.randint(0, len(seen)))
        result = [*kept, *self.rng.choice(([], [], ["0"], ["1"], kept[:1]))]
        if any("..v.." in words for words, _ in operands) and self.rng.random() < 0.7:
            result.insert(self.rng.randint(0, len(result)), "..v..")
        specs = [", ".join(words) for words, _ in operands]
        self.spec = f"{'; '.join(specs)} => {', '.join(result)}{',' if result else ''}"
        self.shapes = [shape for _, shape in operands]

    def operand(self) -> tuple[list[str], list[int]]:
        words: list[str] = []
        shape: list[int] = []
        for name in self.rng.sample("ijkm", self.rng.randint(0, 3)):
            words.append(name)
            shape.append(self.sizes[name])
        if self.rng.random() < 0.4:
            stride, window = self.rng.randint(1, 2), self.rng.choice("km")
            over = "i" if self.rng.random() < 0.5 else "j"
            padded = self.rng.random() < 0.5
            words.append(f"{stride}*{over}{'=' if padded else '<'}+{window}")
            inside = stride * self.sizes[over]
            whole = stride * (self.sizes[over] - 1) + self.sizes[window]
            shape.append(inside if padded else whole)
            words.append(window)
            shape.append(self.sizes[window])
        if self.rng.random() < 0.3:
            place = self.rng.randint(0, len(words))
            words.insert(place, "..v..")
            shape[place:place] = self.rows["v"]
        if self.rng.random() < 0.2:
            words.append("1")
            shape.append(3)
        return words, shape


TOGETHER = 25
"""Specifications that are compiled as one program."""


def test_random_specifications_compile_to_what_they_mean() -> None:
    nets: list[tensor.Tensor] = []
    wanted: list[Any] = []
    codes: set[str] = set()
    for seed in range(300):
        drawn = Drawn(seed)
        arrays = [np.random.RandomState(seed).standard_normal(shape) for shape in drawn.shapes]
        leaves = [tensor.data(array) for array in arrays]
        acc = random.Random(seed).choice("++>")
        net = tensor.einsum(drawn.spec, *leaves, acc=acc)
        try:
            wanted.append(net.value(target="numpy"))
        except ShapeError as error:
            codes.add(error.code)
            continue
        nets.append(net)
    assert 200 < len(nets)
    assert codes <= {"E0501", "E0503", "E0505", "E0574"}
    for start in range(0, len(nets), TOGETHER):
        some = nets[start : start + TOGETHER]
        values = tensor.solve(*some).values(some)
        for net, got, want in zip(some, values, wanted[start : start + TOGETHER], strict=True):
            assert np.allclose(got, want, rtol=1e-9), net
    assert np.allclose(nets[0].value(), wanted[0], rtol=1e-9)
