"""Run the command line: `python -m ilang` is `i`."""

import sys


def run() -> int:
    """Run the command of this process and return its status; Ctrl-C ends it also while its modules are imported."""
    try:
        from ilang.icli.main import main

        return main()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(run())
