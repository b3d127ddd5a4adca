# `make quickstart` does the main job on real data, `make test` runs the core tests, `make test-all` all tests,
# `make docs` builds the site.
# `make dist` builds the distributions, checks them, and tries the wheels in an empty environment.
# Each sets up what it needs in .venv, and no more: the quickstart's packages first, the others when a target needs them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Byte code is made at the first import, of what is imported.
PIP := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
PACKAGE := pyproject.toml constraints.txt hatch_build.py $(wildcard src/interlingua/kernels/*.[ch])
# The model that comes with the library, a distribution of its own.
MINI := models/mini
# What is installed, a stamp for each set of packages.
TORCH := $(VENV)/.torch
QUICKSTART := $(VENV)/.quickstart
DEV := $(VENV)/.dev
DOCS := $(VENV)/.docs
RELEASE := $(VENV)/.release
# For a torch without CUDA: TORCH_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu"
TORCH_ARGS ?=
QUICKSTART_ARGS ?=
FUZZ_SECONDS ?= 48
# Processes that share the tests; each has one thread.
TEST_WORKERS ?= 2
TEST_ARGS ?=
PYTEST := $(BIN)/python -m pytest -q --numprocesses $(TEST_WORKERS) --dist worksteal --durations 10
# Collected tests and times of the last runs.
RECORDS := .pytest_cache/records

# Extras and tests of `make test-oldest`: what the library needs itself, and the server.
OLDEST := .venv-oldest
OLDEST_TESTS ?= tests/batches tests/encoder tests/functional tests/methods tests/mining tests/retrieval tests/serving tests/storage \
  tests/training tests/vocabulary

.PHONY: quickstart test test-rest test-all test-oldest collected fuzz lint types docs dist check clean
quickstart: $(QUICKSTART)
	$(BIN)/interlingua quickstart $(QUICKSTART_ARGS)

# Core behavior, in minutes: tests/tiers.py says which tests these are.
test: $(DEV)
	mkdir -p $(RECORDS)
	$(PYTEST) -m core --times=$(RECORDS)/core.json $(TEST_ARGS)

# All other tests; none of those in tests/collected/frozen.json may be missing.
test-rest: $(DEV)
	mkdir -p $(RECORDS)
	$(PYTEST) -m "not core" --times=$(RECORDS)/rest.json --collected=$(RECORDS)/collected.txt $(TEST_ARGS)
	$(BIN)/python tools/collected_tests.py $(RECORDS)/collected.txt

test-all: test test-rest

# One marker of tests/tiers.py: make test-kernels.
test-%: $(DEV)
	$(PYTEST) -m $* $(TEST_ARGS)

# None of the tests in tests/collected/frozen.json may be missing; test-rest checks this too.
collected: $(DEV)
	mkdir -p $(RECORDS)
	$(BIN)/python -m pytest --collect-only -qq --collected=$(RECORDS)/collected.txt > $(RECORDS)/collection.log
	$(BIN)/python tools/collected_tests.py $(RECORDS)/collected.txt

# Core tests with the oldest dependencies that pyproject.toml allows, in an environment of its own. Old packages use what
# others have deprecated since.
test-oldest:
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --constraint constraints-oldest.txt $(TORCH_ARGS) --editable '.[classification,parquet,serve,xlsx,zst]' --editable $(MINI) \
	  pytest pytest-timeout pytest-xdist hypothesis httpx openai scipy
	$(OLDEST)/bin/python -m pytest -q --numprocesses $(TEST_WORKERS) -m core \
	  -W ignore::DeprecationWarning -W ignore::FutureWarning $(OLDEST_TESTS) $(TEST_ARGS)

# Every reader under atheris, for so many seconds together; Python without a wheel of atheris has none.
fuzz: $(DEV)
	$(BIN)/python -m tests.hostile.fuzz.readers all $(FUZZ_SECONDS)

lint: $(DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python tools/house.py

types: $(DEV)
	$(BIN)/mypy

# The pages below docs/ and the API from the docstrings, in site/; it needs no network.
docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Sdists and wheels of the library and its models in dist/.
dist: $(RELEASE)
	rm -rf dist
	$(BIN)/python tools/release.py build dist
	$(BIN)/python tools/release.py check dist
	$(BIN)/python tools/release.py try dist -- --constraint constraints.txt $(TORCH_ARGS)

check: lint types test docs

$(TORCH): constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "interlingua needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch $(TORCH_ARGS)
	touch $@

$(QUICKSTART): $(TORCH) $(PACKAGE) $(MINI)/pyproject.toml
	$(PIP) --editable '.[quickstart]' --editable $(MINI)
	touch $@

# It holds the quickstart's packages too.
$(DEV): $(TORCH) $(PACKAGE) $(MINI)/pyproject.toml
	$(PIP) --editable '.[dev]' --editable $(MINI)
	touch $(QUICKSTART) $@

$(DOCS): $(TORCH) $(PACKAGE)
	$(PIP) --editable '.[docs]'
	touch $@

$(RELEASE): constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) build twine
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) dist site .pytest_cache .mypy_cache .ruff_cache
