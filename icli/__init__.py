"""The only layer that prints, reads files and exits."""
