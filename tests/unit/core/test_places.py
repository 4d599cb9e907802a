"""Values with several readers: computed once or again, what is cheaper, and said by ``i explain --why``."""

from __future__ import annotations

import pytest

from ilang import Component, i
from ilang.core import pipeline
from ilang.core.ir.known_extents import extents_of
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import CPU, GPU
from ilang.core.schedule.collapsing import shaped_to_collapsed
from ilang.core.schedule.places import MOST, places
from ilang.core.schedule.shaped_to_schedule import priced_schedule, shaped_to_schedule

COLUMNS = """norm(x[n,c]) = {
  y = (nc-c~nc)(x, einx.mean("[n] c")(x))
  v = einx.mean("[n] c")((nc*nc~nc)(y, y))
  (nc/c~nc)(y, elementwise("f: v -> sqrt(v + 0.001)")(v))
}"""
FORCES = """forces(x[n,d], m[n]) = {
  e = (jd-id~ijd)(x, x)
  s = (ijd*ijd~ijd >> +ijd~ij)(e, e)
  (ijd*ij~ijd >> +ijd~id)(e, (ij*j~ij)(s, m))
}"""


def copies(program: Component, *shapes: tuple[int, ...]) -> list[str]:
    """The values that are computed again."""
    steps = pipeline.steps_below(program.shaped([*shapes]), CPU)
    scheduled = next(value for step, value in steps if step.stage == "schedule")
    names = (tensor.name for tensor in scheduled.shaped.tensors)
    return [name.partition("_again")[0] for name in names if "_again" in name]


def test_a_difference_with_readers_of_other_loops() -> None:
    assert copies(i(COLUMNS), (1768, 19)) == ["y"]


def test_tiles_of_contractions_compute_what_is_larger_than_its_operands() -> None:
    """Three elements at a time would be kept inside a shared loop, where tiles have whole vectors."""
    assert copies(i(FORCES), (454, 3), (454,)) == ["e"]


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (COLUMNS, []),  # extents are open
        ('einx.softmax("i [j]")', [(640, 100)]),  # an exponential takes longer than a load
        ("(I & >ij~i) >> ij-i~ij >> (I & +ij~i) >> ij/i~ij", [(640, 100)]),  # all in one row
        ("-ij~ij >> (I & >ij~j) >> ij==j~ij", [(640, 100)]),  # compared with its maximum
        ("ik*kj~ijk >> +ijk~ij >> (+ij~i & +ij~j)", [(64, 64), (64, 64)]),  # no pointwise value
        ("-ij~ij >> (>ij~j & +ij~i)", [(640, 100)]),  # extremes compare what they load
    ],
)
def test_others_are_computed_once(text: str, shapes: list[tuple[int, ...]]) -> None:
    assert copies(i(text), *shapes) == []


def test_a_program_grows_by_so_many_times_at_most() -> None:
    """Of a chain in which each value is read twice, copies would be as many as powers of two."""
    lines = [f"  t{n + 1} = (ij+i~ij)((ij-j~ij)(t{n}, v), (+ij~i)(t{n}))" for n in range(12)]
    text = "f(t0[i,j], v[j]) = {\n" + "\n".join(lines) + "\n  t12\n}"
    shaped = i(text).shaped([(300, 70), (70,)])
    few = sum(isinstance(node, Assignment) for node in shaped.nodes)
    many = priced_schedule(shaped_to_collapsed(shaped, CPU)).shaped.nodes
    assert sum(isinstance(node, Assignment) for node in many) <= MOST * few


def test_the_cheaper_place_is_told() -> None:
    why = i(COLUMNS).why((1768, 19))
    (place,) = (each for each in why.priced if each.kind == "place")
    assert place.name == "y"
    assert [each.schedule for each in place.candidates] == [
        "computed again by each of 2 readers",
        "stored",
    ]
    first, second = (each.cycles for each in place.candidates)
    assert first < second
    assert all(abs(sum(c.added.values()) - c.cycles) <= 3 for c in place.candidates)
    assert "2 places compared" in str(why)
    assert "Place 1 takes" in str(why)


@pytest.mark.parametrize("text", [COLUMNS, FORCES])
def test_what_is_told_is_what_runs(text: str) -> None:
    shapes = [(1768, 19)] if text is COLUMNS else [(454, 3), (454,)]
    program = i(text)
    places_told = [each for each in program.why(*shapes).priced if each.kind == "place"]
    again = [each.name for each in places_told if "again" in each.candidates[0].schedule]
    assert again == sorted(set(copies(program, *shapes)))


def test_a_gpu_keeps_its_rules() -> None:
    shaped = i(COLUMNS).shaped([(1768, 19)])
    for machine, count in ((GPU, 0), (CPU, 1)):
        nests = shaped_to_schedule(shaped, machine).nests
        assert len(places(shaped, extents_of(shaped, machine), machine, nests)) == count
