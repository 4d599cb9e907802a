"""Random definitions over names, each with the wiring that it means.

Both are written from one list of operations on values. Wiring has no names, so the wired twin hands all values on: it
copies and exchanges wires until those that a component takes come first. It cannot leave a value out, so it has all
of them as outputs, those of the definition over names first.
"""

from __future__ import annotations

from random import Random

DEFINITIONS = """\
total = ij+ij~ij
scaled(x[n,m], by[]) = ij*.~ij
both = ij*ij~ij & ij-ij~ij
shifted(x[n,m], y[n,m]) = {
  a, b = both(x, y)
  total(b, a)
}
half = 0.5
"""
COMPONENTS = {
    "total": ("aa", 1),
    "scaled": ("as", 1),
    "both": ("aa", 2),
    "shifted": ("aa", 1),
    "(^ij~ij)": ("a", 1),
    "(-ij~ij & >ij~ij)": ("a", 2),
    "(total | scaled)": ("aaas", 2),
    "(~both)": ("aa", 2),
    "(both >> total)": ("aa", 1),
    'einsum("ij; ij => ij")': ("aa", 1),
    "f32": ("a", 1),
}
"""What each takes (a for a matrix, s for a number), and how many matrices it gives."""


class Twins:
    """One program, as it is written in two ways.

    ``steps`` are its components, each with the values that it takes and gives; ``bound`` says which value, or which
    number, another name has; ``results`` are the outputs.
    """

    def __init__(self, random: Random, inputs: int) -> None:
        """Start with so many matrices."""
        self.random = random
        self.names = [f"x{n}" for n in range(inputs)]
        self.head = f"f({', '.join(f'{name}[n,m]' for name in self.names)})"
        self.bus = list(self.names)
        self.wiring = [" | ".join("I" * inputs)]
        self.unread = list(self.names)
        self.lines: list[str] = []
        self.temporaries = 0
        self.steps: list[tuple[str, list[str], list[str]]] = []
        self.bound: dict[str, str] = {}
        self.results: list[str] = []

    def statement(self) -> None:
        """Bind names to what an application gives, or leave some of it out."""
        text, values = self.application(2)
        names = []
        for value in values:
            keeps = self.random.random() < 0.8
            names.append(f"v{len(self.names)}" if keeps else "_")
            if keeps:
                self.bound[names[-1]] = value
                self.bus[self.bus.index(value)] = names[-1]
                self.names.append(names[-1])
                self.unread.append(names[-1])
        self.lines.append(f"{', '.join(names)} = {text}")

    def application(self, depth: int, most: int = 2) -> tuple[str, list[str]]:
        """The text of an application, and the wires of its outputs, so many at most."""
        fitting = [name for name, (_, gives) in COMPONENTS.items() if gives <= most]
        component = self.random.choice(fitting)
        takes, gives = COMPONENTS[component]
        texts, wires = [], []
        while takes:
            text, values = self.argument(takes, depth)
            texts.append(text)
            wires += values
            takes = takes[len(values) :]
        self.route(wires)
        outputs = [self.temporary() for _ in range(gives)]
        self.steps.append((component, wires, outputs))
        self.wiring.append(" | ".join([component, *"I" * (len(self.bus) - len(wires))]))
        self.bus = outputs + self.bus[len(wires) :]
        return f"{component}({', '.join(texts)})", outputs

    def argument(self, takes: str, depth: int) -> tuple[str, list[str]]:
        """An argument, and the wires that it stands for."""
        if takes[0] == "s":
            text = self.random.choice(("2", "-0.5", "half"))
            self.wiring.append(" | ".join([*"I" * len(self.bus), text]))
            self.bus.append(self.temporary())
            self.bound[self.bus[-1]] = text
            return text, self.bus[-1:]
        if depth and self.random.random() < 0.3:
            return self.application(depth - 1, len(takes) - len(takes.lstrip("a")))
        name = self.random.choice(self.unread or self.names)
        self.unread = [other for other in self.unread if other != name]
        return name, [name]

    def temporary(self) -> str:
        """A wire without a name."""
        self.temporaries += 1
        return f"#{self.temporaries}"

    def route(self, wires: list[str]) -> None:
        """Bring wires to the front, in order; those with names are copied and stay on the bus as well."""
        for target, wire in enumerate(wires):
            at = self.bus.index(wire, target)
            if not wire.startswith("#"):
                self.place(at, "(I & I)")
                self.bus.insert(at, wire)
            for left in range(at - 1, target - 1, -1):
                self.place(left, "~(I | I)", 2)
                self.bus[left], self.bus[left + 1] = self.bus[left + 1], self.bus[left]

    def place(self, at: int, component: str, takes: int = 1) -> None:
        """Hand all wires on, some of them through a component."""
        parts = [*"I" * at, component, *"I" * (len(self.bus) - at - takes)]
        self.wiring.append(" | ".join(parts))

    def finish(self) -> tuple[str, str, int]:
        """The program over names, its wired twin, and how many outputs the first has."""
        texts, wires = list(self.unread), list(self.unread)
        if not texts or self.random.random() < 0.3:
            text, values = self.application(1)
            texts.append(text)
            wires += values
        self.results = list(wires)
        self.route(wires)
        lines = "".join(f"  {line}\n" for line in (*self.lines, ", ".join(texts)))
        wired = " >> ".join(f"({part})" for part in self.wiring)
        return f"{self.head} = {{\n{lines}}}\n", f"{self.head} = {wired}\n", len(wires)


def drawn(random: Random) -> tuple[Twins, tuple[str, str, int]]:
    """A random definition `f` over names, and what ``twins`` tells of it."""
    program = Twins(random, random.randint(1, 3))
    for _ in range(random.randint(0, 5)):
        program.statement()
    return program, program.finish()


def twins(random: Random) -> tuple[str, str, int]:
    """A random definition `f` over names, its wiring, and how many outputs the first has; see ``DEFINITIONS``."""
    return drawn(random)[1]
