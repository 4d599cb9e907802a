"""Trees back to text: ``parse(print(tree))`` is the tree again.

Parentheses stand only where grouping or a schedule asks for them: a schedule whose order is empty ends with a bar, so
it is closed off from what follows. ``i("...")`` is used where the letters of a comparison would read as a name.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from ilang.core.ir import syntax
from ilang.core.ir.spec import Fixed
from ilang.core.notation.reader import TYPES

if TYPE_CHECKING:
    from ilang.core.ir.einx import Sizes

BINDING = {"|": 1, "&": 2, ">>": 3, "<<": 3}
TIGHTEST = 5
NUMERAL = r"-?[0-9]+e[-+][0-9]+"


class _Anything:
    """Holds every word: where any name may be defined."""

    def __contains__(self, word: object) -> bool:
        return True


def print_tree(tree: syntax.Tree, names: Container[str] | None = None) -> str:
    """The text of a program; ``names`` are those defined where it will be read, by default those it uses."""
    known = {node.name for node in syntax.names_in(tree)} if names is None else names
    pieces: list[str] = []
    closed: set[int] = set()
    todo: list[syntax.Tree | str] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, syntax.Number) and id(node) in closed:
            pieces.append(f"({node.text})")
        elif isinstance(node, str):
            pieces.append(node)
        elif isinstance(node, syntax.Swap):
            todo += reversed(["~", *_grouped(node.operand, TIGHTEST)])
        elif isinstance(node, syntax.Combine):
            binding = BINDING[node.symbol]
            compared = _would_compare(node)
            closed |= set() if compared is None else {id(compared)}
            left, right = _grouped(node.left, binding), _grouped(node.right, binding + 1)
            todo += reversed([*left, f" {node.symbol} ", *right])
        elif isinstance(node, syntax.Application):
            todo += reversed([*_applied(node.component), "(", *_listed(node.arguments), ")"])
        elif isinstance(node, syntax.Block):
            statements = [part for binding in node.bindings for part in (*_bound(binding), "; ")]
            todo += reversed(["{ ", *statements, *_listed(node.outputs), " }"])
        elif isinstance(node, syntax.Einx):
            todo += reversed(_operation(node))
        else:
            pieces.append(_leaf(node, known))
    return "".join(pieces)


def print_short(tree: syntax.Tree) -> str:
    """The text of a program in a message, cut where it is long."""
    text = print_tree(tree)
    return f"`{text if len(text) <= 40 else text[:39] + '…'}`"


def print_anywhere(tree: syntax.Tree) -> str:
    """The text of a program where any name may be defined."""
    return print_tree(tree, _Anything())


def _grouped(tree: syntax.Tree, binding: int) -> list[syntax.Tree | str]:
    """A subtree, in parentheses unless it binds at least as tightly as asked."""
    if isinstance(tree, syntax.Combine):
        bare = BINDING[tree.symbol] >= binding
    elif (
        isinstance(tree, syntax.Expression | syntax.Einsum | syntax.Einx)
        and tree.schedule is not None
    ):
        bare = bool(tree.schedule.order or tree.schedule.roles)
    else:
        bare = True
    return [tree] if bare else ["(", tree, ")"]


def _applied(component: syntax.Tree) -> list[syntax.Tree | str]:
    """A component before its arguments: in parentheses unless it is a word, or a specification without a schedule."""
    bare = isinstance(component, syntax.Name) or is_called_bare(component)
    return [component] if bare else ["(", component, ")"]


def is_called_bare(component: syntax.Tree) -> bool:
    """Whether a component, not the name of one, needs no parentheses before its arguments."""
    if isinstance(component, syntax.Einsum | syntax.Einx):
        return component.schedule is None
    return isinstance(component, syntax.Conversion | syntax.Identity | syntax.ElementKernel)


def _listed(arguments: Sequence[syntax.Tree]) -> list[syntax.Tree | str]:
    parts = [part for argument in arguments for part in (argument, ", ")]
    return parts[:-1]


def _bound(binding: syntax.Binding) -> list[syntax.Tree | str]:
    """``big, _ = f(x)``."""
    names = ", ".join(target.name for target in binding.targets)
    return [f"{names} = ", binding.application]


def _would_compare(node: syntax.Combine) -> syntax.Number | None:
    """The number before ``>>`` or ``<<`` that, without parentheses, would be an operand of a comparison: `2 >> i~i`."""
    right = node.right
    if node.symbol not in (">>", "<<") or not isinstance(right, syntax.Expression):
        return None
    left = node.left
    if isinstance(left, syntax.Combine) and left.symbol in (">>", "<<"):
        left = left.right
    while isinstance(left, syntax.Swap):
        left = left.operand
    if not isinstance(left, syntax.Number) or not left.text.isalnum():
        return None
    return left if right.op is None and right.right is None else None


def _leaf(
    tree: syntax.Expression
    | syntax.Einsum
    | syntax.ElementKernel
    | syntax.Number
    | syntax.Identity
    | syntax.Conversion
    | syntax.Name
    | syntax.Value,
    names: Container[str],
) -> str:
    match tree:
        case syntax.Einsum():
            text = f'einsum("{tree.spec.text}")'
            return text if tree.schedule is None else f"{text} {print_schedule(tree.schedule)}"
        case syntax.ElementKernel():
            return f'elementwise("{tree.text}")'
        case syntax.Expression():
            text = print_expression(tree)
            shadowed = tree.right is not None and tree.op in (">>", "<<")
            first = _operand(tree.left)
            return f'i("{text}")' if shadowed and first != "i" and first in names else text
        case syntax.Number():
            return tree.text
        case syntax.Identity():
            return "I"
        case syntax.Conversion():
            return tree.dtype
        case syntax.Name() | syntax.Value():
            return tree.name


def _operation(tree: syntax.Einx) -> list[syntax.Tree | str]:
    """``einx.mean("a (b [c])", c=2)``: the text between the quotes on one line, parameters as they are given."""
    form = tree.form
    given = "".join(f", {p.name}={print_sizes(p.value)}" for p in form.given)
    option = [] if tree.body is None else [", op=", *_applied(tree.body)]
    after = "" if tree.schedule is None else f" {print_schedule(tree.schedule)}"
    return [f'einx.{form.op}("{" ".join(form.text.split())}"{given}', *option, f"){after}"]


def print_sizes(sizes: Sizes) -> str:
    """``4``, ``(4, 2)``, ``(4,)``."""
    if not isinstance(sizes, tuple):
        return str(sizes)
    inner = ", ".join(map(print_sizes, sizes))
    return f"({inner},)" if len(sizes) == 1 else f"({inner})"


def print_expression(e: syntax.Expression) -> str:
    """``ik*kj~ijk | i:4 | i i' j k``."""
    text = f"{_operand(e.left)}{e.op or ''}{_operand(e.right)}" if e.right is not None else ""
    text = text or f"{e.op or ''}{_operand(e.left)}"
    text += f"~{_pattern(e.output)}"
    return text if e.schedule is None else f"{text} {print_schedule(e.schedule)}"


