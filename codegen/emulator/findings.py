"""Records of a run on the emulator: mistakes that it found, and the cost that memory accesses would have on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from ilang.core.record import record

Index = tuple[int, int, int]


@record
class Finding:
    """Something wrong.

    Fields:
        kind: what, in the words of ``docs/emulator.md``: "shared-memory race", "illegal read", ...
        file, line: of the text; "" and 0 where they are not known.
        kernel: "" for host code.
        block, thread: which; None where no single one is to blame.
        text: what happened there.
    """

    kind: str
    file: str
    line: int
    kernel: str
    block: Index | None
    thread: Index | None
    text: str

    def says(self) -> str:
        """The finding as one line."""
        at = f" at {self.file}:{self.line}" if self.line else ""
        block = f", block {self.block}" if self.block else ""
        thread = f", thread {self.thread}" if self.thread else ""
        place = f" [{self.kernel}{block}{thread}]" if self.kernel else " [host code]"
        return f"{self.kind}{at}: {self.text}{place}"


@record
class Traffic:
    """The cost of the accesses of one line to one kind of memory.

    Fields:
        file, line: of the text.
        space: "global" or "shared".
        access: "read" or "write".
        requests: of warps.
        lanes: that took part, over all requests.
        bytes: that they asked for.
        cost: 32-byte sectors of global memory, cycles of the banks of shared memory.
        ideal: the least that so many bytes could cost.
    """

    file: str
    line: int
    space: str
    access: str
    requests: int
    lanes: int
    bytes: int
    cost: int
    ideal: int

    def ratio(self) -> float:
        """The cost of the accesses as a multiple of the least."""
        return self.cost / self.ideal


def read_findings(text: str) -> Iterator[Finding]:
    """Findings as the runtime writes them: a line each, fields between tabs; a lone number counts those left out."""
    for line in text.splitlines():
        kind, *rest = line.split("\t")
        if not rest:
            yield Finding("more", "", 0, "", None, None, f"{kind} further findings were not kept")
            continue
        file, number, kernel, *indices, message = rest
        block, thread = _index(indices[:3]), _index(indices[3:])
        yield Finding(kind, file, int(number or 0), kernel, block, thread, message)


def _index(fields: list[str]) -> Index | None:
    x, y, z = fields
    return (int(x), int(y), int(z)) if x else None


def read_traffic(text: str) -> Iterator[Traffic]:
    """A profile as the runtime writes it: a line each, fields between tabs."""
    for line in text.splitlines():
        file, number, space, access, *counts = line.split("\t")
        requests, lanes, count, cost, ideal = map(int, counts)
        yield Traffic(file, int(number), space, access, requests, lanes, count, cost, ideal)
