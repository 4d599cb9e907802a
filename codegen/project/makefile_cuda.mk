# Makefile of libSTEM, written by `i build`.
#
#     make            libSTEM.a and libSTEM.so
#     make test       run every function on stored inputs, compare with stored results: needs a GPU; without one,
#                     STEM_test says so, and its exit status is 77
#     make bench      time every function: needs a GPU
#     make example    call the first function
#     make compile    compile for each of ARCHS, which needs no GPU; what registers cannot hold is told
#     make install    header, libraries and pkg-config file, below PREFIX (/usr/local)
#     make clean      remove what was made
MPI_TEXT#
# NVCC, PYTHON, ARCH, ARCHS, NVCCFLAGS, CC, CFLAGS, AR, PREFIX and DESTDIR may come from the command line or the
# environment: make ARCH=sm_90, say, where the machine that compiles has no GPU. What was compiled with others is
# compiled again; STEM.flags has those of the last time.

# nvcc is that on the path, else that of `pip install 'ilang[nvcc]'`, which PYTHON is asked for.
PYTHON ?= python3
ifeq ($(origin NVCC),undefined)
NVCC := $(or $(shell command -v nvcc || $(PYTHON) -m ilang.nvcc),nvcc)
endif
ARCH ?= native
ARCHS ?= DEVICES
NVCCFLAGS ?= -O3
CFLAGS ?= -O2
PREFIX ?= /usr/local
MPI_COMPILER
# A product and a sum are rounded one after the other (--fmad=false), but where the text itself says otherwise: results
# are then those of C. NVCCFLAGS comes later and wins.
MPI_FLAGFLAGS = -std=c++17 --fmad=falseMPI_USE $(NVCCFLAGS)
DEVICE = -arch=$(ARCH) -Xcompiler -fPIC
TOLD = -Xptxas -warn-spills
COMMANDS = $(NVCC) $(FLAGS) $(DEVICE);MPI_LINK; $(CC) $(CFLAGS); $(AR)

.PHONY: all test check bench example compile install uninstall clean FORCE

all: libSTEM.a libSTEM.so

COMMANDS_RECORD
STEM.o: STEM.cu STEM.h STEM.flags
	$(NVCC) $(FLAGS) $(DEVICE) -c STEM.cu -o $@

libSTEM.a: STEM.o
	rm -f $@
	$(AR) rcs $@ STEM.o

libSTEM.so: STEM.o
	$(NVCC) $(FLAGS) $(DEVICE) --shared STEM.o -o $@MPI_LINK

STEM_test.o: STEM_test.c STEM.h STEM.flags
	$(CC) -std=gnu11 $(CFLAGS) -c STEM_test.c -o $@

STEM_test: STEM_test.o libSTEM.a
	$(NVCC) $(FLAGS) $(DEVICE) STEM_test.o libSTEM.a -o $@MPI_LINK

STEM_bench: STEM_bench.cu STEM.h libSTEM.a
	$(NVCC) $(FLAGS) $(DEVICE) STEM_bench.cu libSTEM.a -o $@MPI_LINK

EXAMPLE

test check: STEM_test
	./STEM_test

bench: STEM_bench
	./STEM_bench

example: STEM_example
	./STEM_example

compile:
	set -e; for arch in $(ARCHS); do $(NVCC) $(FLAGS) -arch=$$arch $(TOLD) -c STEM.cu -o STEM.$$arch.o; done

install: all
	mkdir -p "$(DESTDIR)$(PREFIX)/include" "$(DESTDIR)$(PREFIX)/lib/pkgconfig"
	cp STEM.h "$(DESTDIR)$(PREFIX)/include/"
	cp libSTEM.a libSTEM.so "$(DESTDIR)$(PREFIX)/lib/"
	cp STEM.pc "$(DESTDIR)$(PREFIX)/lib/pkgconfig/"

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/include/STEM.h" "$(DESTDIR)$(PREFIX)/lib/pkgconfig/STEM.pc"
	rm -f "$(DESTDIR)$(PREFIX)/lib/libSTEM.a" "$(DESTDIR)$(PREFIX)/lib/libSTEM.so"

clean:
	rm -f STEM.flags STEM.o STEM.sm_*.o libSTEM.a libSTEM.so
	rm -f STEM_test.o STEM_test STEM_bench STEM_example.o STEM_example
