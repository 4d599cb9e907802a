"""Programs made of programs: typed graphs to typed graphs."""
