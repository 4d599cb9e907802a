"""Specifications of einsum."""
