"""Calls of functions that array libraries have, as steps that are programs: ``np.sum(x, axis=0)``, ``x.argmax()``.

A call means what NumPy means by it, and ``torch.std`` what PyTorch does; ``signatures.py`` says what functions take,
``array_functions.py`` has the programs.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ilang.core.diagnostic import enumerated
from ilang.core.notation.guidance import named as guidance_of
from ilang.core.suggestion import nearest
from ilang.icli.array_functions import (
    ALIASES,
    CONVERSIONS,
    EXTREMES,
    KNOWN,
    Array,
    MismatchError,
    NoExpressionError,
    NoSpellingError,
    places_of,
    reshaped,
)
from ilang.icli.called_functions import FAMILIES, of_elements
from ilang.icli.folded import Replaced, SizesFolded
from ilang.icli.python_nodes import called, whole_numbers
from ilang.icli.signatures import SIGNATURES, bound, parameters_told

if TYPE_CHECKING:
    from ilang.icli.foreign import NamedSteps


class ArrayCall:
    """A call: its function, and what it gives for the parameters of it."""

    def __init__(self, steps: NamedSteps, node: ast.Call) -> None:
        """A call after some steps. Raises: NoSpellingError, MismatchError (it has other parameters)."""
        self.steps, self.node = steps, node
        self.spelled = ast.unparse(node.func)
        name, arguments = called(node, steps.arrays)
        self.name = ALIASES.get(name, name)
        if self.name not in (*KNOWN, *SIGNATURES):
            raise unknown_function(self.spelled, name)
        if self.name in EXTREMES and len(arguments) == 2 and isinstance(node.func, ast.Name):
            self.name = {"max": "maximum", "min": "minimum"}[self.name]
        owners = len(arguments) - len(node.args)
        self.named, self.rest = bound(self.name, self.spelled, arguments, node.keywords, owners)

    def array(self) -> Array:
        """The result. Raises: NoSpellingError, MismatchError."""
        family = (function for names, function in FAMILIES if self.name in names)
        return next(family, of_elements)(self)

    def operand(self, name: str = "a") -> Array:
        """The array that is given for a parameter."""
        return self.steps.array(self.named[name])

    def number(self, name: str) -> int:
        """The whole number that is given for a parameter. Raises: NoSpellingError."""
        (number,) = whole_numbers([self.named[name]])
        return number

    def is_given(self, name: str) -> bool:
        """Whether something other than ``None`` stands for a parameter."""
        node = self.named.get(name)
        return node is not None and not (isinstance(node, ast.Constant) and node.value is None)

    @property
    def axes(self) -> list[int] | None:
        """The axes that are named; None for all. Raises: MismatchError (they are no numbers)."""
        if not self.is_given("axis"):
            return None
        try:
            return whole_numbers([self.named["axis"]])
        except NoSpellingError:
            message = f"`{self.spelled}` has the axis `{ast.unparse(self.named['axis'])}`"
            hint = "an axis is a whole number, 0 for the first, -1 for the last"
            raise MismatchError(message, hint, "E0821", self.spelled) from None

    @property
    def keeps(self) -> bool:
        """Whether axes that are reduced stay with size 1."""
        return "keepdims" in self.named and ast.unparse(self.named["keepdims"]) == "True"

    @property
    def axis(self) -> int | None:
        """The one axis that is given. Raises: NoSpellingError (there are several)."""
        axes = self.axes
        if axes is not None and len(axes) != 1:
            raise NoSpellingError
        return axes[0] if axes else None

    def flat(self, array: Array) -> Array:
        """The elements of an array in order, where no axis is given."""
        if self.axis is not None or len(array.shape) == 1:
            return array
        if not array.shape:
            return self.steps.widened(array, [0])
        return self.steps.step(reshaped(array, []), array)

    def expanded(self, text: str, **named: Array | ast.expr) -> Array:
        """An expression of other functions over names of arrays and of what is written out."""
        written = {key: each for key, each in named.items() if isinstance(each, ast.expr)}
        arrays = {key: each for key, each in named.items() if isinstance(each, Array)}
        tree = SizesFolded(arrays).visit(Replaced(written).visit(ast.parse(text, mode="eval").body))
        before, self.steps.named = self.steps.named, {**self.steps.named, **arrays}
        try:
            return self.steps.array(tree)
        finally:
            self.steps.named = before

    def converted(self, array: Array) -> Array:
        """An array in the type that is asked for."""
        if not self.is_given("dtype"):
            return array
        node = self.named["dtype"]
        name = ast.unparse(node).rpartition(".")[2].strip("'")
        if name not in CONVERSIONS:
            message = f"`{ast.unparse(node)}` is no element type"
            types = enumerated([*dict.fromkeys(CONVERSIONS.values())], "or")
            raise MismatchError(message, f"it is {types}", "E0821")
        dtype = CONVERSIONS[name]
        return array if array.dtype == dtype else self.steps.step(dtype, array)

    def kept(self, whole: Array, result: Array) -> Array:
        """The result of a reduction, whose axes may stay with size 1."""
        if not self.keeps:
            return result
        return self.steps.widened(result, places_of(whole, self.axes))


def unknown_function(spelled: str, name: str) -> NoExpressionError:
    """The error for a function, or a method, that nothing here does the work of."""
    guess = nearest(name, sorted({*KNOWN, *SIGNATURES}))
    says = guidance_of(name)
    if "random" in spelled:
        says = "`rand(2, 3)` has uniform numbers, `randn(2, 3)` normal ones"
    hint = says or (f"did you mean `{guess}`?" if guess else "`:help` lists what can be typed")
    return NoExpressionError(f"there is no `{spelled}` here", hint, "E0821", spelled)


def unread_part(node: ast.expr) -> NoExpressionError:
    """The error for a part of a line that is no expression of arrays."""
    text = ast.unparse(node)
    match node:
        case ast.Call(func):
            name = ast.unparse(func)
            takes = parameters_told(name.rpartition(".")[2])
            message, hint = (
                f"`{text}` is no call that has a meaning here",
                f"`{name}` takes {takes}",
            )
        case ast.IfExp():
            message, hint = (
                f"`{text}` chooses one of two",
                "elements are chosen by `where(c, x, y)`",
            )
        case ast.Subscript(value):
            message = f"`{text}` is no array"
            hint = f"an index is a whole number, a range, a condition or integers: `{ast.unparse(value)}[0]`"
        case _:
            message, hint = f"`{text}` is no array", "`:help` lists what can be typed"
    return NoExpressionError(message, hint, "E0821", text)
