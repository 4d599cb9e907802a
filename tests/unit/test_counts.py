"""Counts that must not grow back; a change that lowers one lowers its ceiling here."""

from __future__ import annotations

from tests.counts import counts, methods, opens_terms, records, rings

CEILINGS = {
    "record types": 388,
    "record types for whole numbers": 8,
    "methods of the longest class": 20,
    "modules that open terms outside core/calculus": 0,
    "modules in rings of imports": 0,
}


def test_no_count_grows() -> None:
    assert {title: n for title, n in counts().items() if CEILINGS.get(title, n) < n} == {}


def test_what_is_counted() -> None:
    text = "@record\nclass A:\n    terms: int\n\nclass B: ...\n\n@once.more\nclass C: ...\n"
    assert list(records(text)) == ["A"]
    assert list(methods("class A:\n    def b(self): ...\n\ndef c(): ...")) == [(1, "A")]
    assert opens_terms("sum(c for c, _ in index.terms)")
    assert not opens_terms("index.steps(), unit.terms, machine.tiles.terms")
    assert list(rings({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["d"]})) == [["b", "c"]]
