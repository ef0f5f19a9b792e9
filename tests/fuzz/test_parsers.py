"""Every parser from its corpus: documented errors alone, whatever the bytes (long: `python -m tests.fuzz`)."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.mutation import CORPUS, corpus_of
from tests.fuzz.structure import STRUCTURES, any_change
from tests.fuzz.targets import TARGETS, handed

RUNS = 300


def test_every_parser_has_a_corpus() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)


@pytest.mark.some(4)
@pytest.mark.parametrize("parser", TARGETS)
def test_a_parser_raises_documented_errors_alone(parser: str) -> None:
    rng = random.Random(parser)  # noqa: S311  inputs, no secrets
    corpus = corpus_of(parser)
    said = [handed(TARGETS[parser], data) for data in corpus]
    assert "" in said, "one of the corpus is in order"
    for _ in range(RUNS):
        handed(TARGETS[parser], any_change(parser, rng))


@pytest.mark.parametrize("parser", STRUCTURES)
def test_an_input_that_is_opened_and_closed_is_in_order(parser: str) -> None:
    """Else what is altered in its structure would not get beyond the first check."""
    structure = STRUCTURES[parser]
    for data in corpus_of(parser):
        assert handed(TARGETS[parser], structure.closed(structure.opened(data))) == handed(
            TARGETS[parser], data
        )
