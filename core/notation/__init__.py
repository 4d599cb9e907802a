"""Text to graph, one notation a file."""
