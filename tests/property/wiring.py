"""The wiring that a body over names means, as text, without any names but those of definitions.

    f(x, y) = { a = g(x); h(a, y, a) }
    f(x, y) = (g | I) >> ((I & I) | I) >> (I | ~(I | I)) >> h

A value is a wire. A wire that is read again later is copied, wires are exchanged until those that a component takes
come first, and the others are handed on beside it.
"""

from __future__ import annotations

from collections import Counter

from ilang.core.ir.syntax import (
    Application,
    Argument,
    Block,
    Definition,
    Name,
    Value,
    over_names,
    postorder,
)
from ilang.core.notation.components.arity import Wires, wires_of
from ilang.core.notation.components.printer import print_tree


def wired(definition: Definition, known: dict[str, Wires]) -> str:
    """A definition over names as one that is wired; it discards nothing."""
    assert over_names(definition.body)
    parameters = definition.parameters or ()
    bus = _Bus([p.name for p in parameters], known)
    bus.reads.update(node.name for node in postorder(definition.body) if isinstance(node, Value))
    outputs: tuple[Argument, ...] = (
        (definition.body,) if isinstance(definition.body, Application) else ()
    )
    if isinstance(definition.body, Block):
        for binding in definition.body.bindings:
            wires = bus.values(binding.application)
            for wire, target in zip(wires, binding.targets, strict=True):
                assert target.name != "_", "what is discarded cannot be wired"
                bus.wires[bus.wires.index(wire)] = target.name
        outputs = definition.body.outputs
    bus.bring([wire for output in outputs for wire in bus.values(output)])
    head = print_tree(Name(definition.name, definition.span))
    inputs = ", ".join(p.span.text() for p in parameters)
    return f"{head}({inputs}) = {' >> '.join(f'({step})' for step in bus.steps)}\n"


class _Bus:
    """All values that are still to be read, side by side."""

    def __init__(self, inputs: list[str], known: dict[str, Wires]) -> None:
        self.wires = inputs
        self.known = known
        self.steps = [" | ".join("I" * len(inputs))]
        self.reads: Counter[str] = Counter()
        self.serial = 0

    def values(self, argument: Argument) -> list[str]:
        """Compute an argument; the wires that it stands for."""
        if isinstance(argument, Value):
            return [argument.name]
        if not isinstance(argument, Application):
            return self.add(print_tree(argument), wires_of(argument, self.known).outputs)
        taken = [wire for each in argument.arguments for wire in self.values(each)]
        self.bring(taken)
        component = argument.component
        text = print_tree(component)
        rest = self.wires[len(taken) :]
        gives = [self.fresh() for _ in range(wires_of(component, self.known).outputs)]
        self.steps.append(" | ".join([f"({text})", *"I" * len(rest)]))
        self.wires = gives + rest
        return gives

    def add(self, text: str, count: int) -> list[str]:
        """A component without inputs, beside all others."""
        self.steps.append(" | ".join([*"I" * len(self.wires), text]))
        added = [self.fresh() for _ in range(count)]
        self.wires += added
        return added

    def fresh(self) -> str:
        """A wire without a name."""
        self.serial += 1
        return f"#{self.serial}"

    def bring(self, wanted: list[str]) -> None:
        """Bring wires to the front, in order, and keep copies of those that are read again."""
        for target, wire in enumerate(wanted):
            at = self.wires.index(wire, target)
            self.reads[wire] -= 1
            if 0 < self.reads[wire]:
                self.place(at, "(I & I)", 1)
                self.wires.insert(at, wire)
            for left in range(at - 1, target - 1, -1):
                self.place(left, "~(I | I)", 2)
                self.wires[left : left + 2] = reversed(self.wires[left : left + 2])

    def place(self, at: int, component: str, takes: int) -> None:
        """Hand all wires on, some of them through a component."""
        rest = len(self.wires) - at - takes
        self.steps.append(" | ".join([*"I" * at, component, *"I" * rest]))
