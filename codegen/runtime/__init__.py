"""Text to running code: components, their calls, and the compiled libraries behind these."""
