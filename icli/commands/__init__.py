"""The commands of `i`, one a file."""
