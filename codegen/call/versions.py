"""The versions of a component: programs with the extents of the arrays at hand, and those that leave extents open.

A call is compiled for the element types and the extents of its arrays. A component has up to ``MOST_VERSIONS`` such
programs; calls with further extents share a general one, whose extents are arguments.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import DataError, VersionsWarning
from ilang.core.record import record

if TYPE_CHECKING:
    from ilang.codegen.call.specialization import Specialization
    from ilang.core.ir.shaped import Shaped

MOST_VERSIONS = 16
"""Programs for extents at hand that one component has, where the environment says nothing else."""

VARIABLE = "I_VERSIONS"
"""The environment variable with the number of versions of a component; ``all`` is as many as there are calls."""

Key = tuple[tuple[str | None, ...], tuple[int, ...], tuple[int | None, ...] | None]
"""Element types, ranks, and the extents that are fixed (None: no more than in the text)."""


@record
class Version:
    """One compiled program of a component.

    Args:
        types: the element types of the inputs.
        shapes: of the inputs; a dimension is a number, or the name of an extent that is open.
    """

    types: tuple[str, ...]
    shapes: tuple[tuple[int | str, ...], ...]

    def __str__(self) -> str:
        """The inputs as heads of definitions have them: ``f32[300, k], f32[k, 500]``."""
        return ", ".join(
            f"{dtype}[{', '.join(map(str, shape))}]"
            for dtype, shape in zip(self.types, self.shapes, strict=True)
        )


def most_versions() -> int | None:
    """The number of programs for extents at hand that one component may have; None: any number.

    Raises:
        DataError: E0772 (the environment says neither a number nor ``all``).
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return MOST_VERSIONS
    if text == "all":
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    raise DataError(
        "E0772",
        f"{VARIABLE} is {text!r}, which is no number of versions",
        help=f"set it to a number, 0 for extents that are always open, or all; without it, it is {MOST_VERSIONS}",
    )


class Versions:
    """The programs of one component. Of two threads that ask for one at once, both get the same."""

    __slots__ = ("_programs", "_warned", "dynamic")

    def __init__(self, dynamic: Collection[str] | None = ()) -> None:
        """No program yet; ``dynamic`` has the names of extents that stay open, None is all of them."""
        self.dynamic = dynamic
        self._programs: dict[Key, Specialization] = {}
        self._warned = False

    def of(
        self,
        shaped: Shaped,
        types: tuple[str | None, ...],
        shapes: Sequence[tuple[int, ...]],
        extents: Sequence[int],
    ) -> Specialization:
        """The program for arrays of these shapes, which give the sizes of ``shaped`` these extents.

        Raises:
            DataError: E0772, E0773 (an extent that is to stay open, and that no array has).
        """
        from ilang.codegen.call.specialization import Specialization
        from ilang.core.passes.solved_to_shaped import open_sizes, with_fixed

        ranks = tuple(map(len, shapes))
        if self.dynamic is not None:
            left = open_sizes(shaped, self._open_names(shaped))
            fixed = tuple(None if n in left else extent for n, extent in enumerate(extents))
            key = (types, ranks, fixed)
            known = self._programs.get(key)
            if known is None and self._has_room(shaped):
                program = Specialization(with_fixed(shaped, fixed))
                known = self._programs.setdefault(key, program)
            if known is not None:
                return known
        general: Key = (types, ranks, None)
        known = self._programs.get(general)
        return known or self._programs.setdefault(general, Specialization(shaped))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled as what stays open; programs are compiled again."""
        return Versions, (self.dynamic,)

    def _open_names(self, shaped: Shaped) -> Collection[str]:
        """The names of extents that stay open. Raises DataError E0773."""
        names = [size.name for size in shaped.sizes if size.is_argument()]
        for name in self.dynamic or ():
            if name not in names:
                from ilang.core.suggestion import did_you_mean

                listed = f"its extents are {', '.join(dict.fromkeys(names))}"
                hint = did_you_mean(
                    name, names, listed if names else "all of its extents are fixed"
                )
                raise DataError(
                    "E0773", f"no array of this program has an extent {name}", help=hint
                )
        return self.dynamic or ()

    def _has_room(self, shaped: Shaped) -> bool:
        """Whether there may be one more program for extents at hand; where not, that is said once."""
        most = most_versions()
        if most is None or sum(fixed is not None for _, _, fixed in self._programs) < most:
            return True
        if most and not self._warned:
            self._warned = True
            names = dict.fromkeys(size.name for size in shaped.sizes if size.is_argument())
            example = ", ".join(f'"{name}"' for name in names)
            warnings.warn(
                f"{shaped.name} has versions for the extents of {most} calls; calls with others share one version\n"
                f"help: say which extents vary: f.dynamic({example}); or set {VARIABLE}=all",
                VersionsWarning,
                stacklevel=6,
            )
        return False

    def listed(self) -> tuple[Version, ...]:
        """The programs that there are, in the order of the first calls."""
        return tuple(_version(each.shaped) for each in self._programs.values())


def _version(shaped: Shaped) -> Version:
    tensors = [shaped.tensors[value] for value in shaped.inputs]
    extents = [size.name if size.fixed is None else size.fixed for size in shaped.sizes]
    return Version(
        tuple(tensor.dtype for tensor in tensors),
        tuple(tuple(extents[n] for n in tensor.dims) for tensor in tensors),
    )
