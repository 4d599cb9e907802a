"""Definitions of a program that are part of what a project exports, and have no function there.

``scores``, ``softmax`` and ``exp`` of ``attention = scores >> softmax >> mix`` with ``softmax = shift >> exp >> norm``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ilang.codegen.targets.session import EmittedSession, ExportedFunction
from ilang.core.diagnostic import Error
from ilang.core.ir.functions import Called, Reference, nodes_within
from ilang.core.ir.syntax import Module, names_in
from ilang.core.notation.files.pieces import parse_with_pieces
from ilang.core.source import Source


def inlined_in(
    text: str, functions: Sequence[ExportedFunction], sessions: Sequence[EmittedSession] = ()
) -> list[str]:
    """The definitions of a text that the exported ones use, directly or through others, in the order of the text."""
    try:
        module = parse_with_pieces(Source("<text>", text))
    except Error:  # a program without definitions
        return []
    stages = {each.name() for session in sessions for each in session.functions()}
    names = [each.name for each in sessions]
    names += [each.program.name for each in functions if each.name() not in stages]
    uses = _uses(module)
    exported = [each for each in (_definition(name, uses) for name in names) if each]
    reached, todo = {*exported}, [*exported]
    while todo:
        new = uses.get(todo.pop(), set()) - reached
        reached |= new
        todo += new
    written = [each.name for each in module.named() if each.span.source == module.source]
    return [name for name in written if name in reached and name not in exported]


def _uses(module: Module) -> dict[str, set[str]]:
    """The names that each definition uses."""
    uses = {each.name: {node.name for node in names_in(each.body)} for each in module.definitions}
    for function in module.functions_and_routines():
        uses[function.head.name] = {
            node.component.name
            for node in nodes_within(function)
            if isinstance(node, Called) and isinstance(node.component, Reference)
        }
    return uses


def _definition(name: str, known: Collection[str]) -> str:
    """The definition that a name in C, which a prefix may begin, is of; empty where it is of none."""
    ends = [each for each in known if f"_{name}".endswith((f"_{each}", f"_{each}_"))]
    return max(ends, key=len, default="")
