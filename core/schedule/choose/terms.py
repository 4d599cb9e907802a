"""The terms of f32 that are added one after the other, so that any sum stays within 1e-5 of the exact one."""

from __future__ import annotations

MOST_TERMS = 512
"""Terms that a tile of f32 sums at most, in runs of 128, before they are added in f64: the sum stays within 1e-5 of the
exact one, relative to the sum of sizes."""
RUN = 128
"""Terms of f32 that are added one after the other: 2^-17 of the sum of sizes at most.

A sum of n terms, one after the other, is off by up to n/2 units in the last place of the largest partial sum. A tile
takes up to ``MOST_TERMS``: in runs, whose sums are added, it stays within 1e-5 of the exact sum, relative to the sum of
sizes.
"""
RUNS = 32
"""Runs of f32 that are added in f32, one after the other, before their sum meets one of f64: 4,096 terms.

Each term is then in 128 + 32 sums at most, each off by 2^-24: 0.96e-5 of the sum of sizes, less than 1e-5.
"""
PART = 4 * RUN
"""Terms of a part that has several iterations of a loop, at least: its results are written and read once more."""
