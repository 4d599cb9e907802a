"""The schedule value: chosen once, followed by lowering, printed so that it can be written, verified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ilang.core import pipeline
from ilang.core.check.schedule import verify
from ilang.core.diagnostic import InternalError
from ilang.core.ir.kernel import statements_within
from ilang.core.ir.rewriting import parts_of
from ilang.core.ir.schedule import (
    Chunks,
    Fusion,
    Group,
    Instance,
    Loop,
    Plan,
    Root,
    Scheduled,
    TilePartials,
)
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.record import replace
from ilang.core.schedule import shaped_to_schedule as step
from ilang.core.schedule.accumulation import copies
from ilang.core.schedule.choose import choice
from ilang.core.schedule.choose.choice import analysed, choose
from ilang.core.schedule.choose.nests import choose_nests
from ilang.core.schedule.fuse import Provenance
from ilang.core.schedule.groups import Kernels
from ilang.core.schedule.instances import Instances
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from ilang.core.transform.reverse import gradient
from tests.property import schedules

SOFTMAX = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"
ONLINE = "^ij~ij || i j >> (I & +ij~i || i j 0) >> ij/i~ij || i j 0 1 >> +ij~i || i j 0"


def scheduled(text: str) -> Scheduled:
    """The schedule of a program text."""
    return shaped_to_schedule(pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "f")))


ONCE = {"choose": 1, "analysis": 1, "nests": 1, "group": 1, "provenance": 1, "instances": 1}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each part of a schedule is worked out."""
    counts: Counter[str] = Counter()

    def count(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            counts[name] += 1
            return function(*arguments, **named)

        return called

    monkeypatch.setattr(step, "choose", count("choose", choose))
    monkeypatch.setattr(choice, "choose_nests", count("nests", choose_nests))
    monkeypatch.setattr(choice, "analysed", count("analysis", analysed))
    for name, class_ in (("group", Kernels), ("provenance", Provenance), ("instances", Instances)):
        monkeypatch.setattr(class_, "__init__", count(name, class_.__init__))
    return counts


@pytest.mark.parametrize(
    "walk",
    [
        lambda tree: pipeline.explain(pipeline.graph_of(tree, "f")),
        lambda tree: pipeline.lower(pipeline.infer(pipeline.graph_of(tree, "f"))),
        lambda tree: pipeline.stage_text(pipeline.graph_of(tree, "f"), "schedule"),
    ],
)
def test_chosen_once(counted: Counter[str], walk: Callable[[Any], object]) -> None:
    walk(pipeline.text_component(SOFTMAX))
    assert counted == ONCE


def test_texts_of_stages_choose_once(counted: Counter[str]) -> None:
    pipeline.stage_texts("ik*kj~ijk >> +ijk~ij")
    assert counted == ONCE


@pytest.mark.parametrize("machine", [CPU, GPU], ids=lambda machine: machine.kind)
@pytest.mark.parametrize(
    "text",
    [
        "ik*kj~ijk | i:6,j:64,k:512 | j 1 i k k' i' j' >> +ijk~ij | i:6,j:64,k:512 | j i k k' i' j' 0",
        "ik*kj~ijk | i:8 | i j k i' >> +ijk~ij",
        "ik*kj~ijk >> +ijk~ij | i:8 | i j k i' 0",
        "-ij~ij || i j >> +ij~i || i j 0",
        ONLINE,
        f"({ONLINE}) >> -i~i",
    ],
)
def test_a_written_schedule_is_completed_once(
    counted: Counter[str], text: str, machine: Machine
) -> None:
    """As it is chosen, another one of what is read, another one of what reads, an online reduction."""
    shaped = pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "f"))
    kernels = len({call.group for call in pipeline.lower(shaped, machine).launched()})
    on_cpu = {"analysis": 1, "nests": 1} if machine.kind == "cpu" else {}
    assert counted == {"choose": 1, "group": 1, "provenance": 1, "instances": kernels, **on_cpu}


@pytest.mark.parametrize("machine", [CPU, GPU], ids=lambda machine: machine.kind)
@pytest.mark.parametrize("text", ["ik*kj~ijk >> +ijk~ij", ONLINE])
def test_a_gradient_is_chosen_once(counted: Counter[str], text: str, machine: Machine) -> None:
    shaped = pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "f"))
    program = pipeline.lower(gradient(shaped, (0,)), machine)
    kernels = len({call.group for call in program.launched()})
    assert (counted["choose"], counted["group"], counted["provenance"]) == (1, 1, 1)
    assert counted["instances"] == kernels


def test_an_online_reduction_leaves_a_kernel_that_it_shared() -> None:
    """The last reader is what would be chosen until what it stages is seen to be another."""
    (online, other) = scheduled(f"({ONLINE}) & >ij~i").groups
    assert [len(group.roots) for group in (online, other)] == [1, 1]
    assert [bool(group.plan.online) for group in (online, other)] == [True, False]


def test_a_reader_that_nobody_scheduled_computes_what_is_written_otherwise_before() -> None:
    chosen, other = scheduled("-ij~ij || i j >> +ij~i"), scheduled("-ij~ij || j i >> +ij~i")
    assert [nest.sites for nest in chosen.nests if nest] == [(None,), (2,)]
    assert [nest.sites for nest in other.nests if nest] == [(None,), (None,)]
    assert [len(each.groups) for each in (chosen, other)] == [1, 2]


