"""Benchmarks: our programs beside other array systems, in one run, and how close each comes to the machine's limit."""
