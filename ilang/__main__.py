"""Run the command line: `python -m ilang` is `i`."""

from ilang.icli.main import main

if __name__ == "__main__":
    main()
