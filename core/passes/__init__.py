"""The steps of the pipeline, one a file."""
