"""One target a file: kernels to C and to CUDA."""
