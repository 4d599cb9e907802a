"""Union-find over consecutive integers, such as dimensions: which of them the program forces to be equal."""

from __future__ import annotations


class UnionFind:
    """Disjoint sets of 0..n-1; the smallest member stands for its set, so answers do not depend on order."""

    def __init__(self, count: int) -> None:
        """Start with ``count`` sets of one member."""
        self.parent = list(range(count))

    def find(self, member: int) -> int:
        """The smallest member of the set that ``member`` is in."""
        root = member
        while self.parent[root] != root:
            root = self.parent[root]
        while self.parent[member] != root:
            self.parent[member], member = root, self.parent[member]
        return root

    def union(self, one: int, other: int) -> None:
        """Make two sets one."""
        a, b = self.find(one), self.find(other)
        self.parent[max(a, b)] = min(a, b)

    def add(self) -> int:
        """The number of a new member, in a set of its own."""
        self.parent.append(len(self.parent))
        return len(self.parent) - 1

    def copied(self) -> UnionFind:
        """The same sets, apart from these."""
        other = UnionFind(0)
        other.parent = list(self.parent)
        return other
