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

.PHONY: all test check example install uninstall clean FORCE

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

test check: STEM_test
	./STEM_test

example: STEM_example
	./STEM_example

install: all
	mkdir -p "$(DESTDIR)$(PREFIX)/include" "$(DESTDIR)$(PREFIX)/lib/pkgconfig"
	cp STEM.h "$(DESTDIR)$(PREFIX)/include/"
	cp libSTEM.a libSTEM.so "$(DESTDIR)$(PREFIX)/lib/"
	sed -e 's/-lm$$/-lm $(OPENMP_$(OPENMP))/' STEM.pc >"$(DESTDIR)$(PREFIX)/lib/pkgconfig/STEM.pc"

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/include/STEM.h" "$(DESTDIR)$(PREFIX)/lib/pkgconfig/STEM.pc"
	rm -f "$(DESTDIR)$(PREFIX)/lib/libSTEM.a" "$(DESTDIR)$(PREFIX)/lib/libSTEM.so"

clean:
	rm -f STEM.flags STEM.o STEM_v3.o STEM_v4.o libSTEM.a libSTEM.so STEM_test STEM_example