@pytest.mark.parametrize("machine", [CPU, GPU], ids=lambda machine: machine.kind)
@pytest.mark.parametrize(
    ("form", "components"),
    [
        ("f(a[i,j], b[i,j]) = {} >> {} & {}", ["ij*ij~ij", "+ij~i", "I"]),
        ("f(a[i,j], b[i,j]) = {{ ({})(a), ({})(b) }}", ["i64", "I"]),
        ("f(a[]) = {{ ({})(a), {} }}", ["I", "3"]),
    ],
)
def test_components_without_an_expression_are_printed_so_that_they_can_be_written(
    form: str, components: list[str], machine: Machine
) -> None:
    def graph(*given: str) -> Any:
        return pipeline.program_graph(pipeline.text_program(form.format(*given)))

    rows = pipeline.explain(graph(*components), machine=machine).execution.schedule
    printed = [f"{row.text} {row.schedule}".rstrip() for row in rows]
    assert not any(line.startswith("I") for line in printed)
    codes = [
        schedules.code(pipeline.infer(graph(*given)), machine) for given in (components, printed)
    ]
    assert codes[0] == codes[1]


@pytest.mark.parametrize(
    ("text", "primitive", "times"),
    [
        ("ik*kj~ijk >> +ijk~ij", "mul", 1),
        ("^i~i >> +(i+u:3)~i | i:16 | i 0 i' u", "exp", 1),
        ("-ij~ij | i:8 | i j i' >> +ij~j | i:8 | i j i' 0", "neg", 2),
        ("-ij~ij | i:8 | i j i' >> +ij~j | i:8 | i 0 j i'", "neg", 1),
    ],
)
def test_edges_are_counted_as_they_are_written(text: str, primitive: str, times: int) -> None:
    value = scheduled(text)
    (kernel,), (group,) = pipeline.lower(value.shaped).kernels, value.groups
    parts = (part for s in statements_within(kernel.body) for part in parts_of(s))
    assert sum(getattr(part, "primitive", "") == primitive for part in parts) == times
    assert copies(value, group.plan) == [1, times]


def without_fusion(value: Scheduled) -> Scheduled:
    return replace(value, fusions=tuple(tuple(None for _ in row) for row in value.fusions))


def with_foreign_loop(value: Scheduled) -> Scheduled:
    wrong = Fusion({Loop(9): Loop(0)}, {})
    rows = tuple(tuple(f and wrong for f in row) for row in value.fusions)
    return replace(value, fusions=rows)


def without_groups(value: Scheduled) -> Scheduled:
    return replace(value, groups=())


def twice(value: Scheduled) -> Scheduled:
    return replace(value, groups=value.groups * 2)


def with_foreign_owner(value: Scheduled) -> Scheduled:
    (root, *_) = value.groups[0].roots
    return replace(value, groups=(Group((Root(root.value, 0, 1),), Plan((), {}, {})),))


def with_instances(change: Callable[[Instance], Instance]) -> Callable[[Scheduled], Scheduled]:
    """A schedule of one kernel that has other instances."""

    def spoilt(value: Scheduled) -> Scheduled:
        (group,) = value.groups
        instances = tuple(map(change, group.plan.instances))
        return replace(
            value, groups=(replace(group, plan=replace(group.plan, instances=instances)),)
        )

    return spoilt


def with_tile(**change: object) -> Callable[[Scheduled], Scheduled]:
    """A schedule of one kernel whose register tile is another."""

    def changed(instance: Instance) -> Instance:
        tile = instance.accumulation
        if tile is None:
            return instance
        return replace(instance, accumulation=replace(tile, **change))

    return with_instances(changed)


@pytest.mark.parametrize(
    ("spoil", "invariant"),
    [
        (without_fusion, "a staged producer has a fusion"),
        (with_foreign_loop, "loops of the producer"),
        (without_groups, "only live assignments"),
        (twice, "a root of one group"),
        (with_foreign_owner, "an owner is a root of its group"),
        (with_instances(lambda x: replace(x, value=3)), "the source of a read delivers its value"),
        (with_instances(lambda x: replace(x, sources={})), "a root or the source of a read"),
        (with_instances(lambda x: replace(x, chain=())), "shared loops are around the place"),
        (with_instances(lambda x: replace(x, extents=())), "an extent per axis"),
        (with_instances(lambda x: replace(x, copies={0: ()})), "a copy is staged"),
        (with_tile(core=(), partial=None), "an accumulation has all reducing loops"),
        (with_tile(extents=(6, 32)), "a tile has the extents of its loops"),
        (with_tile(blocks=(), outer=(Loop(2),), kept=True), "has its final values"),
        (with_tile(partial=TilePartials(1, 128)), "partial sums are of loops of the core"),
        (with_tile(vector=24), "a row of a tile has a vector at least"),
        (with_tile(micro_tiles=()), "vectors take a part at a time"),
        (
            with_instances(lambda x: replace(x, accumulation=Chunks(Loop(2), 1, 1, 1))),
            "reduces loops of its own|chunks are of the outermost loop of all",
        ),
    ],
)
def test_verified(spoil: Callable[[Scheduled], Scheduled], invariant: str) -> None:
    value = scheduled("ik*kj~ijk >> +ijk~ij")
    verify(value)
    with pytest.raises(InternalError, match=invariant):
        verify(spoil(value))
