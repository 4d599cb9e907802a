"""Notations to graphs, one file a notation."""
