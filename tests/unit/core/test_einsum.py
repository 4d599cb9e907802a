"""Einsum specifications in programs: what text, inference and C make of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import Component, Error, I, einsum, i
from ilang.core.machine import CPU, GPU
from ilang.core.notation.components.combinator import parse_program
from ilang.core.notation.components.printer import print_tree
from ilang.core.notation.files.layout import format_module
from ilang.core.pipeline import (
    explain,
    graph_of,
    infer,
    lower,
    program_graph,
    text_component,
    text_program,
)
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from ilang.core.source import Source
from ilang.icli.main import main

Array = npt.NDArray[Any]
TARGETS = ("c", "numpy")


def arange(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 3


def called(text: str, *arrays: Array, target: str = "c") -> Array:
    result: Array = i(text)(*arrays, target=target)
    return result


# schedules


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("einsum(\"ij;jk=>ik\") | i:8,k:16,j:4 | k j 1 i j' i' k'", [(13, 9), (9, 21)]),
        ("einsum(\"ij;jk=>ik\") | i:8,k:16 | ik 1 0 j i' k' | i:p,k':v", [(8, 1), (1, 40)]),
        ("einsum(\"ij;jk=>ik\") | j:4 | ijk1j'", [(3, 0), (0, 5)]),
        ("einsum(\"...|ij;jk=>...|ik\") | b1:2 | b1 b0 i b1' j k", [(2, 3, 4, 5), (5, 6)]),
        ("einsum(\"rows+u, b; u, c => rows, c, b\") | rows:4 | rows 0 b c u rows'", [(9, 2), (3, 5)]),
        ("einsum(\"ij;j;i=>j\") | i:2 | j 1 i 2 i'", [(7, 3), (3,), (7,)]),
        ("einsum(\"ii=>i\") | i:4 | i 0 i'", [(6, 6)]),
        ("einsum(\"2*o+k;k=>o\") | o:2 | 0 1 o' o k", [(9,), (3,)]),
        ("einsum(\"ij;jk=>ik\") || i j k >> >ik~i || i k 0", [(4, 5), (5, 6)]),
    ],
)  # fmt: skip
def test_schedule_of_a_specification(text: str, shapes: list[tuple[int, ...]]) -> None:
    """A written schedule changes no result."""
    arrays = [arange(*shape) for shape in shapes]
    np.testing.assert_allclose(called(text, *arrays), called(text, *arrays, target="numpy"))


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ('p(a[3,1], b[1,2]) = einsum("ik;kj=>ij") | k:4 | i j k k\'', 4),
        ("p(a[3,1], b[1,2]) = einsum(\"ik,kj->ij\") | i:2,k:2:3 | k ik' i' j k''", 6),
        ('p(a[3,1], b[1,2]) = einsum("ik;kj=>ij") || i j', 2),
        ('p(a[1,1], b[1,2]) = einsum("...|ik;kj=>...|ij") | i:2 | ij1i\' | i:p', 3),
        ("p(a[1,1], b[1,2]) = einsum(\"...|ik;kj=>...|ij\") | k:2 | j i k k' | k':u", 4),
        ('p(a[1,4,1], b[1,2]) = einsum("...|ij;jk=>...|ik") | b0:3 | b0 i b0\' j k', 5),
        ('p(a[1,1]) = einsum("long, short=>short, long") | long:2 | long short long\'', 3),
    ],
)
def test_schedule_of_a_specification_may_name_axes_of_extent_1(text: str, loops: int) -> None:
    """An axis of fixed extent 1 has the loops that a schedule gives it, and none where it is not named."""
    graph = program_graph(text_program(text))
    for machine in (CPU, GPU):
        (nest,) = (nest for nest in shaped_to_schedule(infer(graph), machine).nests if nest)
        assert len(nest.order) == loops
        lower(infer(graph), machine)
    arrays = [arange(*map(int, dims.split(","))) for dims in re.findall(r"\[([\d,]+)\]", text)]
    np.testing.assert_array_equal(called(text, *arrays), called(text, *arrays, target="numpy"))


def test_schedule_of_a_specification_is_followed() -> None:
    source = i("einsum(\"ij;jk=>ik\") | i:8 | ik1j i' | i':v").source("c")
    assert "einsum(\"ij;jk=>ik\")  | i:8 | i k 1 j i' | i':v" in source


@pytest.mark.parametrize(
    ("schedule", "code"),
    [
        ("|| i j", "E0306"),
        ("|| i j k 2", "E0307"),
        ("| rows:2 | i j k", "E0303"),
        ("|| i jx k", "E0303"),
        ("| i:0 | i j k", "E0301"),
        ("|| i j k ! | j:p", "E0326"),
        ("|| i ! j k", "E0309"),
        ("| i:2 i j k", "E0120"),
        ("|| i j k | j:w", "E0310"),
    ],
)
def test_refused_schedule_of_a_specification(schedule: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        i(f'einsum("ij;jk=>ik") {schedule}').source("c")
    assert caught.value.code == code


# text


@pytest.mark.parametrize(
    "text",
    [
        'einsum("ij;jk=>ik")',
        'einsum("ij; jk => ik") >> +ik~i',
        'einsum("a;b=>a^b") | ~(I | einsum("...=>...")) & I',
        'einsum("2*o<+k;k=>o") << (I | 2.5)',
        "einsum(\"ij;jk=>ik\") | i:8:2,k:4 | i j k i' i'' k' | i:p,1:s",
        "einsum(\"rows+u;u=>rows\") | rows:8 | rows u rows' | rows':v",
        'einsum("...|ij;jk=>...|ik") || b0 i 1 k j >> (+ijk~ij || i j k)',
    ],
)
def test_print_and_parse(text: str) -> None:
    tree = parse_program(Source("<text>", text))
    assert parse_program(Source("<text>", print_tree(tree))) == tree


@pytest.mark.parametrize(
    "text", ["einsum('ij=>i')", 'einsum ( "ij=>i" )', "i('einsum(\"ij=>i\")')", '(einsum("ij=>i"))']
)
def test_other_spellings(text: str) -> None:
    assert print_tree(parse_program(Source("<text>", text))) == 'einsum("ij=>i")'


def test_layout_keeps_a_specification() -> None:
    tidy = format_module(Source("m.i", 'f   =einsum(  "ij ;  jk=>ik")>>-ij~ij  # here\n'))
    assert tidy == 'f = einsum("ij ;  jk=>ik") >> -ij~ij  # here\n'


def test_a_span_points_into_the_program() -> None:
    with pytest.raises(Error) as caught:
        i('I >> einsum("ij; j^ => i")')
    assert caught.value.span is not None
    assert caught.value.span.column() == 21
    assert caught.value.span.line().startswith("I >> einsum")


def test_a_letter_of_that_name_is_still_a_pattern() -> None:
    assert i("einsum~einsum").shapes((1, 2, 3, 4, 5, 6)) == ((1, 2, 3, 4, 5, 6),)


# components


def test_component() -> None:
    f = einsum("ij;jk=>ik")
    assert isinstance(f, Component)
    x, y = arange(2, 3), arange(3, 4)
    assert np.array_equal(f(x, y), x @ y)
    assert np.array_equal((f >> ">ij~ij")(x, y), np.maximum(x @ y, 0))
    assert np.array_equal((I >> einsum("ij=>ji"))(x), x.T)
    assert f.shapes((2, 3), (3, 4)) == ((2, 4),)
    assert "in0[6i+i1," in f.loops()
    assert repr(f) == '<Component einsum("ij;jk=>ik"): 2 inputs, 1 output>'
    assert repr(einsum("ij;\n jk=>ik")) == '<Component einsum("ij;  jk=>ik"): 2 inputs, 1 output>'
    with pytest.raises(Error) as caught:
        einsum(3)  # type: ignore[call-overload]
    assert caught.value.code == "E0716"


def test_one_program_serves_all_extents() -> None:
    f = einsum("2*o=+k;k=>o").dynamic()
    for n, k in ((8, 9), (16, 8), (2000, 11), (40, 70), (8, 3), (6, 4), (2, 1), (4, 7)):
        assert f(arange(n), arange(k)).shape == (n // 2,)
    assert len(f.versions()) == 1


# values that a person checks


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("text", "arrays", "wanted"),
    [
        ('einsum("ii=>i")', [[[1, 2], [3, 4]]], [1, 4]),
        ('einsum("i=>ii")', [[1, 2]], [[1, 0], [0, 2]]),
        ('einsum("i=>i2")', [[1, 2]], [[0, 0, 1], [0, 0, 2]]),
        ('einsum("i=>ij")', [[1, 2]], [[1], [2]]),
        ('einsum("i=>ij") >> ij+ij~ij', [[1, 2], [[1, 1, 1], [2, 2, 2]]], [[2, 2, 2], [4, 4, 4]]),
        ('einsum("1j=>j")', [[[1, 2], [3, 4]]], [3, 4]),
        ('einsum("_j=>j")', [[[1, 2], [3, 4]]], [4, 6]),
        ('einsum("a;b=>b^a")', [[1, 2], [3]], [3, 1, 2]),
        ('einsum("a^b;b=>a")', [[1, 2, 3], [0, 0]], [1]),
        ('einsum("2*i+1=>i")', [[1, 2, 3, 4]], [2, 4]),
        ('einsum("i=>2*i+1")', [[1, 2]], [0, 1, 0, 2]),
        ('einsum("i+1=>i")', [[1, 2, 3]], [2, 3, 0]),
        ('einsum("o=+k;k=>o")', [[1, 2, 4], [1, 10, 100]], [210, 421, 42]),
        ('einsum("o;k=>o<+k")', [[1, 2, 3], [1, 10]], [1, 12, 23, 30]),
        ('einsum("o;k=>o=+k")', [[1, 2, 3], [1, 10, 100]], [12, 123, 230]),
        ('einsum("o;k=>o=+k")', [[3], [5]], [15]),
        ('einsum("o;k=>2*o=+k")', [[1, 2], [1, 10, 100]], [10, 102, 20, 200]),
        ('einsum("i=>i+1")', [[1, 2, 3]], [0, 1, 2]),
        ('einsum("i=>i+1")', [[1]], [0]),
        ('einsum("i+1=>i")', [[1]], [0]),
        ('(I | 2) >> einsum("i;=>i")', [[1, 2]], [2, 4]),
        ('einsum("...|...->...=>0")', [[[1, 2], [3, 4]]], [10]),
    ],
)
def test_values(target: str, text: str, arrays: list[Any], wanted: list[Any]) -> None:
    given = [np.array(array, np.float32) for array in arrays]
    result = called(text, *given, target=target)
    assert result.tolist() == wanted


@pytest.mark.parametrize("target", TARGETS)
def test_sums_that_meet_in_the_result_are_exact(target: str) -> None:
    """A window of the result accumulates in float64, as every reduction does."""
    ones = np.full(4096, 1 + 2.0**-20, np.float32)
    result = called('einsum("o;k=>o<+k")', ones, np.ones(4096, np.float32), target=target)
    assert result[4095] == np.float32(4096 * (1 + 2.0**-20))


# row variables


def test_ranks_come_from_either_side() -> None:
    before = called('I >> abc~abc >> einsum("...c=>c...")', arange(2, 3, 4))
    after = called('einsum("...c=>c...") >> abc~abc', arange(2, 3, 4))
    assert np.array_equal(before, arange(2, 3, 4).transpose(2, 0, 1))
    assert np.array_equal(after, before)
    shaped = infer(graph_of(text_component('einsum("...c=>c...") >> abc~abc'), "p"))
    assert [len(tensor.dims) for tensor in shaped.tensors] == [3, 3, 3]
    assert not any(each.assumed for each in shaped.counted)


def test_a_row_variable_twice_in_a_shape() -> None:
    assert called('einsum("..v..|..v..=>..v..")', arange(3, 3)).tolist() == [-3, 1, 5]
    with pytest.raises(Error) as caught:
        called('einsum("..v..|..v..=>..v..")', arange(3, 3, 3))
    assert caught.value.code == "E0503"


def test_what_is_assumed_is_said() -> None:
    graph = graph_of(text_component('einsum("...ij=>...ji")'), "p")
    (note,) = explain(graph).notes
    assert "stands for no axes" in note
    assert not explain(graph, [(2, 3, 4)]).notes
    story = {row.subject: row.says for row in explain(graph, [(2, 3, 4)], verbose=True).story}
    assert story["row `...` of the output row"] == "1 axis: `...ij` has rank 3, 2 without it"


def test_build_says_what_is_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("turned.i").write_text('f(x) = einsum("...ij=>...ji")\n', encoding="utf-8")
    assert main(["build", "turned.i"]) == 0
    assert "f: `...` of the output row" in capsys.readouterr().err
    assert main(["build", "turned.i", "--shape", "x=2x3x4"]) == 0
    assert not capsys.readouterr().err


# refusals


@pytest.mark.parametrize(
    ("text", "shapes", "code"),
    [
        ('einsum("ij;jk=>ik")', [(2, 3), (4, 5)], "E0505"),
        ('einsum("ij=>i")', [(2,)], "E0503"),
        ('einsum("...ij=>i")', [(2,)], "E0503"),
        ('+i~. >> einsum("i=>i")', [(2,)], "E0501"),
        ('+i~. >> einsum("...i=>i")', [(2,)], "E0501"),
        ('einsum("..a..|..b..=>..b..|..a..")', [(2, 3)], "E0509"),
        ('einsum("2*o<+k;k=>o")', [(6,), (3,)], "E0517"),
        ('einsum("2*o=>o")', [(5,)], "E0517"),
        ('einsum("o<+k;k=>o")', [(2,), (4,)], "E0518"),
        ('einsum("o<+k;k=>o")', [(2,), (0,)], "E0518"),
        ('einsum("a^b;a=>b")', [(2,), (4,)], "E0518"),
        ('einsum("o<+k;k;o=>o")', [(5,), (3,), (4,)], "E0573"),
        ('einsum("3i=>i")', [(3, 2)], "E0574"),
        ('einsum("o<+k=>o")', [(5,)], "E0521"),
    ],
)
def test_refusals(text: str, shapes: list[tuple[int, ...]], code: str) -> None:
    for target in TARGETS:
        with pytest.raises(Error) as caught:
            called(text, *(arange(*shape) for shape in shapes), target=target)
        assert caught.value.code == code, str(caught.value)
        assert caught.value.help
        assert caught.value.span is not None


def test_a_part_of_a_concatenation_may_be_empty() -> None:
    whole = np.ones(2, np.float32)
    f = einsum("a^q; a => q")
    assert f(whole, whole, target="numpy").shape == (0,)
