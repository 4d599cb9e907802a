"""Each way in which reductions read while they are partial have gone wrong somewhere: right here, or refused."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from ilang.core import pipeline
from ilang.core.diagnostic import ScheduleError
from tests.property import native
from tests.property.attention import Array
from tests.property.batch import Batch
from tests.property.test_fuzz import needs_compiler
from tests.property.test_online import difference, is_online, shaped_of

ROWS = "|| n m"
"""No splits, the reduced loop outside."""

FLASH = (
    "md*nd~mnd | m:16,n:16 | n m m' n' d >> +mnd~mn | m:16,n:16 | n m m' n' d 0"
    " >> (I & >mn~m | m:16,n:16 | n m 0 m' n') >> mn-m~mn | m:16,n:16 | n m 0 1 m' n'"
    " >> ^mn~mn | m:16,n:16 | n m 0 m' n'"
    " >> (I & +mn~m | m:16,n:16 | n m 0 m' n') >> mn/m~mn | m:16,n:16 | n m 0 1 m' n'"
    " >> mn*nd~mdn | m:16,n:16 | n m 0 m' d n' >> +mdn~md | m:16,n:16 | n m m' d n' 0"
)
MASKED = "(" + FLASH.replace(
    " >> (I & >mn~m", " | I) >> mn+mn~mn | m:16,n:16 | n m 0 1 m' n' >> (I & >mn~m", 1
)
HEADS = (
    FLASH.replace("md*nd~mnd", "hmd*hnd~hmnd")
    .replace("+mnd~mn", "+hmnd~hmn")
    .replace(">mn~m", ">hmn~hm")
    .replace("mn-m~mn", "hmn-hm~hmn")
    .replace("^mn~mn", "^hmn~hmn")
    .replace("+mn~m ", "+hmn~hm ")
    .replace("mn/m~mn", "hmn/hm~hmn")
    .replace("mn*nd~mdn", "hmn*hnd~hmdn")
    .replace("+mdn~md", "+hmdn~hmd")
    .replace("| n m", "| h n m")
)
BATCHED = HEADS.replace("h", "bh").replace("| bh n", "| b h n")
UNSPLIT = FLASH.replace("| m:16,n:16 |", "||").replace(" m'", "").replace(" n'", "")
INNER = (
    "md*nd~mnd || m n d >> +mnd~mn || m n d 0 >> (I & >mn~m || m n 0) >> mn-m~mn || m n 0 1"
    " >> ^mn~mn || m n 0 >> (I & +mn~m || m n 0) >> mn/m~mn || m n 0 1"
    " >> mn*nd~mdn || m n 0 d >> +mdn~md || m n d 0"
)
VALUES = (
    "(I & >mn~m | n:2 | m n n') >> mn-m~mn | n:2 | m n 1 n' >> ^mn~mn | n:2 | m n n' 0"
    " >> (I & +mn~m | n:2 | m n 0 n') >> mn/m~mn | n:2 | m n 0 1 n'"
    " >> mn*ne~mne | n:2 | m n 0 n' e >> +mne~me | n:2 | m n n' e 0"
)
DIVIDED = (
    "(I & +mn~m | n:2 | m n n') >> mn/m~mn | n:2 | m n 1 n' >> mn*ne~mne | n:2 | m n 0 n' e"
    " >> +mne~me | n:2 | m n n' e 0"
)


def behind(text: str, most: str, total: str, quotient: str = "", product: str = "") -> str:
    """A text with guards of the maximum, of the sum, of the numerators, and of what is taken times something."""
    places = ((">mn~m", most), ("+mn~m ", total), ("mn/m", quotient), ("mn*n", product))
    for place, guard in places:
        assert text.count(place) == 1
        if guard:
            text = text.replace(place, place.replace("mn", f"mn[{guard}]", 1))
    return text


CAUSAL = "n<=m"
BAND = "n<=m,n>=m-2"
PART = "(I & >mnp~m || n m p) >> mnp-m~mnp || n m 1 p >> ^mnp~mnp || n m p 0 >> +mnp~mp || n m p 0"


def normal(*shape: int, seed: int = 0, scale: float = 2.0) -> Array:
    return np.asarray(np.random.default_rng(seed).normal(size=shape) * scale, np.float32)


def rows(*values: list[float]) -> Array:
    return np.asarray(values, np.float32)


def attended(m: int, n: int, d: int) -> tuple[Array, ...]:
    return normal(m, d), normal(n, d, seed=1), normal(n, d, seed=2)


def causal(m: int, n: int) -> Array:
    """0 where a row may look, -inf where it may not: what comes later."""
    return np.where(np.arange(n) <= np.arange(m)[:, None], 0, -np.inf).astype(np.float32)


V = normal(4, 3, seed=3)
RIGHT: dict[str, tuple[str, tuple[Array, ...]]] = {
    "extents that tiles divide": (FLASH, attended(32, 48, 8)),
    "ragged extents": (FLASH, attended(37, 51, 5)),
    "a causal mask": (MASKED, (*attended(37, 51, 5)[:2], causal(37, 51), normal(51, 5))),
    "a mask that hides first tiles": (
        MASKED,
        (*attended(20, 40, 3)[:2], causal(20, 40)[:, ::-1].copy(), normal(40, 3)),
    ),
    "heads": (HEADS, (normal(2, 20, 4), normal(2, 33, 4, seed=1), normal(2, 33, 4, seed=2))),
    "batches": (
        BATCHED,
        (normal(2, 3, 17, 2), normal(2, 3, 18, 2, seed=1), normal(2, 3, 18, 2, seed=2)),
    ),
    "running maxima reset when fully fused": (UNSPLIT, attended(7, 11, 3)),
    "fully fused, one row at a time": (INNER, attended(7, 11, 3)),
    "no columns": (FLASH, attended(5, 0, 3)),
    "no rows": (FLASH, attended(0, 5, 3)),
    "no depth": (FLASH, attended(5, 5, 0)),
    "one of everything": (FLASH, attended(1, 1, 1)),
    "first tile all -inf": (VALUES, (rows([-inf, -inf, 1, 2], [-inf, -inf, -1000, -999]), V)),
    "later tiles all -inf": (VALUES, (rows([1, 2, -inf, -inf], [0, -inf, -inf, -inf]), V)),
    "rows all -inf": (VALUES, (rows([-inf] * 4, [0, 1, 2, 3]), V)),
    "+inf in a row": (VALUES, (rows([0, inf, 1, 2], [inf, 0, 0, inf], [0, 1, 2, 3]), V)),
    "NaN in a row": (VALUES, (rows([nan, 0, 1, 2], [0, 1, 2, nan], [0, 1, 2, 3]), V)),
    "maxima that grow by thousands": (VALUES, (rows([0, 1000, 2000, 3000], [3000, 0, 0, 9]), V)),
    "+inf that only some sums have": (
        PART,
        (np.asarray([[[0, 1], [2, 3]], [[inf, 1], [2, 3]], [[-inf] * 2] * 2], np.float32),),
    ),
    "first tile sums to 0": (DIVIDED, (rows([1, -1, 2, 3], [0, 0, 5, 1]), V)),
    "a divisor that ends as 0": (
        DIVIDED,
        (
            rows([1, -1, 2, -2], [0, 0, 0, 0], [1, -1, 1, -1]),
            rows([1, 1], [-1, 1], [1, 2], [-1, 1]),
        ),
    ),
    "an infinite divisor": (DIVIDED, (rows([1, inf, 2, 3], [0, 0, nan, 1]), V)),
    "a transposed sum": (
        VALUES.replace("mn*ne~mne", "mn*ne~emn").replace("+mne~me", "+emn~em"),
        (normal(5, 4), V),
    ),
    "a causal guard": (behind(FLASH, CAUSAL, CAUSAL, CAUSAL), attended(37, 51, 5)),
    "exponentials that are infinite beyond a guard": (
        behind(VALUES, CAUSAL, CAUSAL, CAUSAL),
        (rows([0, 500, inf, 1], [nan, 1, 500, nan], [1, 2, 3, nan], [-1000, -900, -800, -801]), V),
    ),
    "a band whose first tiles are outside": (
        behind(VALUES, BAND, BAND, BAND),
        (normal(9, 9, scale=40), normal(9, 3, seed=3)),
    ),
    "rows past a band": (behind(VALUES, BAND, BAND, BAND), (normal(9, 4), V)),
    "rows past a band, with a maximum of all that is NaN": (
        behind(VALUES, "", "", "", BAND),
        (np.where(np.eye(9, 4, -5, dtype=bool), np.float32(nan), normal(9, 4)), V),
    ),
    "rows past a band, with a sum of all that is 0": (
        DIVIDED.replace("mn*ne", f"mn[{BAND}]*ne"),
        (np.tile(rows([1, -1, 2, -2]), (9, 1)), V),
    ),
    "first columns that are all -inf inside a guard": (
        behind(VALUES, "n>=m", "n>=m", "n>=m"),
        (rows([-inf, -inf, 1, 2], [9, -inf, -inf, 3], [9, 9, -inf, -inf], [1, 1, 1, 1]), V),
    ),
    "guards of the product in place of the quotient": (
        behind(VALUES, CAUSAL, CAUSAL, "", CAUSAL),
        (rows([0, 500, inf, 1], [1, 1, 500, nan], [1, 2, 3, nan], [0, 1, 2, 3]), V),
    ),
    "a sum that leaves out what a maximum does": (
        (
            "(I & >mn[n<=m]~m | n:2 | m n n') >> mn-m~mn | n:2 | m n 1 n' >> ^mn~mn | n:2 | m n n' 0"
            " >> +mn[n<m]~m | n:2 | m n n' 0"
        ),
        (rows([0, 500, inf, 1], [1, 1, 500, nan], [1, 2, 3, nan], [0, 1, 2, 3]),),
    ),
    "what stands behind a guard, less a maximum, summed behind it": (
        behind(VALUES.replace("mn-m", "mn[n<=m]-m"), "", CAUSAL, CAUSAL),
        (normal(4, 4) - np.float32(100), V),
    ),
    "a guard of an axis inside": (
        PART.replace(">mnp", ">mnp[p<=n]").replace("+mnp", "+mnp[p<=n]"),
        (
            np.where(
                np.arange(5) <= np.arange(3)[:, None],
                normal(4, 3, 5),
                rows([inf, nan, 999, 0])[0][:, None, None],
            ),
        ),
    ),
    "guards of axes that two inputs share": (
        (
            "mn*n~mn | n:4 | m n n' >> (I & >mn~m | n:4 | m n 0 n') >> mn-m~mn | n:4 | m n 1 0 n'"
            " >> ^mn~mn | n:4 | m n n' 0 >> mn*n~mn | n:4 | m n n' 0 >> +mn~m | n:4 | m n n' 0"
        ),
        (normal(3, 10), normal(10), normal(10)),
    ),
}


@pytest.fixture(scope="module")
def answers() -> dict[str, tuple[native.Answer, Array]]:
    """What every case gives when it runs under sanitizers, and what it means."""
    batch = Batch("sanitized")
    for text, arrays in RIGHT.values():
        shaped = shaped_of(text)
        batch.add(shaped)
        batch.call(shaped, arrays, exact=False)
    return {
        name: (answer, want[0])
        for name, (_, answer, want) in zip(RIGHT, batch.answers(), strict=True)
    }


@needs_compiler
@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str, answers: dict[str, tuple[native.Answer, Array]]) -> None:
    answer, want = answers[name]
    assert not answer.trouble
    assert not difference(answer.outputs[0], want)


@pytest.mark.parametrize("name", RIGHT)
def test_one_kernel_that_runs(name: str) -> None:
    program = pipeline.lower(shaped_of(RIGHT[name][0]))
    assert len(program.kernels) == 1
    assert is_online(program)


TURNED = (
    "(I & >mn~m | m:3 | n m 0 m') >> mn-m~mn | m:3 | n m 0 1 m' >> ^mn~mn | m:3 | n 0 m m'"
    " >> +mn~m | m:3 | n m 0 m'"
)
"""The maximum stands in loops over rows of which the sum has none."""


@pytest.mark.parametrize(
    "text", [TURNED, TURNED.replace(">mn", ">mn[m<n]").replace("+mn", "+mn[m<n]")]
)
def test_sums_of_threads_are_scaled_in_the_rows_that_a_maximum_is_at(text: str) -> None:
    shaped = shaped_of(text)
    array = normal(4, 12)
    batch = Batch("cuda-checked")
    batch.add(shaped)
    batch.call(shaped, [array], exact=False)
    ((_, answer, (want,)),) = batch.answers()
    assert not answer.trouble
    assert not difference(answer.outputs[0], want)


def test_unrelated_axes_are_not_fused_by_number() -> None:
    """The sum's own j is no k of its reader: it is complete there."""
    program = pipeline.lower(shaped_of("+ij~i || i j >> i*k~ik || i k 0"))
    assert not is_online(program)


