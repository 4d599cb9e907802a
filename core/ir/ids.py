"""Numbers that stand for things, one type for each kind of thing, so that none is taken for another.

Such a number is an integer when a program runs: the place of a thing in a tuple of an IR.
"""

from __future__ import annotations

from typing import NewType

BufferId = NewType("BufferId", int)
"""The number of a buffer: its place among the ``buffers`` of a program of kernels."""
LocalId = NewType("LocalId", int)
"""The number of a scalar variable: its place among the ``locals`` of a kernel."""
VariableId = NewType("VariableId", int)
"""The number of a loop variable: its place among the ``names`` of a kernel."""
ValueId = NewType("ValueId", int)
"""The number of a value of a typed program: its place among the ``nodes``, and not in the graph before types."""
