"""The file for CMake of a project in C."""

from __future__ import annotations

from ilang.codegen.targets.c_variants import VARIANTS


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
