# Two commands: `make quickstart` does the main job on real data, `make test` runs the tests.
# Each sets up everything it needs in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
QUICKSTART_ARGS ?=
FUZZ_SECONDS ?= 48

.PHONY: quickstart test fuzz lint types check clean
quickstart: $(STAMP)
	$(BIN)/interlingua quickstart $(QUICKSTART_ARGS)

test: $(STAMP)
	$(BIN)/python -m pytest

# Every reader under atheris, for so many seconds together; Python without a wheel of atheris has none.
fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz.readers all $(FUZZ_SECONDS)

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP)
	$(BIN)/mypy

check: lint types test

$(STAMP): pyproject.toml constraints.txt hatch_build.py $(wildcard src/interlingua/kernels/*.[ch])
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "interlingua needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
