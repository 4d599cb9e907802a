"""Files, folders, threads, signals: what is asked of the operating system."""
