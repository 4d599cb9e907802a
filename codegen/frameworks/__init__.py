"""Calls with the arrays of other libraries."""
