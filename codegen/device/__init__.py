"""Devices of CUDA, and programs that run on them."""
