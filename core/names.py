"""Fresh names: the same requests in the same order give the same names, in constant time each."""

from __future__ import annotations

from collections.abc import Container

LETTERS = "ijklmnopqrstuvwxyzabcdefgh"
"""The letters of axes that nothing names, in order."""


class Names:
    """Names given out so far."""

    def __init__(self, reserved: Container[str] = ()) -> None:
        """Start with names that are never given."""
        self.reserved = reserved
        self.given: set[str] = set()
        self.serial: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        """``name`` where it is new, else ``name2``, ``name3``, ..."""
        candidate = name
        while candidate in self.given or candidate in self.reserved:
            number = self.serial.get(name, 1) + 1
            self.serial[name] = number
            candidate = f"{name}{number}"
        self.given.add(candidate)
        return candidate
