"""Rows and dimensions solved from constraints, projections derived from them."""
