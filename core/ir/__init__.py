"""What the data is: one IR of the pipeline a file, with its invariants."""
