"""The Makefile, the pkg-config file and, in C, the file for CMake of a project."""

from __future__ import annotations

from ilang.codegen.project.parts import fixed_text
from ilang.codegen.targets.c_variants import VARIANTS
from ilang.core.record import record


@record
class Switch:
    """The parts of a Makefile for MPI: lines that tell of it, the choice of a compiler, flags, their use; libraries."""

    says: str
    compiler: str
    flags: str
    use: str
    link: str = ""


MPI = Switch(
    "#     MPI=1           several ranks, which mpirun starts; the compiler is mpicc, or MPICC\n",
    "MPICC ?= mpicc\nifeq ($(MPI),1)\nCC = $(MPICC)\nendif\n",
    "MPI_1 = -DWITH_MPI\n",
    " $(MPI_$(MPI))",
)
"""For what several ranks may run."""
ALONE = Switch(
    "",
    "",
    "MPI_1 = $(error nothing in STEM is summed over ranks: p.grad =+ p.grad.merge)\n",
    " $(MPI_$(MPI))",
)
"""For sessions that ranks would run each for itself."""
MPI_AND_NCCL = Switch(
    "#\n"
    "# Several ranks, which mpirun starts, for any of them:\n"
    "#\n"
    "#     NCCL=1          sums go from device to device; MPI starts NCCL, and the host compiler is mpicxx, or MPICXX\n"
    "#     MPI=1           sums go through the host\n",
    "MPICXX ?= mpicxx\n",
    "MPI_1 = -DWITH_MPI -ccbin $(MPICXX)\n"
    "NCCL_1 = -DWITH_MPI -DWITH_NCCL -ccbin $(MPICXX)\n"
    "LDLIBS_1 = -lnccl\n",
    " $(if $(NCCL_$(NCCL)),$(NCCL_$(NCCL)),$(MPI_$(MPI)))",
    " $(LDLIBS_$(NCCL))",
)
"""The same on devices."""
ALONE_ON_DEVICE = Switch(
    "", "", f"{ALONE.flags}NCCL_1 = $(MPI_1)\n", " $(MPI_$(MPI))$(NCCL_$(NCCL))"
)
NOTHING = Switch("", "", "", "")
"""For functions."""


def makefile(file: str, stem: str, switch: Switch, **words: str) -> str:
    """The Makefile in a file of fixed text, with what it has for MPI, and with the record of its commands."""
    return fixed_text(
        file,
        **words,
        COMMANDS_RECORD=COMMANDS_RECORD,
        MPI_TEXT=switch.says,
        MPI_COMPILER=switch.compiler,
        MPI_FLAG=switch.flags,
        MPI_USE=switch.use,
        MPI_LINK=switch.link,
        STEM=stem,
    )


def flags_of_variants(line: str) -> str:
    """A line for each variant of the functions, in which its name and its flags stand."""
    return "\n".join(
        line.format(variant, " ".join(f"-m{each}" for each in sets))
        for variant, sets in VARIANTS.items()
    )


def package(stem: str, libraries: str = "-lm") -> str:
    """The pkg-config file of a project; ``libraries`` are what its own needs."""
    return PKG_CONFIG.replace("STEM", stem).replace("LIBRARIES", libraries)


COMMANDS_RECORD = """\
ifneq ($(MAKECMDGOALS),clean)
ifneq ($(shell cat STEM.flags 2>/dev/null),$(COMMANDS))
STEM.flags: FORCE
endif
endif

STEM.flags:
	@printf '%s\\n' '$(subst ','\\'',$(COMMANDS))' >$@
"""
"""The file that what is compiled depends on: it is written where compilers or flags are others than at the last time.

The Makefile compares while it is read, so that `make -n` and `make -q` are right, and nothing is written where all is
as it was.
"""

PKG_CONFIG = """\
libdir=${pcfiledir}/..
includedir=${libdir}/../include

Name: STEM
Description: Functions on arrays, written by `i build`
Version: 1
Cflags: -I${includedir}
Libs: -L${libdir} -lSTEM
Libs.private: LIBRARIES
"""


def cmake_lists(stem: str, of_ranks: bool = False) -> str:
    """The text of CMakeLists.txt, with an option for MPI where several ranks may run the sessions."""
    return fixed_text(
        "cmake_lists.txt",
        VARIANT_FLAGS=flags_of_variants("set(FLAGS_{} {})"),
        MPI_OPTION=MPI_OPTION if of_ranks else "",
        MPI_LINK=MPI_LINK if of_ranks else "",
        STEM=stem,
    )


MPI_OPTION = """\
option(MPI "Several ranks, which mpirun starts" OFF)
"""
MPI_LINK = """\
if(MPI)
  find_package(MPI REQUIRED COMPONENTS C)
  target_compile_definitions(STEM PRIVATE WITH_MPI)
  target_link_libraries(STEM PUBLIC MPI::MPI_C)
endif()
"""
