"""What `i build` writes: a project of C files, and its self-test."""
