"""How a scorer that lives outside this repository drives the product: its public API, and nothing else.

The scorer runs this file by its path and calls the functions by name; it knows the inputs and the answers.
"""

from collections.abc import Sequence
from typing import Any

from ilang import I, i


def index(program: str, inputs: Sequence[Any], target: str) -> Any:
    """Run ``(i("ij~ji") & I) >> i("ij+ij~ij")``, a program in the Python spelling, on arrays."""
    component = eval(program, {"__builtins__": {}, "i": i, "I": I})
    return component(*inputs, target=target)
