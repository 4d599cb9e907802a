"""Tensor functions and routines: definitions of a file, and sessions that run them."""
