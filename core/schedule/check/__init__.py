"""Whether schedules may be: as they are written, in their program, and of reductions that are read while they run."""
