"""Kernels to text, and text to running code."""
