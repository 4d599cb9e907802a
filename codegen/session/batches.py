"""Batches of examples: which rows of the arrays each run of a training step takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ilang.codegen.session.not_finite import not_finite
from ilang.codegen.session.philox import bits
from ilang.core.diagnostic import DataError

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array


class Batches:
    """Arrays of examples along axis 0, divided into batches; in every epoch in another order."""

    def __init__(
        self,
        arrays: Mapping[str, Array],
        size: int,
        seed: int,
        *,
        shuffle: bool = True,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        """Divide arrays.

        Args:
            arrays: by name, all with as many examples.
            size: examples of a batch; what is left over in the end is dropped.
            seed: of the order.
            shuffle: whether an epoch has an order of its own; else that of the arrays.
            share: the rank that this is, and how many there are: each takes as large a part of every batch, in order.

        Raises:
            DataError: E0762 (another number of examples, too few for a batch, a batch that ranks cannot share).
        """
        for name, array in arrays.items():
            if not array.shape:
                message = f"{name} is one number, and axis 0 has the examples"
                raise DataError("E0762", message, help="numpy.reshape(a, (1,)) has one example")
        counts = {name: len(array) for name, array in arrays.items()}
        first = next(iter(counts), "")
        self.examples = counts.get(first, 0)
        for name, count in counts.items():
            if count != self.examples:
                message = (
                    f"{first} has {self.examples:,} examples along axis 0, and {name} has {count:,}"
                )
                raise DataError("E0762", message, help="every array has one row for each example")
        if not self.examples:
            raise DataError("E0762", "the data has no examples", help="axis 0 has the examples")
        if self.examples < size:
            message = f"a batch has {size:,} examples, and the data has {self.examples:,}"
            raise DataError("E0762", message, help=f"--batch {self.examples}, or fewer")
        rank, ranks = share
        if size % ranks:
            message = f"a batch of {size} examples cannot be shared by {ranks} ranks"
            raise DataError("E0762", message, help=f"--batch {-(-size // ranks) * ranks}")
        self.size = size
        self.count = self.examples // size
        self.dropped = self.examples - self.count * size
        self.arrays = dict(arrays)
        self._seed = seed
        self._shuffle = shuffle
        self._part = slice(rank * size // ranks, (rank + 1) * size // ranks)

    def order(self, epoch: int) -> Array:
        """The numbers of the examples in the order of an epoch: by random numbers that follow from seed and epoch."""
        if not self._shuffle:
            return np.arange(self.examples)
        words = bits(self._seed, "epoch", 2 * self.examples, epoch).astype(np.uint64)
        return np.argsort(words[::2] << np.uint64(32) | words[1::2], kind="stable")

    def not_finite(self, batch: Mapping[str, Array]) -> str:
        """The elements that are no finite numbers in the arrays of a batch which has some, as text; else ""."""
        words = (
            f"{name} is {not_finite(self.arrays[name])}"
            for name in batch
            if not_finite(batch[name])
        )
        return "; ".join(words)

    def place(self, batch: Mapping[str, Array], name: str, position: Sequence[int]) -> str:
        """The first place in the data where an element of a batch stands.

        Example: ``t[17]`` for element 3 of the array ``t`` of a batch
        """
        row, *others = position
        same = (self.arrays[name] == batch[name][row]).reshape(self.examples, -1).all(axis=1)
        return f"{name}[{','.join(map(str, (int(same.argmax()), *others)))}]"

    def epoch(self, number: int, start: int = 0) -> Iterator[dict[str, Array]]:
        """The batches of an epoch, from one of them on: the part of this rank."""
        order = self.order(number)
        for batch in range(start, self.count):
            rows = order[batch * self.size : (batch + 1) * self.size][self._part]
            yield {name: array[rows] for name, array in self.arrays.items()}
