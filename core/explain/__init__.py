"""Explanations of a program, as data and as text."""
