"""Named pieces as functions of arrays: ``lib.softmax(x, axis=-1)``, ``lib.mean(x)``, ``lib.matmul(x, y)``.

    from ilang import lib

    lib.softmax(x, axis=1)
    lib.var(x, axis=(0, 2))

A function is a component of the library ``std``, written in the language (docs/functions.md), along the axes of a call;
that of a call like an earlier one is compiled already. ``lib.softmax(x, out=y, threads=2)`` takes what components take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ilang.codegen.call.tracebacks import ends_at_caller, hide
from ilang.codegen.components.pieces import PIECES, called
from ilang.codegen.frameworks.dynamo import uncompiled

TYPE_CHECKING = False  # see ilang/__init__.py
if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Axes = int | Sequence[int] | None
    Array = NDArray[Any]


@ends_at_caller
def one_hot(x: Any, classes: int, **options: Any) -> Any:
    """Rows of ``classes`` numbers, 1 at the number that x has and else 0, in f32; a new last axis.

    Raises:
        Error: DataError E0777 (no number of classes), and what a call refuses.
    """
    return uncompiled(called)("one_hot", (x,), classes, options)


def _function(name: str) -> Callable[..., Any]:
    default = PIECES[name]

    def piece(*arrays: Any, axis: Any = default, **options: Any) -> Any:
        try:
            return uncompiled(called)(name, arrays, axis, options)
        except Exception as error:
            hide(error)
            raise

    piece.__name__ = piece.__qualname__ = name
    piece.__doc__ = f"lib.{name}(x, ...): the component `{name}` of the library `std`."
    return piece


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in PIECES:
        from ilang.core.suggestion import nearest

        close = nearest(name, [*PIECES, "one_hot"])
        hint = f"; did you mean {close}?" if close else ""
        raise AttributeError(f"lib has no function {name!r}{hint}")
    function = globals()[name] = _function(name)
    return function


def __dir__() -> list[str]:
    return ["one_hot", *PIECES]
