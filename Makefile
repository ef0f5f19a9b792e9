# What a developer runs each day. A target sets up the environment that it needs in $(VENV). All other commands are
# `python -m` calls: CONTRIBUTING.md lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
AREA ?=
FLAGS ?=

# On all cores, two workers each. Which tests stay in one process: tests/support/scheduling.py. A worker that crashes is not replaced: the
# tests that stay together would not end.
PYTEST = $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadscope --max-worker-restart 0

# What the shell tells Python here is told on no other machine: nothing may depend on it.
$(foreach name,$(filter PYTHON% PYTEST_ADDOPTS,$(.VARIABLES)),$(eval unexport $(name)))

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-all check format generate bench clean

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

PIP = $(BIN)/pip install --quiet --disable-pip-version-check

$(VENV)/.run: requirements.lock pyproject.toml setup.py | $(VENV)/bin/python
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# The second lock file holds the first. uv installs many packages in a fifth of the time of pip. It does not read pip's settings: behind
# a mirror, pip does it. Its cache would keep 2 GB of each installation, and spare no time.
$(VENV)/.dev: requirements-dev.lock requirements-uv.lock requirements.lock pyproject.toml setup.py | $(VENV)/bin/python
	$(PIP) --require-hashes -r requirements-uv.lock
	$(BIN)/uv pip install --quiet --no-cache --system-certs --python $(BIN)/python --require-hashes -r requirements-dev.lock || \
		$(PIP) --require-hashes -r requirements-dev.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $(VENV)/.run $@

setup: $(VENV)/.run ## install the commands and what they need into .venv
demo: setup ## let three hospitals on this machine make one anonymous table
	$(BIN)/coordinator demo

test: $(VENV)/.dev ## run the test suite, the same examples each time
	$(PYTEST) --lot 4 $(FLAGS)

test-fast: $(VENV)/.dev ## run the quick tests: between edits, under a minute
	$(PYTEST) -m "not slow and not more and not install and not seconds" $(FLAGS)

test-all: $(VENV)/.dev ## run what continuous integration leaves out: hours
	+$(MAKE) --no-print-directory --keep-going --jobs=1 $(PARTS)

# A part that fails does not keep the others from running; make names it, and fails in the end.
PARTS := all-cases all-slow all-mutants all-tampering all-worlds all-fuzz all-pythons
.PHONY: $(PARTS)
all-cases: ; $(PYTEST) -m "not slow and not install" --hypothesis-profile=many --both-engines $(FLAGS)
all-slow: ; $(BIN)/python -m pytest -m slow $(FLAGS)
all-mutants: ; $(BIN)/python -m tests.mutants
all-tampering: ; $(BIN)/python -m tests.attacks.tampering 10000
all-worlds: ; $(BIN)/python -m tests.attacks.worlds 40
all-fuzz: ; $(BIN)/python -m tests.fuzz all 100000 300
all-pythons: ; $(BIN)/python -m pytest -m install --every-python

check: $(VENV)/.dev ## see whether style, types and the places of mutants are right: half a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.mutants --check

format: $(VENV)/.dev ## let ruff rewrite the sources
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(VENV)/.dev ## generate stubs, schemas, generated documents and the site (build/site) anew
	$(BIN)/python -m protos.generate
	$(BIN)/python -m party.cli.schemas docs/schemas
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/forms_stub.py
	$(BIN)/python -m mkdocs build

bench: $(VENV)/.dev ## measure AREA=lkc, kd, dp, ...; without AREA, list the areas
	$(BIN)/python -m benchmarks $(AREA)

clean: ## remove what was built
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
