"""Integer expressions and conditions: what indices, loop bounds, guards and sizes are made of, in every IR."""
