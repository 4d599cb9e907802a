"""Results as tables: plain text for a terminal, Markdown for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.calls import SYSTEMS
from bench.measure import OURS

ANCHORS, SUITES = "bench", "suites"
"""What is between the lines of these marks of a page is rewritten."""

KINDS = {"workloads": "workload", "steps": "step of training"}
"""What is timed in rounds: the key of its results, and the heading of its names."""

Table = tuple[list[str], list[list[str]]]
"""Heading and rows."""


def text(results: Mapping[str, Any]) -> str:
    """Everything for a terminal."""
    parts = [f"{what}: {says}" for what, says in results["machine"].items()]
    for threads, run in results["threads"].items():
        parts += ["", *_introduction(threads, run)]
        parts += [_plain(_speed(run, kind)) for kind in _kinds(run)]
        parts += _left_out(run)
    if results.get("latency"):
        parts += ["", _plain(_latency(results["latency"]))]
    for table in _calls(results.get("calls")):
        parts += ["", _plain(table)]
    return "\n".join(parts)


def markdown(results: Mapping[str, Any]) -> str:
    """Everything for a page."""
    parts = ["| what | |", "|---|---|"]
    parts += [f"| {what} | {says} |" for what, says in results["machine"].items()]
    for threads, run in results["threads"].items():
        title = f"### {threads_of(threads)}"
        parts += ["", title, "", *_introduction(threads, run)]
        for kind in _kinds(run):
            parts += ["", marked(_speed(run, kind))]
        parts += ["", *_left_out(run)] if _left_out(run) else []
    if results.get("latency"):
        parts += ["", "### Latency", "", marked(_latency(results["latency"]))]
    for number, table in enumerate(_calls(results.get("calls"))):
        parts += ["", *([] if number else ["### Calls of small arrays", ""]), marked(table)]
    return "\n".join(parts)


def rewrite(page: Path, mark: str, tables: str) -> None:
    """Put tables between the lines of a mark of a page. Raises ValueError where it has none."""
    first, last = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, begin, rest = page.read_text("utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"{page.name} lacks a line {first} or {last}")
    page.write_text(f"{before}{first}\n\n{tables}\n\n{last}{after}", "utf-8")


def threads_of(count: str) -> str:
    """A number of threads in words."""
    return f"{count} thread" if count == "1" else f"{count} threads"


def _introduction(threads: str, run: Mapping[str, Any]) -> list[str]:
    rates = ", ".join(f"{rate:.0f} {name}" for name, rate in run["limits"].items())
    versions = ", ".join(f"{name} {version}" for name, version in run["peers"].items())
    limits = f"; the machine: {rates}" if rates else ""
    return [f"{threads_of(threads)}; peers: {versions}{limits}."]


def _left_out(run: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} is left out of {workload}: {why}."
        for kind in _kinds(run)
        for workload, row in run[kind].items()
        for name, why in row["wrong"].items()
    ]


def _kinds(run: Mapping[str, Any]) -> list[str]:
    """What was timed: workloads, steps of training."""
    return [kind for kind in KINDS if run.get(kind)]


def best_peer(row: Mapping[str, Any]) -> str | None:
    """The peer with the least time, if there is any."""
    peers = {name: taken["min"] for name, taken in row["times"].items() if name != OURS}
    return min(peers, key=lambda name: peers[name]) if peers else None


def _speed(run: Mapping[str, Any], kind: str) -> Table:
    """A row for each of a kind: our time, against the best peer (least and median times), the limit, and every peer."""
    peers = [
        name for name in run["peers"] if any(name in row["times"] for row in run[kind].values())
    ]
    limited = any("limit" in row for row in run[kind].values())
    limit = ["of limit"] if limited else []
    heading = [KINDS[kind], "ours, ms", "spread", *limit, "best peer", "ours / best", "medians"]
    heading += [f"{name}, ms" for name in peers]
    rows = []
    for name, row in run[kind].items():
        times, best = row["times"], best_peer(row)
        timing = times.get(OURS)
        own, beside = [""] * (2 + limited), [""] * 3
        if timing is not None:
            own = [_milliseconds(timing["min"]), f"{timing['spread']:.0%}"]
            own += [f"{row['limit'] / timing['min']:.0%}"] if limited else []
        if timing is not None and best is not None:
            beside = [best, *(f"{timing[k] / times[best][k]:.2f}" for k in ("min", "median"))]
        theirs = [_milliseconds(times[p]["min"]) if p in times else "" for p in peers]
        rows.append([name, *own, *beside, *theirs])
    return heading, rows


def _latency(latency: Mapping[str, Mapping[str, float]]) -> Table:
    rows = [
        [name, _duration(taken["min"]), _duration(taken["median"]), f"{taken['spread']:.0%}"]
        for name, taken in latency.items()
    ]
    return ["latency", "least", "median", "spread"], rows


def _calls(calls: Mapping[str, Any] | None) -> list[Table]:
    """Microseconds of warm calls and of first ones, and errors of results, by system."""
    if not calls:
        return []
    versions = calls["systems"]
    systems = [name for name in SYSTEMS if name == OURS or name in versions]
    named = [f"{name} {versions[name]}" if name in versions else "ours" for name in systems]
    tables = []
    kinds: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        ("warm", "warm call, µs", lambda seconds: f"{seconds * 1e6:.1f}"),
        ("first", "first call, µs", lambda seconds: f"{seconds * 1e6:.1f}"),
        ("error", "largest error, ulp", lambda ulp: f"{ulp:.2g}"),
    )
    for kind, heading, shown in kinds:
        rows = [
            [what, *(shown(taken[name]) if name in taken else "" for name in systems)]
            for what, taken in calls[kind].items()
        ]
        tables.append(([heading, *named], rows))
    return tables


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}" if seconds < 0.1 else f"{seconds * 1e3:.0f}"


def _duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.2f} µs"
    return f"{seconds * 1e3:.1f} ms"


def _plain(table: Table) -> str:
    heading, rows = table
    widths = [max(len(line[n]) for line in (heading, *rows)) for n in range(len(heading))]

    def line(cells: Sequence[str]) -> str:
        first, *rest = zip(cells, widths, strict=True)
        return "  ".join((first[0].ljust(first[1]), *(c.rjust(w) for c, w in rest))).rstrip()

    return "\n".join(map(line, (heading, *rows)))


def marked(table: Table) -> str:
    """A table of a page."""
    heading, rows = table
    divider = ["---", *["---:"] * (len(heading) - 1)]
    return "\n".join(
        [f"| {' | '.join(heading)} |", f"|{'|'.join(divider)}|"]
        + [f"| {' | '.join(row)} |" for row in rows]
    )
