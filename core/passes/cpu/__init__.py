"""Passes that only a CPU has: what a kernel becomes for caches, vector registers and threads."""