def temporaries(text: str) -> dict[str, tuple[str, ...]]:
    """What a program keeps between its statements: names and extents."""
    program = pipeline.lower(shaped_of(text))
    return {
        buffer.name: tuple(
            str(size.fixed or size.name) for size in (program.sizes[n] for n in buffer.dims)
        )
        for buffer in program.buffers
        if buffer.role == "temporary"
    }


def test_nothing_is_larger_than_a_tile_and_the_running_rows() -> None:
    kept = temporaries(FLASH)
    running = {name: dims for name, dims in kept.items() if name.endswith("_run")}
    assert running == {"maximum_run": ("m",), "sum2_run": ("m",), "out_run": ("m", "d2")}
    tiles = {dims for name, dims in kept.items() if name not in running}
    assert tiles <= {("16", "16"), ("16",)}


def test_rows_outside_need_no_more_than_a_tile() -> None:
    """With the loop over tiles of rows outside, a tile of rows runs."""
    kept = temporaries(FLASH.replace("| n m", "| m n"))
    assert {dims for dims in kept.values() if "d2" not in dims} <= {("16", "16"), ("16",)}
    assert kept["out_run"] == ("16", "d2")


SHIFTED = f"(I & >mn~m {ROWS}) >> mn-m~mn {ROWS} 1"
SUM = f">> +mn~m {ROWS} 0"
REFUSED: dict[str, tuple[str, str, str]] = {
    "only the maximum behind a guard": (
        f"(I & >mn[n<=m]~m {ROWS}) >> mn-m~mn {ROWS} 1 >> ^mn~mn {ROWS} 0 {SUM}",
        "E0323",
        "sums elements that are not behind the guards of those that it is the maximum of",
    ),
    "a sum behind a weaker guard than the maximum": (
        f"(I & >mn[n<m]~m {ROWS}) >> mn-m~mn {ROWS} 1 >> ^mn~mn {ROWS} 0 >> +mn[n<=m]~m {ROWS} 0",
        "E0323",
        "sums elements that are not behind the guards of those that it is the maximum of",
    ),
    "a maximum read behind a guard": (
        f"(I & >mn~m {ROWS}) >> mn-m[m<3]~mn {ROWS} 1 >> ^mn~mn {ROWS} 0 {SUM}",
        "E0323",
        "reads it behind a guard, and takes it for 0 there",
    ),
    "x - m behind a guard": (
        f"{SHIFTED} >> ^mn[n<=m]~mn {ROWS} 0 {SUM}",
        "E0323",
        "reads x - m behind a guard, and takes it for 0 there",
    ),
    "what stands behind a guard, less a maximum": (
        f"(I & >mn~m {ROWS}) >> mn[n<=m]-m~mn {ROWS} 1 >> ^mn~mn {ROWS} 0 {SUM}",
        "E0323",
        "sums elements that are not behind the guards of those that it is the maximum of",
    ),
    "a divisor that leaves out numerators": (
        f"{SHIFTED} >> ^mn~mn {ROWS} 0 >> (I & +mn[n<=m]~m {ROWS} 0) >> mn/m~mn {ROWS} 0 1 {SUM}",
        "E0323",
        "sums quotients of elements that are not behind the guards of their divisor",
    ),
    "guards of which nobody knows which rows they leave": (
        f"{SHIFTED} >> ^mn~mn {ROWS} 0 >> +mn[2n<=m+3,3n>=m]~m {ROWS} 0",
        "E0323",
        "which rows of +mn[2n<=m+3,3n>=m]~m have an element inside all guards is not known",
    ),
    "softmax alone": (
        f"(I & +mn~m {ROWS}) >> mn/m~mn {ROWS} 1",
        "E0323",
        "mn/m~mn stores a value that depends on it",
    ),
    "nonlinear after the quotient": (
        f"(I & +mn~m {ROWS}) >> mn/m~mn {ROWS} 1 >> ^mn~mn {ROWS} 0 {SUM}",
        "E0323",
        "applies exponential to a value that depends on it",
    ),
    "additive after the quotient": (
        f"(I & +mn~m {ROWS}) >> mn/m~mn {ROWS} 1 >> mn+mn~mn {ROWS} 0 {SUM}",
        "E0323",
        "applies add to a value that depends on it",
    ),
    "additive after the exponential": (
        f"{SHIFTED} >> ^mn~mn {ROWS} 0 >> mn-mn~mn {ROWS} 0 {SUM}",
        "E0323",
        "applies subtract to a value that depends on it",
    ),
    "another base": (
        f"~({SHIFTED} | I) >> .^mn~mn {ROWS} 1 {SUM}",
        "E0323",
        "applies power to x - m",
    ),
    "the shifted value as the base": (
        f"{SHIFTED} >> mn^n~mn {ROWS} 0 {SUM}",
        "E0323",
        "applies power to x - m",
    ),
    "shifted and no exponential": (f"{SHIFTED} {SUM}", "E0323", "reduces it"),
    "shifted twice": (
        (
            f"(I & >mn~m {ROWS}) >> (mn-m~mn {ROWS} 1 & ~(I | I)) >> (^mn~mn {ROWS} 0 | I | I)"
            f" >> (I | ~(I | I)) >> (I | mn-m~mn {ROWS} 1) >> (I | ^mn~mn {ROWS} 0)"
            f" >> mn*mn~mn {ROWS} 0 1 {SUM}"
        ),
        "E0323",
        "takes it twice, in both factors",
    ),
    "a product": (
        f"(I & *mn~m {ROWS}) >> mn/m~mn {ROWS} 1 {SUM}",
        "E0323",
        "values that depend on a product",
    ),
    "a minimum": (
        f"(I & <mn~m {ROWS}) >> mn-m~mn {ROWS} 1 >> ^mn~mn {ROWS} 0 {SUM}",
        "E0323",
        "values that depend on a minimum",
    ),
    "a sum subtracted": (
        f"(I & +mn~m {ROWS}) >> mn-m~mn {ROWS} 1 >> ^mn~mn {ROWS} 0 {SUM}",
        "E0323",
        "only a maximum may be subtracted",
    ),
    "the maximum of something else": (
        f"(-mn~mn {ROWS} & >mn~m {ROWS}) >> mn-m~mn {ROWS} 0 1 >> ^mn~mn {ROWS} 0 {SUM}",
        "E0323",
        "than the elements that it is the maximum of",
    ),
    "a maximum at the end": (
        f"{SHIFTED} >> ^mn~mn {ROWS} 0 >> >mn~m {ROWS} 0",
        "E0323",
        "takes the maximum of values that depend on it",
    ),
    "rows that the end sums over": (
        f"{SHIFTED} >> ^mn~mn {ROWS} 0 >> +mn~. {ROWS} 0",
        "E0323",
        "sums over m, an axis that it keeps",
    ),
    "a loop outside in which it starts again": (
        (
            "(I & >mn~m || n m) >> mn-m~mn || n m 1 >> ^mn~mn || n m 0 >> mn*a~mna || a n m 0"
            " >> +mna~m || a n m 0"
        ),
        "E0323",
        "sums over a loop outside",
    ),
    "a loop between": (
        (
            "(I & >mn~m || n m) >> mn-m~mn || n m 1 >> ^mn~mn || n m 0 >> mn*ne~mne || n e m 0"
            " >> +mne~me || n e m 0"
        ),
        "E0328",
        "staged inside loop e",
    ),
    "a parallel loop": (
        f"(I & >mn~m {ROWS}) >> mn-m~mn {ROWS} 1 | n:p >> ^mn~mn {ROWS} 0 {SUM}",
        "E0329",
        "loop n of mn-m~mn is parallel",
    ),
}


