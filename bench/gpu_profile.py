"""One call of a row of ``bench/gpu_rows.py`` for Nsight Compute, and what to read off its report.

python -m bench.gpu_profile cuda "matmul 4096, known"
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence

from bench import gpu_times

BEGINS = (
    "matmul 4096, known",
    "matmul 4096, written",
    "matmul 4096, bf16",
    "attention",
    "softmax",
    "conv",
)
"""How names of rows begin of which the first one is looked at."""
QUICK = ("matmul", "softmax")
SECTIONS = ("WarpStateStats", "SourceCounters", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis")
KERNELS = r"regex:_k\d+"
"""Kernels of ours."""
SAID = {
    "gpu__time_duration.sum": "duration",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "issue slots %",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps %",
    "launch__registers_per_thread": "registers",
    "lts__t_sector_hit_rate.pct": "L2 hits %",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "memory %",
}
"""Metrics of sections in words; there may be others in other versions."""
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio")
MOST_STALLS = 3


def command(program: str) -> list[str]:
    """The words before a command whose first kernel of ours is looked at."""
    sections = [word for section in SECTIONS for word in ("--section", section)]
    chosen = ["--set", "basic", *sections, "--kernel-name", KERNELS, "--launch-count", "1"]
    return [program, "--clock-control", "none", *chosen, "--csv", "--page", "raw"]


def names(target: str) -> Iterator[str]:
    """The rows that are looked at."""
    rows = [row.workload.name for row in gpu_times.rows_of(target)]
    for begin in BEGINS if target == "cuda" else QUICK:
        yield from [name for name in rows if name.startswith(begin)][:1]


def found(said: str) -> Iterator[str]:
    """What a report in CSV has to say of each kernel: metrics, and the reasons for which warps waited most."""
    lines = said.splitlines()
    first = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    units, *kernels = [*csv.DictReader(lines[first:])] or [{}]
    for kernel in kernels:
        words = [kernel.get("Kernel Name", "?").split("(")[0]]
        words += [
            f"{name} {kernel[metric]} {units[metric]}".removesuffix(" %").strip()
            for metric, name in SAID.items()
            if kernel.get(metric)
        ]
        stalls = {
            at[1]: _number(text) for key, text in kernel.items() if (at := STALL.fullmatch(key))
        }
        most = sorted(stalls, key=lambda reason: -stalls[reason])[:MOST_STALLS]
        words += [f"waits for {reason} {stalls[reason]:.2f}" for reason in most]
        yield ", ".join(words)


def _number(text: str) -> float:
    """A number of a report, which has commas between thousands."""
    return float(text.replace(",", "") or 0)


def main(arguments: Sequence[str]) -> None:
    """Call the row of a name once."""
    target, name = arguments
    (row,) = (row for row in gpu_times.rows_of(target) if row.workload.name == name)
    gpu_times.call_once(row, target)
    print(f"{name} was called once")


if __name__ == "__main__":
    main(sys.argv[1:])
