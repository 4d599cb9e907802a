"""The Makefile, the pkg-config file and, in C, the file for CMake of a project."""

from __future__ import annotations

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


def makefile(stem: str, switch: Switch) -> str:
    """The Makefile of a project in C."""
    flags = "\n".join(
        f"FLAGS_{variant} = {' '.join(f'-m{each}' for each in sets)}"
        for variant, sets in VARIANTS.items()
    )
    text = MAKEFILE.replace("VARIANT_FLAGS", flags)
    return switched(text, switch).replace("STEM", stem)


def switched(text: str, switch: Switch) -> str:
    """A Makefile with what it has for MPI, and with the record of its commands."""
    places = {
        "COMMANDS_RECORD": COMMANDS_RECORD,
        "MPI_TEXT": switch.says,
        "MPI_COMPILER": switch.compiler,
        "MPI_FLAG": switch.flags,
        "MPI_USE": switch.use,
        "MPI_LINK": switch.link,
    }
    for place, lines in places.items():
        text = text.replace(place, lines)
    return text


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

MAKEFILE = """\
# Makefile of libSTEM, written by `i build`.
#
#     make            libSTEM.a and libSTEM.so
#     make test       run every function on stored inputs, compare with stored results
#     make example    call the first function
#     make install    header, libraries and pkg-config file, below PREFIX (/usr/local)
#     make clean      remove what was made
#
# Switches, for any of them:
#
#     OPENMP=1        use several cores; the compiler must know -fopenmp
MPI_TEXT#     NATIVE=1        use every instruction of this machine; the library may then not run on another
#     PORTABLE=1      leave out the variants for newer processors, and compile in a third of the time
#
# CC, CPPFLAGS, CFLAGS, LDFLAGS, LDLIBS, AR, PREFIX and DESTDIR mean what they always do, and may come from the command
# line or the environment. What was compiled with others is compiled again; STEM.flags has those of the last time.

CFLAGS ?= -O3
PREFIX ?= /usr/local
MPI_COMPILER
# Any C from C99 on will do. A product and a sum are rounded one after the other (no contraction), but where the text
# itself says otherwise. Nothing reads errno or exception flags; said so, more loops become vector code. CFLAGS comes
# later and wins, but -ffast-math is refused.
OPENMP_1 = -fopenmp
NATIVE_1 = -march=native
MPI_FLAGEXACT = -ffp-contract=off -fno-math-errno -fno-trapping-math
FLAGS = -std=gnu11 $(EXACT) $(OPENMP_$(OPENMP)) $(NATIVE_$(NATIVE))MPI_USE $(CPPFLAGS) $(CFLAGS)
COMMANDS = $(CC) $(FLAGS) $(VARIANTS); $(LDFLAGS); $(LDLIBS); $(AR)

# Functions are compiled for newer x86-64 processors as well, and each call takes the newest variant that the processor
# can run: v3 has AVX2, v4 AVX-512. They are left out where the compiler has no words for them.
VARIANT_FLAGS
VARIANTS =
ifeq ($(filter 1,$(PORTABLE) $(NATIVE)),)
PROBE = int main(void) { return __builtin_cpu_supports("avx512vl"); }
PROBED = $(CC) $(FLAGS) $(FLAGS_v4) $(LDFLAGS) -x c - -o STEM.probe
VARIANTS := $(shell echo '$(PROBE)' | $(PROBED) 2>/dev/null && rm -f STEM.probe && echo v3 v4)
endif
OBJECTS = STEM.o $(VARIANTS:%=STEM_%.o)

.PHONY: all test example install clean FORCE

all: libSTEM.a libSTEM.so

COMMANDS_RECORD
STEM.o: STEM.c STEM_support.h STEM.h STEM.flags
	$(CC) $(FLAGS) $(VARIANTS:%=-DIL_WITH_%) -fPIC -c STEM.c -o $@

STEM_v%.o: STEM.c STEM_support.h STEM.h STEM.flags
	$(CC) $(FLAGS) $(FLAGS_v$*) -DIL_VARIANT=v$* -fPIC -c STEM.c -o $@

libSTEM.a: $(OBJECTS)
	rm -f $@
	$(AR) rcs $@ $(OBJECTS)

libSTEM.so: $(OBJECTS)
	$(CC) $(FLAGS) $(LDFLAGS) -shared $(OBJECTS) -o $@ $(LDLIBS) -lm

STEM_test: STEM_test.c STEM.h libSTEM.a
	$(CC) $(FLAGS) $(LDFLAGS) STEM_test.c libSTEM.a -o $@ $(LDLIBS) -lm

STEM_example: STEM_example.c STEM.h libSTEM.a
	$(CC) $(FLAGS) $(LDFLAGS) STEM_example.c libSTEM.a -o $@ $(LDLIBS) -lm

test: STEM_test
	./STEM_test

example: STEM_example
	./STEM_example

install: all
	mkdir -p "$(DESTDIR)$(PREFIX)/include" "$(DESTDIR)$(PREFIX)/lib/pkgconfig"
	cp STEM.h "$(DESTDIR)$(PREFIX)/include/"
	cp libSTEM.a libSTEM.so "$(DESTDIR)$(PREFIX)/lib/"
	sed -e 's/-lm$$/-lm $(OPENMP_$(OPENMP))/' STEM.pc >"$(DESTDIR)$(PREFIX)/lib/pkgconfig/STEM.pc"

clean:
	rm -f STEM.flags STEM.o STEM_v3.o STEM_v4.o libSTEM.a libSTEM.so STEM_test STEM_example
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
    flags = "\n".join(
        f"set(FLAGS_{variant} {' '.join(f'-m{each}' for each in sets)})"
        for variant, sets in VARIANTS.items()
    )
    text = CMAKE.replace("VARIANT_FLAGS", flags)
    text = text.replace("MPI_OPTION", MPI_OPTION if of_ranks else "")
    return text.replace("MPI_LINK", MPI_LINK if of_ranks else "").replace("STEM", stem)


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

CMAKE = """\
# CMake's file of libSTEM, written by `i build`.
#
#     cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build && ctest --test-dir build
#
# A project that has this folder inside says add_subdirectory(folder) and target_link_libraries(program STEM).

