"""Wide matrices, the kernels that read them, and a program that computes them apart for each kernel, as data.

Example, the way back of attention, of which s and ds are wide:
    Matrices: wide s and ds; exits m, dq, dk; kernels (m, dq) by rows, (dk) by columns
    Apart: the program in which s and ds are computed once for (m, dq) and once, transposed, for (dk)
"""

from __future__ import annotations

from ilang.core.ir.shaped import Shaped
from ilang.core.record import record

Labels = tuple[int | None, ...]
"""The dimension of the first matrix that each axis of an assignment walks."""


@record
class Exit:
    """A reader of wide matrices that is none: a contraction, or a reduction of rows; ``label`` is that of its rows.

    An exit ``across`` has its rows along memory: it is computed with these before, and then copied. An exit that
    ``is_stored`` is a matrix that something reads in another way, or that the program gives.
    """

    value: int
    label: int
    is_row: bool = False
    across: bool = False
    is_stored: bool = False


@record
class Matrices:
    """Wide matrices that are computed from each other, and everything else that reads them.

    ``axes`` has the labels of the axes of each of them, of the products inside contractions, of exits and of what is
    computed from reduced rows row by row, the ``rows``. ``batch`` are the labels that every exit has. ``kernels`` has
    the exits that are computed together, in the order in which kernels run. Of those that ``are_larger`` no array that
    the program takes or gives has the dimensions. Kernels go ``alone`` where each has one exit.
    """

    wide: frozenset[int]
    axes: dict[int, Labels]
    batch: tuple[int, ...]
    exits: dict[int, Exit]
    rows: frozenset[int]
    kernels: tuple[tuple[int, ...], ...]
    are_larger: bool = True
    alone: bool = False

    def kernel(self, value: int) -> int:
        """The number of the kernel of an exit."""
        return next(n for n, exits in enumerate(self.kernels) if value in exits)


Phase = tuple[int, int]
"""A kernel that goes by blocks of rows: the number of its matrices, and its own among theirs."""


@record
class Apart:
    """A program whose matrices are computed apart for each kernel.

    ``phases`` has the kernel of each of its values that belongs to one, and ``axes`` the labels of its axes; of these
    ``matrices`` are never stored, and ``copies`` always: values of rows for other kernels, and matrices that something
    reads in another way. ``sides`` are the labels of the rows and the columns of the matrices of each kernel.
    ``quotients`` are matrices that are computed where a contraction reads them, its sums being divided in the end.
    """

    shaped: Shaped
    phases: dict[int, Phase]
    axes: dict[int, Labels]
    matrices: frozenset[int]
    copies: frozenset[int]
    sides: dict[Phase, tuple[int, int]]
    quotients: frozenset[int] = frozenset()
