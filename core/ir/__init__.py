"""The data of the compiler: one IR of the pipeline a file, with its invariants."""