cmake_minimum_required(VERSION 3.16)
project(STEM C)

option(OPENMP "Use several cores" OFF)
option(NATIVE "Use every instruction of this machine; the library may then not run on another" OFF)
option(PORTABLE "Leave out the variants for newer processors" OFF)
option(BUILD_SHARED_LIBS "Build libSTEM.so, and not libSTEM.a" OFF)
MPI_OPTION
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_C_STANDARD 11)

# A product and a sum are rounded one after the other, as in the Makefile, which says why.
set(EXACT -ffp-contract=off -fno-math-errno -fno-trapping-math)
VARIANT_FLAGS

include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_FLAGS "${FLAGS_v4}")
string(REPLACE ";" " " CMAKE_REQUIRED_FLAGS "${CMAKE_REQUIRED_FLAGS}")
check_c_source_compiles("int main(void) { return __builtin_cpu_supports(\\"avx512vl\\"); }" STEM_HAS_VARIANTS)
unset(CMAKE_REQUIRED_FLAGS)

add_library(STEM STEM.c)
target_compile_options(STEM PRIVATE ${EXACT})
target_include_directories(STEM PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
set_target_properties(STEM PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(STEM PUBLIC m)
if(NATIVE)
  target_compile_options(STEM PRIVATE -march=native)
elseif(STEM_HAS_VARIANTS AND NOT PORTABLE)
  foreach(variant v3 v4)
    add_library(STEM_${variant} OBJECT STEM.c)
    target_compile_options(STEM_${variant} PRIVATE ${EXACT} ${FLAGS_${variant}})
    target_compile_definitions(STEM_${variant} PRIVATE IL_VARIANT=${variant})
    set_target_properties(STEM_${variant} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_definitions(STEM PRIVATE IL_WITH_${variant})
    target_sources(STEM PRIVATE $<TARGET_OBJECTS:STEM_${variant}>)
  endforeach()
endif()
if(OPENMP)
  find_package(OpenMP REQUIRED COMPONENTS C)
  target_link_libraries(STEM PUBLIC OpenMP::OpenMP_C)
  if(TARGET STEM_v3)
    target_link_libraries(STEM_v3 PRIVATE OpenMP::OpenMP_C)
    target_link_libraries(STEM_v4 PRIVATE OpenMP::OpenMP_C)
  endif()
endif()
MPI_LINK
enable_testing()
add_executable(STEM_test EXCLUDE_FROM_ALL STEM_test.c)
target_link_libraries(STEM_test STEM)
add_executable(STEM_example EXCLUDE_FROM_ALL STEM_example.c)
target_link_libraries(STEM_example STEM)
add_test(NAME STEM_build COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target STEM_test)
add_test(NAME STEM_test COMMAND STEM_test)
set_tests_properties(STEM_build PROPERTIES FIXTURES_SETUP STEM_built)
set_tests_properties(STEM_test PROPERTIES FIXTURES_REQUIRED STEM_built)

include(GNUInstallDirs)
install(TARGETS STEM LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES STEM.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
file(READ STEM.pc package)
string(REPLACE "-lm\n" "-lm ${OpenMP_C_FLAGS}\n" package "${package}")
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/STEM.pc" "${package}")
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/STEM.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
"""
