"""Compiled trees and inner products against the reference, for CPUs of every width that this one can stand for."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from crypto import engine, trees
from crypto.blocks import random_blocks
from crypto.encoding import Words
from crypto.hashing import BlockHash
from crypto.inner_products import planes_of
from crypto.local import run_local
from crypto.lookup import LookUps, Question, Tables
from crypto.rng import uniform_words
from crypto.rounds import Rounds
from crypto.trees import NODES_AT_ONCE
from tests.support.rng import SeededRng
from tests.support.sessions import ot_sessions

pytest.importorskip("llvmlite")

from tests.support.widths import WIDTHS, made

KEY = bytes(range(16))
COUNTS = [1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 203]


def grown(tested: engine.Engine, count: int, depth: int) -> list[Words]:
    """All that two batches of trees, side by side under one hash, tell level by level."""
    rng = SeededRng((count, depth))
    hashing = BlockHash(KEY, NODES_AT_ONCE)
    hashing.take(3)
    roots = random_blocks(rng, 2)
    grove = [tested.trees(root, count, depth, hashing) for root in roots]
    seen = []
    for _ in range(depth):
        for each in grove:
            seen.append(each.sum())
            each.grow(random_blocks(rng, count))
    for each in grove:
        seen.append(each.sum())
        seen.append(each.vectors(random_blocks(rng, count)))
    return seen


def equal(seen: list[Words], wanted: list[Words]) -> None:
    for one, other in zip(seen, wanted, strict=True):
        assert one.shape == other.shape
        assert np.array_equal(one, other)


@pytest.mark.parametrize("lanes", WIDTHS, ids=str)
@pytest.mark.parametrize("count", COUNTS)
def test_trees_grow_as_the_reference_bit_for_bit(count: int, lanes: tuple[int, ...]) -> None:
    for depth in (0, 1, 2, 7):
        equal(grown(made(lanes), count, depth), grown(engine.Reference(), count, depth))


@pytest.mark.parametrize("count", [1, 66])
def test_trees_of_many_levels(count: int) -> None:
    equal(grown(made((2,)), count, 11), grown(engine.Reference(), count, 11))


def test_more_roots_than_are_hashed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "NODES_AT_ONCE", 7)
    monkeypatch.setattr(trees, "STRAND", 5)
    equal(grown(made((2,)), 23, 7), grown(engine.Reference(), 23, 7))


def test_corrections_that_lie_apart_in_memory() -> None:
    rng = SeededRng("apart")
    corrections = random_blocks(rng, 3 * 9).reshape(9, 3, 2)[:, 1]
    found = []
    for tested in (made((2,)), engine.Reference()):
        one = tested.trees(random_blocks(SeededRng(0), 1)[0], 9, 1, BlockHash(KEY, NODES_AT_ONCE))
        found.append([one.sum()])
        one.grow(corrections)
        found[-1] += [one.sum(), one.vectors(corrections)]
    equal(*found)


def test_trees_that_are_asked_for_another_level_are_refused() -> None:
    """Before any code runs: a level without room would be written to other memory."""
    grove = made((2,)).trees(np.ones(2, dtype=np.uint64), 3, 1, BlockHash(KEY, NODES_AT_ONCE))
    corrections = np.zeros((3, 2), dtype=np.uint64)
    grove.sum()
    with pytest.raises(AssertionError):
        grove.vectors(corrections)
    with pytest.raises(AssertionError):
        grove.grow(corrections[:2])
    grove.grow(corrections)
    grove.sum()
    with pytest.raises(AssertionError):
        grove.grow(corrections)
    with pytest.raises(AssertionError):
        grove.vectors(corrections[:2])


def test_no_secret_in_the_repr() -> None:
    given = np.ones(2, dtype=np.uint64), 3, 1, BlockHash(KEY, NODES_AT_ONCE)
    assert repr(made((2,)).trees(*given)) == "CompiledTrees(count=3, <secret>)"
    assert repr(engine.Reference.trees(*given)) == "Trees(<secret>)"


def asked(count: int, words: int, n_bits: int) -> tuple[Words, np.ndarray, Words, Words]:
    """Planes of three tables, numbers of tables, vectors and shifts."""
    rng = SeededRng((count, words, n_bits))
    planes = uniform_words(rng, 3 * n_bits * words).reshape(3, n_bits, words)
    of = (uniform_words(rng, count) % np.uint64(3)).astype(np.intp)
    vectors = uniform_words(rng, count * words).reshape(count, words)
    return planes, of, vectors, uniform_words(rng, count) >> np.uint64(40)


@pytest.mark.parametrize("words", [1, 2, 4, 8, 16, 64])
def test_inner_products_are_those_of_the_reference(words: int) -> None:
    for count, n_bits in product((0, 1, 2, 9), (1, 7, 64)):
        given = asked(count, words, n_bits)
        wanted = engine.Reference.inner_products(*given)
        assert np.array_equal(made((2,)).inner_products(*given), wanted)


def test_every_shift_of_an_inner_product_turns_the_vector() -> None:
    """A vector with a single 1, at every place: the entry there, as the definition has it."""
    entries = uniform_words(SeededRng("entries"), 256)
    vectors = np.zeros((256, 4), dtype=np.uint64)
    vectors[:, 1] = 1 << 5  # entry 69
    of, shifts = np.zeros(256, dtype=np.intp), np.arange(256, dtype=np.uint64)
    found = made((2,)).inner_products(planes_of(entries[None]), of, vectors, shifts)
    assert found.tolist() == np.roll(entries, -69).tolist()


def test_vectors_that_lie_apart_in_memory() -> None:
    planes, of, vectors, shifts = asked(8, 2, 5)
    given = planes, of[::2], vectors[::2], shifts[::2]
    assert np.array_equal(made((2,)).inner_products(*given), engine.Reference.inner_products(*given))


@pytest.mark.parametrize("number", [-1, 3, 1 << 40])
def test_tables_that_are_not_there_are_refused(number: int) -> None:
    """Before any code runs: a read beyond the planes would be a read of other memory."""
    planes, of, vectors, shifts = asked(4, 2, 5)
    of[2] = number
    with pytest.raises(AssertionError):
        made((2,)).inner_products(planes, of, vectors, shifts)


def test_inner_products_of_other_shapes_are_refused() -> None:
    planes, of, vectors, shifts = asked(4, 4, 5)
    for bent in (
        (planes, of, vectors[:3], shifts),
        (planes, of[:3], vectors, shifts),
        (planes, of, vectors[:, :3], shifts),
        (planes[:, :, :3], of, vectors[:, :3], shifts),
        (np.concatenate([planes] * 13, axis=1), of, vectors, shifts),
    ):
        with pytest.raises(AssertionError):
            made((2,)).inner_products(*bent)


def under(which: engine.Engine, rounds: Rounds[Any]) -> Rounds[Any]:
    """A party whose process has that engine in force."""
    reply: Any = None
    while True:
        engine.use(which)
        try:
            sent = rounds.send(reply)
        except StopIteration as stop:
            return stop.value
        reply = yield sent


def looked_up(engines: tuple[engine.Engine, engine.Engine]) -> tuple[list[list[int]], str]:
    """Shares of the entries, and the digest of all messages, of two parties with an engine each."""
    rng = SeededRng("tables")
    questions = []
    for bits, count in ((6, 3), (8, 70), (10, 2)):
        tables = (uniform_words(rng, 2 << bits) >> np.uint64(30)).reshape(2, -1)
        questions.append((uniform_words(rng, count), tables, (np.arange(count) % 2).astype(np.intp)))
    parties = {}
    for name, end, which in zip("ge", ot_sessions("mixed", "g", "e"), engines, strict=True):
        look_ups = LookUps(end, SeededRng(name))
        look_ups.start(10)
        own = [Question(x if name == "g" else x + np.uint64(7), Tables(t), of) for x, t, of in questions]
        parties[name] = under(which, look_ups.look_up(own, 40))
    outputs, transcript = run_local(parties)
    for (x, tables, of), one, other in zip(questions, outputs["g"], outputs["e"], strict=True):
        places = (2 * x + np.uint64(7)) & np.uint64(tables.shape[1] - 1)
        assert np.array_equal((one + other) & np.uint64((1 << 40) - 1), tables[of, places.astype(np.intp)])
    return [words.tolist() for name in "ge" for words in outputs[name]], transcript.digest()


def test_parties_of_different_engines_look_up_as_those_of_one() -> None:
    reference, compiled = engine.Reference(), made((2,))
    wanted = looked_up((reference, reference))
    for engines in ((reference, compiled), (compiled, reference), (compiled, compiled)):
        assert looked_up(engines) == wanted
