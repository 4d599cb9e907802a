"""What ``i explain --why`` says of tiles that prices chose."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from ilang import i
from ilang.codegen.components import tuning
from ilang.codegen.components.scheduled_text import ScheduledText
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
    assert (row.text, row.schedule) == (priced.text, priced.candidates[0].schedule)
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
    """The most rows of tiles that are a fiftieth dearer than the cheapest at most, of a product of so many terms.

    Rows are those of the left matrix, which stand so many terms apart.
    """
    (priced,) = i(PRODUCT).why((128, terms), (terms, 768)).priced
    tiles = [each for each in priced.candidates if each.schedule.split()[-3] == "i'"]
    most = 1.02 * tiles[0].cycles
    best = [each.schedule for each in tiles if each.cycles <= most]
    return max(int(each.partition("i:")[2].split(",")[0].split()[0]) for each in best)


@pytest.mark.parametrize("seed", range(12))
def test_cycles_are_the_sum_of_their_parts(seed: int) -> None:
    text, _, shapes = contraction(random.Random(seed))
    why = i(text).why(*shapes)
    for priced in why.priced:
        assert (
            why.collapsed
            or why.units
            or priced.candidates[0].schedule
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
        (),
        "Rules chose the loops, and no prices were compared: extents are open; give them, as --shape 64x32,32x16.",
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


@pytest.mark.parametrize("seed", range(12))
def test_a_candidate_that_is_written_has_its_price(seed: int) -> None:
    """Cycles are the same where the same loops and copies are written."""
    text, _, shapes = contraction(random.Random(seed))
    for words in islice(tuning.candidates(i(text), shapes), 6):
        scheduled = ScheduledText(words[0][0].source, ()).with_schedules(words)
        assert scheduled is not None
        for priced in i(scheduled).why(*shapes).priced:
            *others, written = priced.candidates
            same = [each.cycles for each in others if each.schedule == written.schedule]
            assert not same or written.cycles in same
            assert (written.cycles == min(each.cycles for each in others)) == (
                "the price of" in priced.written[0]
            )


def test_a_written_schedule_stands_beside_the_candidates() -> None:
    """It is the last line; what bounds it and how far it is behind the cheapest is said."""
    loops = "| i:8,j:32,k:256 | j i k k' i' j'"
    why = i(f"ik*kj~ijk {loops} >> +ijk~ij {loops} 0").why((512, 512), (512, 512))
    (priced,) = why.priced
    free = i(PRODUCT).why((512, 512), (512, 512)).priced[0]
    assert priced.candidates[:-1] == free.candidates
    assert priced.candidates[-1].schedule == f"{loops} 0"
    assert priced.candidates[-1].bound == "multiply-adds"
    (says,) = priced.written
    assert says.startswith("Written: 2.23 ms by the model, 9.3 % more than 1, the cheapest: ")
    assert says.endswith(
        "623,418 cycles more for cache lines waited for. Without it, tile 1 would be chosen."
    )
    assert "\n  written     6,703,175  multiply-adds  | i:8,j:32,k:256" in str(why)
    assert abs(sum(priced.candidates[-1].counted().values()) - priced.candidates[-1].cycles) <= 6


def test_a_written_copy_is_priced() -> None:
    """With the copy, lines of the other factor are not waited for, those of the result are; elements are packed."""
    loops = "| i:8,j:32,k:256 | j i k k' i' j'"
    copied = "| i:8,j:32,k:256 | j 1 i k k' i' j'"
    priced = [
        i(f"ik*kj~ijk {each} >> +ijk~ij {loops} 0").why((512, 512), (512, 512)).priced[0]
        for each in (loops, copied)
    ]
    plain, packed = (each.candidates[-1] for each in priced)
    assert plain.added["elements packed"] == 0
    assert packed.added["cache lines waited for"] < plain.added["cache lines waited for"] / 6
    assert packed.added["elements packed"] > 0
    assert packed.cycles < plain.cycles


def test_a_chosen_schedule_that_is_written_has_the_chosen_price() -> None:
    text = "ik*kj~ijk | i:6,j:64 | j 1 i k i' j' >> +ijk~ij | i:6,j:64 | j i k i' j' 0"
    (priced,) = i(text).why((512, 512), (512, 512)).priced
    assert priced.candidates[-1] == priced.candidates[0]


def test_a_price_says_what_it_lacks() -> None:
    """Products that are stored before, roles, and terms that are added in f64."""

    def lacks(text: str) -> str:
        (priced,) = i(text).why((512, 1024), (1024, 512)).priced
        return " ".join(priced.written[1:])

    stored = lacks(f"{PRODUCT} || i k j")
    assert "`ik*kj~ijk`, computed before, is not counted." in stored
    assert "is rough" in stored
    tile = "| i:4,j:16 | i j k i' j'"
    wide = lacks(f"ik*kj~ijk {tile} >> +ijk~ij {tile} 0")
    assert wide.startswith("More than 512 terms are added in f64")
    assert "`p`" in lacks(f"ik*kj~ijk {tile} >> +ijk~ij {tile} 0 | i:p")


def test_written_loops_of_another_reduction_have_a_price() -> None:
    (priced,) = i("+ij~j || j i").why((1000, 300)).priced
    assert priced.candidates[-1].schedule == "|| j i"
    assert "times 1, the cheapest" in priced.written[0]
    assert len(priced.written) == 1


def test_without_a_price_the_reason_is_said() -> None:
    for text, reason in (
        (
            "ik*kj~ijk || i j k >> +ijk~ij || i j k 0",
            "extents are open; give them, as --shape 64x32,32x16.",
        ),
        ("ij~ji || j i", "extents are open; give them, as --shape 64x32."),
    ):
        why = i(text).why()
        assert why.priced == ()
        assert why.others.startswith("The schedule is written in the program, and has no price:")
        assert reason in why.others
        assert "`i diff PROGRAM --unscheduled`" in why.others
