"""Named pieces, layers, losses and optimisers in the language itself; a line ``use nn`` makes their names known."""

from __future__ import annotations

from importlib import import_module

LIBRARIES = ("nn", "optim", "std")
"""The libraries, a module with a text of definitions each; a name of two of them is that of the first."""

STD = "std"
"""The library whose components a text may name without a line ``use``."""

INNER = frozenset(
    (
        *("convolve", "kernel3", "kernel5", "max_pool2_of", "uniform26", "step26"),
        *("mixed26", "halves26", "rest26", "one_row", "attention_scores", "attention_mix"),
        *("causal_softmax", "causal_shift", "causal_share", "rows_of", "carry", "pair_of"),
        *("square_of", "centered_last", "deviation_last", "right_class", "class_at"),
    )
)
"""The definitions that serve others of their library: no message offers them, and no page lists them."""

SHARES = {
    "nn.i": {"rate": False, "keep": True},
    "optim.i": {"momentum": True, "b1": False, "b2": False},
}
"""The configuration values of a library that are shares, numbers from 0 to 1, and whether 1 is one of them."""


def text_of(name: str) -> str:
    """The text of a library."""
    text: str = import_module(f"ilang.core.library.{name}").TEXT
    return text
