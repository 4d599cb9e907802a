"""From kernels to the programs around them."""
