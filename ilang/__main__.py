"""Run the command line: `python -m ilang` is `i`."""

import sys

from ilang.icli.main import main

if __name__ == "__main__":
    sys.exit(main())
