"""The output of `i build`: a project of C files, and its self-test."""
