# Everything a fresh machine needs to try, test and check this repository.
# Wanted: Python 3.11 or newer, with its venv module, and make. The rest goes into .venv.
#
#   make help            this list; so does a bare make
#   make demo            train two samples; build, test and time the digits sample
#   make test            the tests to run before each commit (JOBS=0 in one process)
#   make test-all        every test: those, then the deep ones (FUZZ=6 with six times the random programs)
#   make check           format, lint and types
#   make fuzz N=1000     random programs against the reference evaluator
#   make fuzz-notations N=10000   random programs of every notation, as C and as CUDA on the emulator
#   make fuzz-texts N=10000    random programs of every notation as texts of CUDA, which nothing compiles
#   make fuzz-tensors N=2000   random tensor functions and routines against what their text means
#   make einsum-tests    the tests that the installed NumPy and opt_einsum have for einsum, on ours
#   make matrix          every type, conversion, operator and axis, optimised for several processors
#   make fuzz-schedules N=10000   random schedules: each refused by a rule, or right
#   make accuracy        exp and its like, of every float, against the C library: a quarter of an hour
#   make commands N=40   so many commands on each sample, with every option: a result or an answer with a code
#   make counts          lines, modules, record types: what must not grow back is a test
#   make growth          how the work grows with the size of a program, stage by stage
#   make bench           time our programs beside NumPy and whatever else .venv has (ARGS='--help' lists options)
#   make bench-page      the same, and rewrite the tables of docs/benchmarks.md
#   make man             write docs/i.1, the manual page, out of the commands
#   make editors         write the grammars of docs/editors out of the table of tokens
#   make site            the pages with search, as build/site; each link is checked
#   make dist            source distribution and wheel, as dist/, checked by twine and check-wheel-contents
#   make clean           remove what was made, .venv included

PYTHON ?= python3
JOBS ?= 2
FUZZ ?= 1
N ?= 200

BIN := .venv/bin
READY := .venv/ready

# A C compiler of the machine's own, else the one inside the ziglang package.
# A candidate counts only if it runs: some systems ship a `cc` that merely offers to install one.
find_cc = found=; \
	for candidate in "$${CC:-}" cc gcc clang; do \
	  if [ -n "$$candidate" ] && $$candidate --version >/dev/null 2>&1; then found=1; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  if [ ! -x $(BIN)/zig-cc ]; then \
	    echo "No C compiler found (tried \$$CC, cc, gcc, clang): installing ziglang into .venv."; \
	    $(BIN)/python -m pip install --quiet ziglang || exit 3; \
	    printf '\#!/bin/sh\nexec "%s/.venv/bin/python" -m ziglang cc "$$@"\n' "$(CURDIR)" >$(BIN)/zig-cc; \
	    chmod +x $(BIN)/zig-cc; \
	  fi; \
	  echo "Compiling with zig cc from .venv."; \
	  CC="$(CURDIR)/$(BIN)/zig-cc"; export CC; \
	fi

.PHONY: help demo test test-all check commands fuzz fuzz-notations fuzz-texts fuzz-tensors fuzz-schedules einsum-tests matrix accuracy counts growth bench bench-page man editors site dist clean

# The first target: what a bare `make` does. The list is the comment that opens this file.
help:
	@sed -n 's/^#   make/make/p' $(firstword $(MAKEFILE_LIST))

demo: $(READY)
	@$(find_cc); $(BIN)/python samples/training/train.py moons digits && $(BIN)/python samples/digits/demo.py

test: $(READY)
	@$(find_cc); $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --deep none

test-all: test
	@$(find_cc); $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --deep only --fuzz $(FUZZ)

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

fuzz: $(READY)
	@$(find_cc); $(BIN)/python tests/property/fuzz.py index bodies --count $(N)

fuzz-notations: $(READY)
	@$(find_cc); $(BIN)/python tests/property/fuzz.py --count $(N)

fuzz-texts: $(READY)
	@$(BIN)/python tests/property/fuzz.py texts --count $(N)

fuzz-tensors: $(READY)
	@$(find_cc); $(BIN)/python tests/property/fuzz.py tensors --count $(N)

commands: $(READY)
	@$(find_cc); $(BIN)/python tests/property/commands.py --count $(N)

einsum-tests: $(READY)
	@$(find_cc); $(BIN)/python tests/property/numpys_einsum.py

matrix: $(READY)
	@$(find_cc); $(BIN)/python tests/property/matrix.py

fuzz-schedules: $(READY)
	@$(find_cc); $(BIN)/python tests/property/fuzz.py schedules contractions attention --count $(N)

accuracy: $(READY)
	@$(find_cc); $(BIN)/python tests/property/accuracy.py

counts: $(READY)
	@$(BIN)/python tests/counts.py

growth: $(READY)
	@$(BIN)/python tests/property/growth.py

bench: $(READY)
	@$(find_cc); $(BIN)/python -m bench $(ARGS)

bench-page: $(READY)
	@$(find_cc); $(BIN)/python -m bench --page docs/benchmarks.md $(ARGS)

# Made again only when pyproject.toml changes; an editable install sees every edit and new file.
$(READY): pyproject.toml
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "$(PYTHON) not found. Install Python 3.11 or newer, or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, $(PYTHON) is `$(PYTHON) -V 2>&1`. Name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) lacks its venv module. Install it (on Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	  echo "Creating .venv"; $(PYTHON) -m venv --clear .venv; }
	@echo "Installing ilang and its developer tools into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

man: $(READY)
	$(BIN)/python -m ilang.icli.manual docs/i.1

editors: $(READY)
	$(BIN)/python -m ilang.icli.editors docs/editors

# Links to all that has pages, or is linked from one, so that relative links lead where they do in the repository.
SITE = README.md mkdocs.yml CHANGELOG.md CONTRIBUTING.md LICENSE docs samples core codegen icli bench tests

site: $(READY)
	@$(BIN)/python -c 'import material' 2>/dev/null || $(BIN)/python -m pip install --quiet --editable '.[site]'
	@rm -rf build/pages && mkdir -p build/pages && cd build/pages && for part in $(SITE); do ln -s ../../$$part .; done
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict >build/site.log 2>&1 || { grep "^WARNING\|^ERROR" build/site.log; exit 1; }
	@echo "build/site/index.html"

dist: $(READY)
	@$(BIN)/python -c 'import build, twine, check_wheel_contents' 2>/dev/null || $(BIN)/python -m pip install --quiet --editable '.[release]'
	@rm -rf dist && $(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m check_wheel_contents dist/*.whl

clean:
	rm -rf .venv build dist out *.egg-info .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
