"""Layers, losses and optimisers in the language itself; a line ``use nn`` of a file makes their names known in it."""

from __future__ import annotations

from importlib import import_module

LIBRARIES = ("nn", "optim")
"""The libraries, a module with a text of definitions each."""

INNER = frozenset(
    (
        *("convolve", "kernel3", "kernel5", "max_pool2_of", "uniform26", "step26"),
        *("mixed26", "halves26", "rest26", "one_row", "attention_scores", "attention_mix"),
        *("causal_softmax", "causal_shift", "causal_share", "rows_of", "carry", "pair_of"),
    )
)
"""The definitions that serve others of their library: no message offers them, and no page lists them."""


def text_of(name: str) -> str:
    """The text of a library."""
    text: str = import_module(f"ilang.core.library.{name}").TEXT
    return text
