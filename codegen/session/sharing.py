"""Parameters of two sessions that are one: their paths are equal after one common prefix of either."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.diagnostic import DataError


def matched(
    wanted: Sequence[str], given: Sequence[str], source: str = "the other session"
) -> dict[str, str]:
    """The path of each wanted tensor among those given by a source.

    ``layer.w`` of one session may be ``mlp.layer.w`` of the other: one prefix, the same for all of them, may stand
    before the paths of either.

    Raises:
        DataError: E0760 (some have no counterpart).
    """
    known = set(given)
    if all(path in known for path in wanted):
        return {path: path for path in wanted}
    best: dict[str, str] = {}
    for prefix in sorted(_prefixes(given)):
        paths = {path: f"{prefix}.{path}" for path in wanted if f"{prefix}.{path}" in known}
        best = max(best, paths, key=len)
    for prefix in sorted(_prefixes(wanted)):
        start = f"{prefix}."
        paths = {
            path: path.removeprefix(start)
            for path in wanted
            if path.startswith(start) and path.removeprefix(start) in known
        }
        best = max(best, paths, key=len)
    missing = [path for path in wanted if path not in best]
    if missing:
        message = f"{source} has no {missing[0]}"
        raise DataError("E0760", message, help=f"it has {', '.join(given) or 'none'}")
    return best


def _prefixes(paths: Sequence[str]) -> set[str]:
    """Everything before a dot in some path."""
    return {".".join(path.split(".")[:n]) for path in paths for n in range(1, path.count(".") + 1)}
