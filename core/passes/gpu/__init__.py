"""Passes that only a GPU has: what a kernel becomes for grids, blocks and threads."""
