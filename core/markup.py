"""Texts as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence

ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
PREFORMATTED = '<pre style="overflow-x: auto; line-height: 1.3">'


def escaped(text: str) -> str:
    """A text as HTML shows it as it is."""
    return "".join(ESCAPED.get(c, c) for c in text)


def preformatted(text: str) -> str:
    """A text whose lines and blanks stay."""
    return f"{PREFORMATTED}{escaped(text.rstrip())}</pre>"


def folded(title: str, text: str) -> str:
    """A text that a click unfolds."""
    return f"<details><summary>{escaped(title)}</summary>{preformatted(text)}</details>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells below heads."""
    first = "".join(f"<th>{escaped(head)}</th>" for head in heads)
    lines = ["".join(f"<td>{escaped(cell)}</td>" for cell in row) for row in rows]
    return f"<table><tr>{first}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
