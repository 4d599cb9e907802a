"""The command of nvcc on this machine: ``python -m ilang.nvcc``, which Makefiles of CUDA projects ask."""

import shlex
import sys

from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.device.gpu import CUDA, WHEELS
from ilang.core.diagnostic import ToolError
from ilang.core.record import replace

INSTALL = "pip install 'ilang[nvcc]', or install NVIDIA's CUDA toolkit"


def main() -> int:
    """Print the command as a shell reads it, with the folder of its libraries; without nvcc the exit status is 3.

    The command is the one that ``$NVCC`` names, else the one on the path, else that of NVIDIA's packages for Python.
    """
    language = replace(CUDA, packages=(WHEELS,), install=INSTALL)
    try:
        command = find_compiler(language).command
    except ToolError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    sys.stdout.write(f"{shlex.join(command)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
