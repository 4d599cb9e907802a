"""Every rule that makes schedules sound is needed: without it something wrong is computed, or accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ilang.codegen.project.cases import Case
from ilang.codegen.project.comparison import compare
from ilang.codegen.targets.session import ExportedFunction
from ilang.core import pipeline
from ilang.core.diagnostic import InternalError, ScheduleError
from ilang.core.ir.kernel import For, Program, statements_within
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.passes import nest_to_kernel, packing
from ilang.core.passes.scope import Place
from ilang.core.record import replace
from ilang.core.schedule import fuse, shaped_to_schedule
from tests.property import native
from tests.property.self_tests import calls_of, trouble
from tests.property.test_fuzz import needs_compiler

pytestmark = pytest.mark.usefixtures("compiled_quickly")  # right values are asked for

Patch = pytest.MonkeyPatch


def shaped(text: str) -> Shaped:
    return pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "f"))


def lowered(text: str, name: str = "f") -> Program:
    return pipeline.lower(replace(shaped(text), name=name))


def nothing(*_: Any) -> None:
    """A check that finds nothing."""


def is_wrong(text: str, patch: Patch, *changes: tuple[object, str, Callable[..., Any]]) -> bool:
    """Whether a program that is right gives something wrong once rules are changed."""
    compare(shaped(text))
    for owner, name, changed in changes:
        patch.setattr(owner, name, changed)
    with pytest.raises(InternalError) as caught:
        compare(shaped(text))
    return caught.value.code == "E9905"


def refused(text: str) -> str:
    """The code of the rule that refuses a program."""
    with pytest.raises(ScheduleError) as caught:
        lowered(text)
    return caught.value.code


@needs_compiler
def test_loops_fuse_by_what_they_walk(monkeypatch: Patch) -> None:
    """Rule 1: letters decide nothing."""

    def by_letter(provenance: fuse.Provenance, reader: int, read: Read, axes: set[int]) -> dict:  # type: ignore[type-arg]
        made, node = provenance.shaped.nodes[read.value], provenance.shaped.nodes[reader]
        assert isinstance(made, Assignment)
        assert isinstance(node, Assignment)
        number = {node.axes[axis].name: axis for axis in axes}
        outputs = made.output_axes()
        return {
            own: number[made.axes[own].name] for own in outputs if made.axes[own].name in number
        }

    text = "ij~ji || i j >> -ij~ij || 0 i j"
    assert is_wrong(text.replace("0 i j", "j i 0"), monkeypatch, (fuse, "axis_pairs", by_letter))


@needs_compiler
def test_fused_loops_have_one_split(monkeypatch: Patch) -> None:
    """Rule 1."""
    text = "-i~i | i:4 | i i' >> +i~. | i:8 | i 0 i'"
    assert refused(text) == "E0320"
    monkeypatch.setattr(fuse, "_check_splits", nothing)
    with pytest.raises(InternalError, match="E9905"):
        compare(shaped(text))


def test_two_candidates_are_refused(monkeypatch: Patch) -> None:
    """Rule 1."""
    text = "(I & +ij~. || i j) >> ii+.~i || i 1"
    assert refused(text) == "E0322"
    monkeypatch.setattr(fuse.Provenance, "nearest", lambda *_: -1)
    lowered(text)


def test_fused_loops_have_one_order(monkeypatch: Patch) -> None:
    """Rule 2."""
    text = "-ij~ij || j i >> -ij~ij || i j 0"
    assert refused(text) == "E0321"
    monkeypatch.setattr(fuse, "_check_order", nothing)
    lowered(text)


@needs_compiler
def test_a_site_moves_to_the_loop_it_fused_with(monkeypatch: Patch) -> None:
    """Rule 2: computed at the start of the kernel, it would read loops that are not open there."""
    text = "^ij~ij || i j >> -ij~ij || i 0 j >> +ij~ij || i 0 j"

    def at_the_top(self: Any, frame: Any) -> Any:
        for number, site in enumerate(frame.nest.sites):
            if site is not None and (site == 0 or frame.nest.order[site - 1] in frame.home):
                frame.home = dict.fromkeys(frame.home, self.top)
                yield self._producer(frame, number, self.top)

    monkeypatch.setattr(nest_to_kernel._Lowering, "_stage_outside", at_the_top)
    with pytest.raises((AssertionError, KeyError, InternalError)):
        compare(shaped(text))


@needs_compiler
def test_storage_keeps_what_is_read_later(monkeypatch: Patch) -> None:
    """Rule 3."""

    def folded(self: Any, value: int, *_: Any) -> Place:
        return Place(self._local(self.shaped.tensors[value].name), None, ())

    change = (nest_to_kernel._Lowering, "_staged_place", folded)
    monkeypatch.setattr(*change)
    with pytest.raises(Exception):  # noqa: B017, PT011 - a variable of another block, or a wrong result
        compare(shaped("^ij~ij || i j >> +ij~i || i 0 j"))


@needs_compiler
def test_the_padding_of_a_copy_is_not_read(monkeypatch: Patch) -> None:
    """Rule 3."""
    plain = packing.copy_of

    def unguarded(*arguments: Any) -> Any:
        copy = plain(*arguments)
        return replace(copy, leaves=(False,) * len(copy.leaves))

    text = "+(i+u:3-90)~i || i u 0"  # so far out that it is another block of memory
    assert is_wrong(text, monkeypatch, (packing, "copy_of", unguarded))


@needs_compiler
def test_reductions_start_once(monkeypatch: Patch) -> None:
    """Rule 4: inside the loop that is reduced, each iteration would begin anew."""
    plain = nest_to_kernel._Lowering._buffered

    def restarted(
        self: Any, frame: Any, scope: Any, loops: Any, held: Any, _use: Any = None
    ) -> Any:
        inside = self._enter(frame, loops[0], scope)
        yield from plain(self, frame, inside, loops[1:], held, None)
        self._leave(frame, loops[0])

    assert is_wrong("+ij~i || j i", monkeypatch, (nest_to_kernel._Lowering, "_buffered", restarted))


@needs_compiler
def test_guards_test_the_whole_index(monkeypatch: Patch) -> None:
    """Rule 5: in any order of the parts, the loop opened last stops at the end of the dimension."""
    trip = nest_to_kernel._Lowering._trip

    def unguarded(self: Any, frame: Any, loop: Any) -> Any:
        return trip(self, frame, loop)[0], ()

    change = (nest_to_kernel._Lowering, "_trip", unguarded)
    assert is_wrong("-i~i | i:4 | i' i", monkeypatch, change)


def test_parallel_iterations_write_disjoint_elements(monkeypatch: Patch) -> None:
    """Rule 7."""
    text = "+ij~j | i:4 | i j i' | i':p"
    assert refused(text) == "E0326"
    monkeypatch.setattr(shaped_to_schedule, "check_nests", nothing)
    assert not _parallel(lowered(text))
    assert _parallel(lowered("+ij~j || j i | j:p"))


def test_parallel_iterations_of_a_sum_have_parts_of_their_own() -> None:
    """Rule 7: what they have is combined by the reducing operator, in their order."""
    program = lowered("+ij~j | i:4 | i j i' | i:p")
    assert _parallel(program)
    assert "out_parts" in [buffer.name for buffer in program.buffers]


def _parallel(program: Program) -> bool:
    body = program.kernels[0].body
    return any(isinstance(s, For) and s.parallel for s in statements_within(body))


def test_an_equality_sees_one_computation(monkeypatch: Patch) -> None:
    """Rule 1: computed twice, no element need equal the largest one."""
    text = "-ij~ij || i j >> (I & >ij~i || i 0 j) >> ij==i~ij || i 1 j 0"
    assert refused(text) == "E0324"
    monkeypatch.setattr(shaped_to_schedule, "check_equalities", nothing)
    lowered(text)


@pytest.mark.parametrize(
    "text",
    [
        "-ij~ij || i j >> (I & >ij~i || i 0 j) >> ij==i~ij || i 1 0 j",  # one place: computed once
        "-ij~ij || i j >> (I & >ij~i || i j) >> ij==i~ij || i 1 j",  # whole: computed once
        "-ij~ij || i j >> (I & >ij~i || i 0 j) >> ij-i~ij || i 1 j 0",  # no equality
    ],
)
def test_an_equality_of_what_is_computed_once_is_legal(text: str) -> None:
    lowered(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("+ij~i || i j | i:u", "E0325"),
        ("ij~ij >> +ij~i || i 0 j | 0:r", "E0325"),
        ("+ij~i || i 0 j | 0:r", "E0325"),
        ("+ij~j | i:4 | i j i' | i':p", "E0326"),
        ("+ijk~k || i j k | j:p", "E0326"),
        ("+ij~j || i j ! | i:p", "E0326"),
        ("(I & +ij~i || i j | j:p) >> ij-i~ij || i 1 j", "E0326"),
        ("+i~. | i:4 | i i' | i':p", "E0326"),
        ('einsum("i=>ii") >> -ij~ij || i 0 j', "E0327"),
    ],
)
def test_what_no_loops_can_follow_is_refused(text: str, code: str) -> None:
    assert refused(text) == code


ALLOWED = (
    "+ij~i | i:4 | i i' j | i':u",
    "+ij~i | j:4 | i j 0 j' | 0:r",
    "ij~ij >> +ij~i | j:4 | i j 0 j' | 0:r",
    "+ij~j | j:4 | j i j' | j:p",
    "+ij~i || i j | j:t",
    "-ij~ij || i j >> +ij~i || i 0 j | 0:c",
    "-ij~ij || i j >> +ij~i || i 0 j | 0:s2",
    "+ijk~ij || i j k !",
    "(0.5 | I) >> .*ij~ij || i 0 1 j | 1:s",
    "((I & I) >> dtp>bop~dtpbo) >> ((I & I) >> ijklm*mlikj~ijklm || 0 l 1 k j i m)",
    "((I & I) >> vsc*vcs~vsc || 0 c v s 1)",
    ">ab~b | b:5:4,a:2 | b a a' b' b'' 0",
    "+wee~we | e:16 | w 0 e e'",
    "+ii~. || 0 i",
    "+wee~w | e:4 | 0 e' w e",
    "v(-o:2+3)(3r:7-1)~vor || v r 0 o",
    "om(q+g+1)*mg~omqg || m q 1 g 0 o",
    "o-orga~roga || g o r a 1 >> ((I & I) >> avsn*avwn~awsvn || s w v a n 0 1)",
    "ij*ij~ij | j:8,i:4 | j i i' j' >> >ij~j | j:8,i:4 | j i i' j' 0",
)


@needs_compiler
def test_what_roles_and_digits_allow_is_right() -> None:
    """Compiled together, at the extents of self-tests."""
    batch, calls, cases = list[Program](), list[native.Call](), list[tuple[str, Case]]()
    for number, text in enumerate(ALLOWED):
        function = ExportedFunction(
            replace(shaped(text), name=f"p{number}"), lowered(text, f"p{number}")
        )
        for call, case in calls_of(function, number):
            calls.append(call)
            cases.append((text, case))
        batch.append(function.program)
    answers = native.run(batch, calls, "sanitized")
    for (text, case), answer in zip(cases, answers, strict=True):
        said = trouble(case, answer)
        assert not said, f"{text} at {case.extents}: {said}"


def test_a_producer_without_a_schedule_takes_that_of_one_reader() -> None:
    """Another reader that stages it needs the same splits; the refusal says why, and what to write."""
    text = "-ij~ij >> (+ij~i | j:4 | i j 0 j' & >ij~i | j:8 | i j 0 j')"
    with pytest.raises(ScheduleError) as caught:
        lowered(text)
    assert caught.value.code == "E0320"
    assert "another expression that stages it" in caught.value.message
    fix = caught.value.fix
    assert fix is not None
    lowered(text[: fix.span.start] + fix.text + text[fix.span.end :])


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("ij~ij || i j | i:u,j:u", "|| i j"),
        ("ij~ij || i j | i:u,j:v", "|| i j | j:v"),
        ("ij~ij >> ij+ij~ij || i 0 1 j | 0:r,1:r,i:p", "|| i 0 1 j | i:p"),
        ("ij~ij >> ij+ij~ij || i 0 1 j | 0:r,j:u", "|| i 0 1 j"),
    ],
)
def test_several_wrong_roles_are_left_out_together(text: str, better: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        lowered(text)
    fix = caught.value.fix
    assert fix is not None
    assert fix.text == better
    lowered(text[: fix.span.start] + fix.text + text[fix.span.end :])
