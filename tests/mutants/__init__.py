"""Mutation tests: `python -m tests.mutants --help`."""
