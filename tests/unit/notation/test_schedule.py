"""Schedules: where one opens, what it holds, and every refusal with its place."""

import pytest

from ilang.core.ir.syntax import Combine, Expression, Schedule
from ilang.core.notation.components.printer import print_schedule
from tests.unit.notation.refusal import check_error, parse


def schedule(text: str) -> Schedule:
    tree = parse(text)
    assert isinstance(tree, Expression)
    assert tree.schedule is not None
    return tree.schedule


@pytest.mark.parametrize(
    ("text", "tidy"),
    [
        ("i~i||", "||"),
        ("i~i | |", "||"),
        ("i~i||i", "|| i"),
        ("i~i|i:4|", "| i:4 |"),
        (" ik * kj ~ ijk | i : 2 , k : 3 | i i' k k ' j ", "| i:2,k:3 | i i' k k' j"),
        ("+ijk~ij||ij!k0", "|| i j ! k 0"),
        ("i*j~ij||0i1j", "|| 0 i 1 j"),
        ("i~i|||i:v", "|| | i:v"),
        ("i~i||i|i : p", "|| i | i:p"),
        ("i~i|i:2:4|i''0i i'|i'':v,0:s2,i:q", "| i:2:4 | i'' 0 i i' | i'':v,0:s2,i:q"),
        (".~.||0", "|| 0"),
        ("+i~.||!i", "|| ! i"),
        ("i~i|i:2147483647|i'i", "| i:2147483647 | i' i"),
        ("i~i|i:0016|", "| i:16 |"),
    ],
)
def test_reads(text: str, tidy: str) -> None:
    assert print_schedule(schedule(text)) == tidy


def test_spans() -> None:
    found = schedule("+ij~i | i : 2 | i  i ' j ! | i':u  ")
    assert found.span.text() == "| i : 2 | i  i ' j ! | i':u"
    assert found.splits[0].span.text() == "i : 2"
    assert [atom.span.text() for atom in found.order] == ["i", "i '", "j", "!"]
    assert found.roles[0].span.text() == "i':u"


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        ("i~i | j~j", "i~i", "j~j"),
        ("i~i|-j~j", "i~i", "-j~j"),
        ("i~i | ||j~j", "i~i", "||j~j"),
        ("i~i|||j~j", "i~i", "||j~j"),
        ("i~i ||| . ~ .", "i~i", "||.~."),
        ("i~i|||j*j~j", "i~i||", "j*j~j"),
        ("i~i || | j~j", "i~i||", "j~j"),
        ("i~i||i|||j~j", "i~i||i", "||j~j"),
        ("i~i||i|j~j", "i~i||i", "j~j"),
        ("i~i||i|2", "i~i||i", "2"),
        ("i~i||i|i:v|j~j", "i~i||i|i:v", "j~j"),
        ("i~i|i:2||j~j", "i~i|i:2|", "j~j"),
        ("i~i|I", "i~i", "I"),
    ],
)
def test_bars_that_pair(text: str, left: str, right: str) -> None:
    tree = parse(text)
    assert isinstance(tree, Combine)
    assert (tree.symbol, tree.left, tree.right) == ("|", parse(left), parse(right))


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("+ij~i|", "E0108", 7),
        ("ij~ij||ij|", "E0108", 11),
        ("i~i|i:4", "E0120", 8),
        ("+ij~i|i:", "E0121", 9),
        ("+ij~i|i:two|ii'j", "E0121", 9),
        ("ij~ij|i:2,|ii'j", "E0121", 11),
        ("i~i|i:4::2|i", "E0121", 9),
        ("i~i|i:2.5|ii'", "E0121", 8),
        ("i~i|i:2,k|i", "E0121", 10),
        ("+ij~i||i,j", "E0122", 9),
        ("+ij~i||i>j", "E0122", 9),
        ("+ij~i||'ij", "E0122", 8),
        ("+ij~i||ij~i", "E0122", 10),
        ("ij~ij||I", "E0122", 8),
        ("i~i||i|i:", "E0123", 10),
        ("i~i||i|i:v,", "E0123", 12),
        ("i~i||i|i:v,2", "E0123", 13),
        ("i~i||i|i:2", "E0123", 10),
        ("+ij~i||i j ?", "E0102", 12),
        ("i~i|i:0|ii'", "E0301", 5),
        ("i~i|i:-1|ii'", "E0301", 7),
        ("i~i|i:2147483648|ii'", "E0301", 5),
        ("i~i|i:9223372036854775808|ii'", "E0301", 7),
        ("i~i|i:65536:32768|ii'i''", "E0301", 5),
        ("i~i|i:2,i:2|ii'", "E0302", 9),
        ("i~i|j:4|i", "E0303", 5),
        ("ij~ij||ijk", "E0303", 10),
        ("i~i||i|j:v", "E0303", 8),
        ("ij~ij||ijj'", "E0304", 10),
        ("i~i|i:2|ii'i''", "E0304", 12),
        ("ij~ij||ij|i':p", "E0304", 11),
        ("i~i||ii", "E0305", 7),
        ("+ij~i||i0j0", "E0305", 11),
        ("+ij~i||i!j!", "E0305", 11),
        ("ij~ij||i", "E0306", 8),
        ("ij~ij|i:2|ij", "E0306", 11),
        ("i~i||0", "E0306", 6),
        ("i~i||i1", "E0307", 7),
        ("i*i~i||i2", "E0307", 9),
        ("i~i||0i|1:s", "E0307", 9),
        ("ij~ij||ij!", "E0308", 10),
        ("+ijk~ij||i!jk", "E0309", 11),
        ("i~i||i|i:w", "E0310", 8),
        ("i~i||0i|0:v", "E0310", 9),
        ("i~i||i|i:s2", "E0310", 8),
        ("i~i||i|i:v,i:u", "E0311", 12),
        ("i~i||0i|0:s,0:r", "E0311", 13),
        ("i~i||i|0:s", "E0312", 8),
    ],
)
def test_refusals(text: str, code: str, column: int) -> None:
    check_error(text, code, 1, column)


def test_missing_loops_are_named() -> None:
    error = check_error("ijk~ijk|i:2|k", "E0306", 1, 13)
    assert "i, i', j" in error.message


@pytest.mark.parametrize(
    ("text", "code", "column", "advice"),
    [
        ("+ij~i | i:8 j:8 | i j", "E0120", 13, "commas stand between splits"),
        ("+ij~i | i:8 8 | i j", "E0120", 13, "a schedule is"),
        ("+ij~i | i:tx | i j", "E0121", 11, "roles stand last: `| splits | order | i:tx`"),
        ("+ij~i | i:two | i j", "E0121", 11, "a factor is how many iterations"),
    ],
)
def test_help_of_splits(text: str, code: str, column: int, advice: str) -> None:
    assert advice in (check_error(text, code, 1, column).help or "")
