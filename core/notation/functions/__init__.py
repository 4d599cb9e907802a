"""Tensor functions and routines."""