def _operand(operand: syntax.Operand) -> str:
    """The indices of an input, a position, an extent, or one looked up in the other."""
    if isinstance(operand, syntax.Lookup):
        return f"{_operand(operand.place)}@{_operand(operand.table)}"
    if isinstance(operand, syntax.Pattern):
        return _pattern(operand)
    if operand.extent is not None:
        return f":{operand.extent.letter}"
    text = _linear(syntax.Linear(operand.terms, operand.offset, operand.span))
    return f"@{text}" if text.isalpha() else f"@({text})"


def _pattern(pattern: syntax.Pattern) -> str:
    """Numbers beside each other are told apart by parentheses, zeros need none; no pattern reads as a type."""
    text, digits = "", ""
    for index in pattern.indices:
        if isinstance(index, Fixed) and digits.strip("0") + str(index.position) != "0" and digits:
            text, digits = f"{text}({index.position})", ""
        elif isinstance(index, Fixed):
            digits += str(index.position)
            text += str(index.position)
        else:
            text, digits = text + print_index(index), ""
    if text in TYPES and digits:
        text = f"{text.removesuffix(digits)}({digits})"
    guards = ",".join(print_guard(guard) for guard in pattern.guards)
    return (text or ".") + (f"[{guards}]" if guards else "")


def print_guard(guard: syntax.Guard) -> str:
    """``j<=i+3``."""
    return f"{_linear(guard.left)}{guard.relation}{_linear(guard.right)}"


def _linear(part: syntax.Linear) -> str:
    text = "".join(_term(term) for term in part.terms).removeprefix("+")
    return f"{text}{part.offset:+d}" if text and part.offset else text or str(part.offset)


def print_index(index: syntax.Index) -> str:
    """``i``, ``(2y+u:3-1)`` or ``0``."""
    match index:
        case syntax.Axis():
            return index.letter
        case Fixed():
            return str(index.position)
        case syntax.Linear():
            text = "".join(_term(term) for term in index.terms).removeprefix("+")
            if re.fullmatch(
                NUMERAL, f"{text}{index.offset:+d}"
            ):  # twice the axis e, not two and zeros
                return f"({index.offset}{text if text[0] == '-' else '+' + text})"
            bare = text.isalpha()  # one axis in parentheses would not be an index
            return f"({text}{index.offset:+d})" if index.offset or bare else f"({text})"


def _term(term: syntax.Term) -> str:
    sign = "-" if term.coefficient < 0 else "+"
    times = "" if abs(term.coefficient) == 1 else str(abs(term.coefficient))
    return f"{sign}{times}{term.axis.letter}{'' if term.extent is None else f':{term.extent}'}"


def print_schedule(schedule: syntax.Schedule) -> str:
    """``| i:2,k:4 | i i' k k' | i':u``, with its bars."""
    splits = ",".join(
        f"{split.axis}:{':'.join(str(factor) for factor in split.factors)}"
        for split in schedule.splits
    )
    text = f"| {splits} |" if splits else "||"
    if schedule.order:
        text += " " + " ".join(_atom(atom) for atom in schedule.order)
    if schedule.roles:
        text += " | " + ",".join(_role(role) for role in schedule.roles)
    return text


def _atom(atom: syntax.LoopPart | syntax.Site | syntax.Start) -> str:
    match atom:
        case syntax.LoopPart():
            return atom.text()
        case syntax.Site():
            return str(atom.operand)
        case syntax.Start():
            return "!"


def _role(role: syntax.WrittenRole) -> str:
    target = str(role.of) if isinstance(role.of, int) else _atom(role.of)
    return f"{target}:{role.role}"


def print_definition(definition: syntax.Definition, names: Container[str] | None = None) -> str:
    """``name(parameters) = body`` on one line; without ``names`` any name may be defined beside it."""
    head = definition.name
    if definition.parameters is not None:
        head += f"({', '.join(_parameter(p) for p in definition.parameters)})"
    body = print_tree(definition.body, _Anything() if names is None else names)
    if body.endswith("|"):  # a line that ends with a bar would go on
        body = f"({body})"
    return f"{head} = {body}"


def _parameter(parameter: syntax.NamedInput) -> str:
    text = parameter.name
    if parameter.dtype is not None:
        text += f": {parameter.dtype}"
    if parameter.dims is not None:
        text += f"[{','.join(str(dim) for dim in parameter.dims)}]"
    return text
