"""Typed graphs to typed graphs: the same results, computed otherwise."""
