"""Named pieces, layers, losses and optimisers in the language itself; a line ``use nn`` makes their names known."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from ilang.core.source import Source

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

LIMITS = {
    "nn.i": {"rate": "[0, 1)", "keep": "[0, 1]", "training": "[0, 1]", "eps": "[0, inf)"},
    "optim.i": {
        "momentum": "[0, 1]",
        "nesterov": "[0, 1]",
        "b1": "[0, 1)",
        "b2": "[0, 1)",
        "eps": "[0, inf)",
    },
    "std.i": {"eps": "[0, inf)"},
}
"""The intervals of configuration values of a library; all begin at 0."""


def limits_in(source: Source) -> Mapping[str, str]:
    """The intervals of configuration values in a text, where it is that of a library."""
    if source.name not in LIMITS:
        return {}
    head = text_of(source.name.removesuffix(".i")).partition("\n")[0]
    return LIMITS[source.name] if source.text.startswith(head) else {}


def text_of(name: str) -> str:
    """The text of a library."""
    text: str = import_module(f"ilang.core.library.{name}").TEXT
    return text
