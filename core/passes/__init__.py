"""How the data moves: one step of the staircase a file."""
