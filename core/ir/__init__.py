"""What the data is: one landing of the staircase a file, with its invariants."""
