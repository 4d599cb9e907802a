"""What ``i explain --why`` says of tiles that prices chose."""

from __future__ import annotations

import random

import pytest

from ilang import i
from ilang.core.explain.why import Why
from tests.property.test_prices import contraction

PRODUCT = "ik*kj~ijk >> +ijk~ij"


def test_axes_over_one_element_are_told() -> None:
    why = i("nik*kj~nijk >> +nijk~nij").why((1, 80, 90), (90, 100))
    assert (why.units, why.collapsed) == (("n",), ())
    assert "Axes over one element have no loop: n." in str(why)


def test_the_first_one_is_chosen() -> None:
    why = i(PRODUCT).why((512, 512), (512, 512))
    (priced,) = why.priced
    row = i(PRODUCT).explain((512, 512), (512, 512)).execution.schedule[-1]
    assert (row.text, row.schedule) == (priced.text, priced.candidates[priced.chosen].schedule)
    cycles = [each.cycles for each in priced.candidates]
    assert cycles == sorted(cycles)
    assert why.others == ""


@pytest.mark.parametrize("terms", [1024, 3072])
def test_rows_at_one_place_of_the_cache_are_no_more_than_its_ways(terms: int) -> None:
    """Rows of 4096 bytes, or some times as many, stand in eight lines of the nearest cache."""
    assert _rows_of_the_cheapest(terms) <= 8


def test_other_rows_may_be_more() -> None:
    assert _rows_of_the_cheapest(3048) > 8


def _rows_of_the_cheapest(terms: int) -> int:
    """The rows of the cheapest tile of a product of so many terms."""
    (priced,) = i(PRODUCT).why((128, terms), (terms, 768)).priced
    return int(priced.candidates[0].schedule.partition("i:")[2].partition(",")[0])


@pytest.mark.parametrize("seed", range(12))
def test_cycles_are_the_sum_of_their_parts(seed: int) -> None:
    text, _, shapes = contraction(random.Random(seed))
    why = i(text).why(*shapes)
    for priced in why.priced:
        assert (
            why.collapsed
            or why.units
            or priced.candidates[priced.chosen].schedule
            in {row.schedule for row in i(text).explain(*shapes).execution.schedule}
        )
        for each in priced.candidates:
            assert abs(sum(each.counted().values()) - each.cycles) <= len(each.counted())
            assert each.counted()[each.bound] == max(each.counted().values())
    assert why.priced or "Rules" in why.others
    assert max(map(len, str(why).splitlines())) <= 80


def test_a_candidate_is_a_schedule() -> None:
    (priced,) = i(PRODUCT).why((70, 64), (64, 100)).priced
    for each in priced.candidates:
        i(f"{PRODUCT} {each.schedule}").source("c", (70, 64), (64, 100))


def test_rules_are_said_to_choose() -> None:
    assert i(PRODUCT).why() == Why(
        (), "Rules chose the loops, not a price: prices need all extents (--shape)."
    )


def test_loops_of_reductions_have_prices() -> None:
    """The first one is what runs, and each is a schedule that can be written."""
    for text, shape in (("+ij~j", (1000, 300)), ("+c(2h+r:2)(2w+s:2)~chw", (21, 48, 66))):
        why = i(text).why(shape)
        (priced,) = why.priced
        assert priced.kind == "schedule"
        assert why.others == ""
        row = i(text).explain(shape).execution.schedule[-1]
        assert row.schedule == priced.candidates[0].schedule
        for each in priced.candidates:
            i(f"{text} {each.schedule}").source("c", shape)


def test_open_extents_count_as_usual_ones() -> None:
    (priced,) = i("+ij~j").why().priced
    assert "Extents that are not known count as 1000" in priced.reason
