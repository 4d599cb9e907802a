"""Files of definitions."""
