"""The public face of `i`, a compiler for tensor index expressions."""

__version__ = "0.1.0"
