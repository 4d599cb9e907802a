"""Matrices that kernels compute again, block by block, so that none is stored."""
