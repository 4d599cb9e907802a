"""CUDA on a CPU: emitted .cu files run unmodified, on any machine with g++, and their mistakes are found.

``translate`` rewrites three constructs of CUDA C++ to C++; ``recipes`` compiles the result against the headers in
``include/``, which stand in for CUDA's; ``runtime`` loads the runtime of ``cpp/``, one for all programs of a process,
and ``program`` runs what was compiled. ``nvcc`` takes nvcc's command line, so that Makefiles build for the CPU.
"""
