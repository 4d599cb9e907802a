"""Text to syntax and back, one notation a folder."""
