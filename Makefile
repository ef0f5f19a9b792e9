# Everything a developer runs. Each target sets up the environment it needs in $(VENV).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= out

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo test test-slow lint format protos schemas bench bench-crypto lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements.lock pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.run
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

setup: $(VENV)/.run ## install what running needs into $(VENV)
setup-dev: $(VENV)/.dev ## ... and what development needs

demo: setup ## three hospitals on this machine make one anonymous table
	$(BIN)/coordinator demo

test: setup-dev ## the test suite (slow suites in their short form)
	$(BIN)/python -m pytest

test-slow: setup-dev ## the suites marked slow, in full
	$(BIN)/python -m pytest -m slow

lint: setup-dev ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup-dev ## speed and utility of LKC runs; JSON in out/ (needs ../shared)
	$(BIN)/python -m benchmarks.bench_lkc
	$(BIN)/python -m benchmarks.bench_utility
	$(BIN)/python -m benchmarks.bench_vertical

bench-crypto: setup-dev ## the secure computation engine; JSON in out/
	$(BIN)/python -m benchmarks.bench_crypto $(OUT)/bench-crypto.json

format: setup-dev ## let ruff rewrite the sources
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

protos: setup-dev ## generate the stubs anew
	$(BIN)/python -m protos.generate

schemas: setup-dev ## generate the JSON Schemas of job and configuration files anew
	$(BIN)/python -m party.schemas docs/schemas

lock: ## resolve the dependencies anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	    pyproject.toml requirements-build.in -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	    pyproject.toml requirements-build.in --group dev -o requirements-dev.lock

clean: ## remove what was built
	rm -rf $(VENV) build dist $(OUT) .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
