"""Random operations in einx notation mean what loops over named axes compute, on every target; more with `--fuzz`."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from ilang import MeaningError, ShapeError, einx, i
from tests.property.einx_programs import KINDS, Program, program

BATCH = 12
"""Programs of each kind in a batch that the reference evaluator computes."""
COMPILED = 10_000
EMULATED = 20_000
"""Where the seeds of other targets begin."""


def check(cases: Iterable[Program], target: str) -> None:
    """Operations give the results of their loops."""
    for case in cases:
        got = getattr(einx, case.op)(case.text, *case.arrays, target=target, **case.sizes)
        results = got if isinstance(got, tuple) else (got,)
        assert len(results) == len(case.results), case.text
        for one, other in zip(results, case.results, strict=True):
            assert one.shape == other.shape, case.text
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=case.text)


@pytest.mark.batches(2)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_reference(kind: int, batch: int) -> None:
    seeds = range(batch * BATCH, (batch + 1) * BATCH)
    check((program(len(KINDS) * seed + kind) for seed in seeds), "numpy")


@pytest.mark.batches(2)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_c(kind: int, batch: int) -> None:
    check([program(len(KINDS) * (COMPILED + batch) + kind)], "c")


@pytest.mark.batches(1)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_cuda(kind: int, batch: int) -> None:
    check([program(len(KINDS) * (EMULATED + batch) + kind)], "cuda-emulated")


@pytest.mark.batches(2)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_along_more_axes(kind: int, batch: int) -> None:
    """An operation as the op of another one, along an axis of some operands: what it gives for each of their parts."""
    case = program(len(KINDS) * batch + kind)
    body = getattr(einx, case.op)(case.text, **case.sizes)
    arrays = [
        np.stack([array, np.flip(array)]) if n % 2 == 0 else array
        for n, array in enumerate(case.arrays)
    ]
    parts = [[a[part] if n % 2 == 0 else a for n, a in enumerate(arrays)] for part in (0, 1)]
    wanted = [body(*each, target="numpy") for each in parts]
    whole = [each if isinstance(each, tuple) else (each,) for each in wanted]

    def written(name: str, place: str, ranks: Iterable[int]) -> str:
        inner = ([f"[{name}{n}_{axis}]" for axis in range(rank)] for n, rank in enumerate(ranks))
        return ", ".join(
            " ".join([*axes, place] if n % 2 == 0 else axes) for n, axes in enumerate(inner)
        )

    last = [np.moveaxis(a, 0, -1) if n % 2 == 0 else a for n, a in enumerate(arrays)]
    text = f"{written('x', 'n', (array.ndim for array in case.arrays))} -> "
    text += ", ".join(
        " ".join(["n", *(f"[z{k}_{axis}]" for axis in range(result.ndim))])
        for k, result in enumerate(map(np.asarray, whole[0]))
    )
    got = einx.vmap(text, *last, op=body, target="numpy")
    for one, each in zip(
        got if len(whole[0]) > 1 else (got,), zip(*whole, strict=True), strict=True
    ):
        np.testing.assert_allclose(
            one, np.stack(each), rtol=1e-12, err_msg=f"{case.text} in {text}"
        )


def test_printed() -> None:
    for seed in range(len(KINDS) * BATCH):
        case = program(seed)
        component = getattr(einx, case.op)(case.text, **case.sizes)
        text = repr(component).removeprefix("<Component ").rpartition(": ")[0]
        assert repr(i(text)) == repr(component)


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        ("a (3 b) -> (3 b) a", (2, 6), lambda x: x.T),
        ("a (2 3) -> (2 3) a", (2, 6), lambda x: x.T),
        ("a (1 3 b) -> (3 b) a", (2, 6), lambda x: x.T),
        ("a ((3 b) + c) -> ((3 b) + c) a", (2, 7), lambda x: x.T),
        ("(3 b) (3 b) -> (3 b)", (6, 6), np.diag),
        ("(p (3 b)) -> (3 b) p", (12,), lambda x: x.reshape(2, 6).T),
        ("(p 3 b) -> (3 b) p", (12,), lambda x: x.reshape(2, 6).T),
        ("(p (3 b)) -> ((3 b) p)", (12,), lambda x: x.reshape(2, 6).T.ravel()),
        ("(2 2 b) -> (2 2 b)", (12,), lambda x: x),
        ("a (3) -> (3) a", (2, 3), lambda x: x.T),
        ("(b 2) a, (b 2) -> (b 2) a, (b 2)", (6, 2), lambda x: x),
    ],
)
def test_a_composition_alike_on_both_sides_is_one(
    text: str, shape: tuple[int, ...], expected: Callable[[Any], Any]
) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    sizes = {"c": 1} if "+" in text else {"p": 2} if "p" in text else {}
    arrays = [x, np.ones(6)] if "," in text else [x]
    found: Any = einx.id(text, *arrays, **sizes)
    found = found[0] if isinstance(found, tuple) else found
    np.testing.assert_array_equal(found, expected(x))


@pytest.mark.parametrize(
    ("text", "shape", "code"),
    [
        ("a (3 b) -> (3 b) a", (2, 7), "E0577"),
        ("a (3 b) -> (b 3) a", (2, 6), "E0543"),
        ("a 3 -> 3 a", (2, 3), "E0543"),
        ("(2 3) -> (2 3) (2 3)", (6,), "E0543"),
        ("(2 2 2) -> (2 2) 2", (8,), "E0543"),
        ("(a 2 b) -> (a 2) (2 b)", (12,), "E0543"),
        ("(b 2) -> (2 b)", (12,), "E0543"),
    ],
)
def test_other_numbers_are_axes_of_their_own(text: str, shape: tuple[int, ...], code: str) -> None:
    with pytest.raises(ShapeError) as caught:
        einx.id(text, np.zeros(shape))
    assert caught.value.code == code


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize("text", ["a [(3 b)], [(3 b)] c -> a c", "a ([3 b]), ([3 b]) c -> a c"])
@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
def test_a_composition_alike_in_two_operands_is_contracted_whole(text: str, target: str) -> None:
    x, y = np.arange(12.0).reshape(2, 6), np.arange(12.0).reshape(6, 2)
    np.testing.assert_array_equal(i(f'einx.dot("{text}")')(x, y, target=target), x @ y)


@pytest.mark.parametrize(
    ("text", "ranks"), [("[3] b, [3] c -> b c", (2, 2)), ("a [b 3], [b 3] c -> a c", (3, 3))]
)
def test_dot_refuses_numbers_that_operands_have_apart(text: str, ranks: tuple[int, ...]) -> None:
    with pytest.raises(MeaningError) as caught:
        einx.dot(text, *(np.ones((3,) * rank) for rank in ranks))
    assert caught.value.code == "E0226"


@pytest.mark.parametrize(
    ("op", "text", "shape", "sizes", "words", "place"),
    [
        ("id", "a (3 b) -> (3 b) a", (2, 7), {}, "7 (dimension 1 of in0) is not divided by 3: axis b", "a (3 b)"),
        ("id", "(a b) c -> a b c", (7, 2), {"a": 2}, "7 (dimension 0 of in0) is not divided by a = 2:", "(a b) c"),
        ("sum", "b (s [2])... c", (2, 7, 4, 3), {}, "7 (dimension 1 of in0) is not divided by 2:", "b (s [2])... c"),
        ("id", "(a + b) -> a, b", (7,), {"a": 9}, "the whole is 7, the others 9", "(a + b) -> a, b"),
        ("id", "(a b) -> a b", (7,), {"a": 2, "b": 3}, "`(a b)` fixes dimension 0 of in0 at 6, and it is 7", "(a b)"),
    ],
)  # fmt: skip
def test_sizes_are_refused_in_the_words_of_the_text(
    op: str, text: str, shape: tuple[int, ...], sizes: dict[str, int], words: str, place: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        getattr(einx, op)(text, np.zeros(shape), **sizes)
    assert words in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.text() == place
