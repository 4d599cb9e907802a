"""The language: text down to kernels, with no printing, no files and no target."""
