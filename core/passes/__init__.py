"""How the data moves: one step of the pipeline a file."""
