# Everything a developer runs. Each target sets up the environment it needs in $(VENV).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= out

# On all cores; which tests stay in one process: tests/support/scheduling.py. A worker that crashes is not replaced: with
# tests that stay together, the run would not end.
PYTEST = $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadscope --max-worker-restart 0
INSTALL ?=
FLAGS ?=

# What the shell tells Python here is told on no other machine: nothing may depend on it.
$(foreach name,$(filter PYTHON%,$(.VARIABLES)),$(eval unexport $(name)))

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo test test-fast test-slow test-install test-mutants attacks faults soak fuzz lint format protos schemas bench bench-sequences bench-dp bench-synthetic bench-scale bench-crypto bench-change lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements.lock pyproject.toml setup.py | $(VENV)/bin/python
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
	$(PYTEST) $(FLAGS)

test-fast: setup-dev ## what to run between edits: the suite without what takes seconds
	$(PYTEST) -m "not slow and not install and not seconds"

test-slow: setup-dev ## the suites marked slow, in full
	$(BIN)/python -m pytest -m slow

test-install: setup-dev ## build, install and run the wheel with every Python of this machine (fetches packages)
	$(BIN)/python -m pytest -m install $(INSTALL)

test-mutants: setup-dev ## faults in the privacy mechanisms that the suite must catch
	$(BIN)/python -m tests.mutants

lint: setup-dev ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup-dev ## speed and utility of LKC and DP runs; JSON in out/ (needs ../shared)
	$(BIN)/python -m benchmarks.bench_lkc
	$(BIN)/python -m benchmarks.bench_utility
	$(BIN)/python -m benchmarks.bench_scores
	$(BIN)/python -m benchmarks.bench_clusters
	$(BIN)/python -m benchmarks.bench_withhold
	$(BIN)/python -m benchmarks.bench_kd
	$(BIN)/python -m benchmarks.bench_kd_jobs
	$(BIN)/python -m benchmarks.bench_kd_learners
	$(BIN)/python -m benchmarks.bench_kd_queries
	$(BIN)/python -m benchmarks.bench_vertical
	$(BIN)/python -m benchmarks.bench_vertical_checks
	$(BIN)/python -m benchmarks.bench_sequences
	$(BIN)/python -m benchmarks.bench_sequences_jobs
	$(BIN)/python -m benchmarks.bench_dp

bench-sequences: setup-dev ## paths and sets alone: speed and loss; part of `bench`
	$(BIN)/python -m benchmarks.bench_sequences
	$(BIN)/python -m benchmarks.bench_sequences_jobs

bench-dp: setup-dev ## differential privacy alone; part of `bench`
	$(BIN)/python -m benchmarks.bench_dp

bench-synthetic: setup-dev ## synthetic tables: what joint runs cost, what they are worth; resumes where it was stopped (needs ../shared)
	$(BIN)/python -m benchmarks.bench_synthetic_jobs
	$(BIN)/python -m benchmarks.bench_synthetic_joint
	$(BIN)/python -m benchmarks.bench_synthetic

bench-scale: setup-dev ## large tables of one holder: files, DuckDB, PostgreSQL (needs its server), Spark (needs Java; 5 GB); CASES="name of a case"
	$(BIN)/python -m benchmarks.bench_scale $(CASES)

bench-crypto: setup-dev ## the secure computation engine; JSON in out/
	$(BIN)/python -m benchmarks.bench_crypto $(OUT)/bench-crypto.json
	$(BIN)/python -m benchmarks.bench_protection $(OUT)/bench-protection.json

BEFORE ?= HEAD~1
CASES ?=
TURNS ?= 3
bench-change: setup-dev ## the state of BEFORE=REVISION and the present one in turn, on the same jobs; CASES="part of a name" (needs ../shared)
	$(BIN)/python -m benchmarks.before_after $(BEFORE) --turns $(TURNS) $(CASES)

format: setup-dev ## let ruff rewrite the sources
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

TAMPERED ?= 10000
VIEWS ?= 40
attacks: setup-dev ## attacks in their long form (tests/attacks/README.md): TAMPERED=10000 runs, VIEWS=40 of each world, all faults
	$(BIN)/python -m tests.attacks.tampering $(TAMPERED)
	$(BIN)/python -m tests.attacks.worlds $(VIEWS)
	$(BIN)/python -m pytest -m slow tests/attacks/test_faults.py

ONLY ?=
faults: setup-dev ## what befalls each party and the coordinator in each phase of a run; ONLY="leader kill" for some cells
	$(BIN)/python -m tests.attacks.matrix $(ONLY)

JOBS ?= 200
soak: setup-dev ## JOBS=200 jobs over the same daemons: memory, threads and files are flat, and the books right (Linux)
	$(BIN)/python -m tests.attacks.soak $(JOBS)

PARSER ?= all
RUNS ?= 1000000
SECONDS ?= 3600
fuzz: setup-dev ## hand parsers malformed inputs: PARSER=bundle RUNS=1000000 SECONDS=3600 (names: tests/fuzz/targets.py)
	$(BIN)/python -m tests.fuzz $(PARSER) $(RUNS) $(SECONDS)

protos: setup-dev ## generate the stubs anew
	$(BIN)/python -m protos.generate

schemas: setup-dev ## generate the JSON Schemas of job and configuration files anew
	$(BIN)/python -m party.cli.schemas docs/schemas

lock: ## resolve the dependencies anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	    pyproject.toml requirements-build.in -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	    pyproject.toml requirements-build.in --group dev -o requirements-dev.lock

clean: ## remove what was built
	rm -rf $(VENV) build dist $(OUT) .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
