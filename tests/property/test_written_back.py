"""What ``i explain --schedule`` prints, written back, gives the code that it was printed for, and is completed once."""

from __future__ import annotations

import pytest

from ilang.core import pipeline, record
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from tests.property import schedules
from tests.replay.subjects import Subject, subjects
from tests.shares import share

FEW = 12
"""Expressions of a program of which each is alone once; of more of them a share is."""

pytestmark = [
    pytest.mark.early,
    pytest.mark.parametrize(
        ("number", "machine"), [(0, CPU), (1, GPU)], ids=lambda each: getattr(each, "kind", "")
    ),
]


CHAINS = (
    *(">@i~.", "<@i~.", ">@ij~i", "<@ij~j", "-ij~ij >> >@ij~i", "^ijk~ijk >> +ijk~ij >> >@ij~i"),
    *("(I & I) >> ij*ij~ij >> <@ij~i", ">@ijk~ij >> f32 >> +ij~i", ">@ij~i >> >@i~."),
    *('einx.argmax("a [b]")', '-ij~ij >> einx.argmin("[a] b")', 'einsum("a; b => a^b")'),
    *('einx.sort("a [b]") >> -ab~ab', 'einx.argsort("a [b]")', "ik*kj~ijk >> +ijk~ij >> >@ij~i"),
)
"""Programs whose printed lines follow one another; some have expressions that become several assignments."""


def _programs() -> list[Subject]:
    """What is replayed of samples, benchmarks and golden programs, routines among them, and of random programs."""
    return subjects("files", "deep_files", "random", "goldens") + subjects("definitions")[-3:]


@pytest.mark.parametrize("text", CHAINS)
def test_printed_lines_are_the_program(text: str, number: int, machine: Machine) -> None:
    """Every expression has one line, whose text and schedule stand in its place."""
    graph = pipeline.program_graph(pipeline.text_program(text))
    rows = pipeline.explain(graph, machine=machine).execution.schedule
    lines = [f"{row.text} {row.schedule}".strip() for row in rows]
    begin = "(I & I) >> " if text.startswith("(I & I)") else ""
    assert len(lines) == text.count(">> ") + 1 - bool(begin), (number, lines)
    again = pipeline.program_graph(pipeline.text_program(begin + " >> ".join(lines)))
    one, other = pipeline.infer(graph), pipeline.infer(again)
    assert schedules.same_code(one, record.replace(other, name=one.name), machine)


def test_of_samples_benchmarks_and_random_programs(number: int, machine: Machine) -> None:
    programs = _programs()
    assert 300 <= len(programs)
    for program in share(programs, number):
        shaped = schedules.unwritten(program.shaped())
        again = schedules.written_back(shaped, machine)
        assert schedules.same_code(shaped, again, machine), program


def test_any_part_of_what_is_chosen(number: int, machine: Machine) -> None:
    """One expression alone with what is chosen for it, or all but one: all others are as they were."""
    for program in share(_programs()[::6], number):
        shaped = schedules.unwritten(program.shaped())
        again = schedules.written_back(shaped, machine)
        chosen = shaped_to_schedule(shaped, machine)
        pairs = [*zip(shaped.nodes, again.nodes, strict=True)]
        changed = [value for value, (node, other) in enumerate(pairs) if node != other]
        for value in changed if len(changed) <= FEW else share(changed):
            node, other = pairs[value]
            one = schedules.with_node(shaped, value, other)
            rest = schedules.with_node(again, value, node)
            for part in (one, rest):
                nests = shaped_to_schedule(part, machine).nests
                assert nests == chosen.nests, (program, value)
