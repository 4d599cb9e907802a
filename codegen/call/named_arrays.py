"""Arrays of a call that are given by the names of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.codegen.call.arguments import MOST_LISTED, listed_inputs
from ilang.core.diagnostic import DataError, counted, visible
from ilang.core.suggestion import did_you_mean

OPTIONS = ("out", "threads", "target", "stream")
"""The arguments of a call beside arrays."""
OF_OTHERS = {
    "dtype": "arrays have their types, and the result follows: x.astype(np.float64)",
    "device": 'target="cuda" computes on a GPU; tensors of PyTorch and arrays of JAX stay where they are',
    "axis": "the program says its axes; ilang.lib has functions with axis=",
    "dim": "the program says its axes; ilang.lib has functions with axis=",
}
"""The help for arguments that functions of NumPy and PyTorch have, and calls here have not."""


def placed(
    names: Sequence[str], given: Sequence[object], named: Mapping[str, object]
) -> tuple[object, ...]:
    """The arrays of all inputs, which are called ``names``: those given in order, then those given by name.

    Raises:
        DataError: E0701 (inputs without an array), E0747 (no input has the name, or it has an array already).
    """
    for name in named:
        if name not in names:
            known = [*names, *OPTIONS]
            help_line = did_you_mean(name, known, listed_inputs(names[:MOST_LISTED]))
            message = f"the program has no input named {visible(name)}"
            raise DataError("E0747", message, help=OF_OTHERS.get(name, help_line))
        if name in names[: len(given)]:
            message = (
                f"{visible(name)} is given by name, and in order as array {names.index(name) + 1}"
            )
            raise DataError(
                "E0747", message, help="arrays in order come first: give each input once"
            )
    missing = [name for name in names[len(given) :] if name not in named]
    if missing:
        message = f"{counted(len(missing), 'input')} of the program {'is' if len(missing) == 1 else 'are'} not given"
        raise DataError("E0701", message, help=f"missing: {', '.join(missing[:MOST_LISTED])}")
    return (*given, *(named[name] for name in names[len(given) :]))
