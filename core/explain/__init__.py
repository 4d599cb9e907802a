"""What is told of a program, as data and as text."""
