"""Kernels to text (`targets`), to projects (`project`), to running code (`runtime`)."""
