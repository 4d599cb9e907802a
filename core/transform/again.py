"""Values as one for each of their readers, with what they compute in their own innermost loops.

Example, y copied for its second reader:
    in:   y[i,j] = x[i,j] - m[j];  v[j] = sum y[i,j] over i;   z[i,j] = y[i,j] / s[j]
    out:  y[i,j] = x[i,j] - m[j];  v[j] = sum y[i,j] over i;
          y2[i,j] = x[i,j] - m[j];  z[i,j] = y2[i,j] / s[j]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.core.ir.ids import ValueId
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.record import replace
from ilang.core.transform.extended import ExtendedProgram


def copied(shaped: Shaped, values: Sequence[Sequence[int]], most: int) -> Shaped:
    """The program in which each reader of some values but the first has a copy.

    Args:
        shaped: the program.
        values: each value before those that it reads, and after it what it computes in its innermost loop.
        most: readers of a value that is copied, at most; copies read values, too.
    """
    copies = _Copies(shaped)
    for value, *inside in values:
        if len(copies.readers[value]) <= most:
            copies.add(value, inside)
    return copies.new.result() if len(shaped.nodes) < len(copies.new.nodes) else shaped


class _Copies:
    """The program with the copies so far, and the readers of each value."""

    def __init__(self, shaped: Shaped) -> None:
        self.new = ExtendedProgram(shaped)
        self.readers: dict[int, list[ValueId]] = {}
        for reader, node in shaped.numbered():
            for value in dict.fromkeys(node.values()) if isinstance(node, Assignment) else ():
                self.readers.setdefault(value, []).append(reader)

    def add(self, value: int, inside: Sequence[int]) -> None:
        """Give each reader of a value but the first a copy of it, and of what it computes inside."""
        for reader in self.readers[value][1:]:
            copies = dict[ValueId, ValueId]()
            for each in map(ValueId, sorted((value, *inside))):
                dims = self.new.tensors[each].dims
                number = self.new.add(self.new.nodes[each], each, dims, "again")
                self._read(number, copies)
                copies[each] = number
            self._read(reader, copies)

    def _read(self, reader: ValueId, copies: Mapping[ValueId, ValueId]) -> None:
        """Let a reader read copies, where there are any, and be one more reader of all else."""
        node = self.new.nodes[reader]
        assert isinstance(node, Assignment)
        reads = tuple(
            replace(read, value=copies.get(read.value, read.value)) for read in node.reads
        )
        self.new.nodes[reader] = replace(node, reads=reads)
        for value in {read.value for read in reads}:
            readers = self.readers.setdefault(value, [])
            if reader not in readers:
                readers.append(reader)