def refusal(text: str) -> ScheduleError:
    with pytest.raises(ScheduleError) as caught:
        pipeline.lower(shaped_of(text))
    return caught.value


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, code, said = REFUSED[name]
    error = refusal(text)
    assert error.code == code
    assert said in error.message
    assert error.span is not None
    assert error.help


def test_help_gives_a_legal_schedule() -> None:
    text = REFUSED["softmax alone"][0]
    error = refusal(text)
    assert error.help is not None
    legal = error.help.split("`")[1]
    assert legal == "|| 1 n m"
    pipeline.lower(shaped_of(text.replace(f"mn/m~mn {ROWS} 1", f"mn/m~mn {legal}")))


def test_what_is_told_is_where_it_happens() -> None:
    """The span is the operation that is to blame, a label the reduction."""
    error = refusal(REFUSED["additive after the quotient"][0])
    assert error.span is not None
    assert error.span.text().startswith("mn+mn~mn")
    assert error.labels[0].span.text().startswith("+mn~m")


@pytest.mark.parametrize("text", [FLASH, VALUES, DIVIDED])
def test_other_types(text: str) -> None:
    """Corrections are made in the accumulator's type, whatever the element type is."""
    graph = pipeline.graph_of(pipeline.text_component(text), "program")
    shaped = pipeline.infer(graph, ["f64"] * len(graph.inputs))
    assert is_online(pipeline.lower(shaped))
