"""Calls of a program: its arguments, the compiled function, the plan of a call."""
