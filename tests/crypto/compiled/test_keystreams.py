"""Compiled keystreams against those of `cryptography`, for CPUs of every width that this one can stand for."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from crypto import engine
from crypto.blocks import Blocks, random_blocks
from crypto.encoding import Words
from tests.support.rng import SeededRng

pytest.importorskip("llvmlite")

from tests.support.widths import WIDTHS, made

COUNTS = [1, 2, 3, 128, 512]
WIDTHS_IN_TURN = (2, 8, 6, 504, 2, 4, 12, 10, 36)
"""Words of successive fills."""
FAR = [256, 65_536]
"""Blocks after which a byte of the counter overflows."""


def seeds_of(count: int) -> Blocks:
    return random_blocks(SeededRng(count), count)


def by_definition(seeds: Blocks, start: int, width: int) -> Words:
    """The words from ``start`` on of each stream: in counter mode, zeros encrypted."""
    ciphers = (Cipher(algorithms.AES(seed.tobytes()), modes.CTR(bytes(16))) for seed in seeds)
    octets = b"".join(cipher.encryptor().update(bytes(8 * (start + width))) for cipher in ciphers)
    return np.frombuffer(octets, np.uint64).reshape(len(seeds), -1)[:, start:]


def filled(streams: engine.Keystreams, n: int, width: int) -> Words:
    rows = np.zeros((n, width), dtype=np.uint64)
    streams.fill(rows)
    return rows


def expect_equal(tested: engine.Engine, count: int) -> None:
    seeds, start = seeds_of(count), 0
    streams = tested.keystreams(seeds)
    for width in WIDTHS_IN_TURN:
        wanted = by_definition(seeds, start, width)
        assert np.array_equal(filled(streams, count, width), wanted), (start, width)
        start += width


@pytest.mark.parametrize("lanes", WIDTHS, ids=str)
@pytest.mark.parametrize("count", COUNTS)
def test_streams_go_on_as_those_of_counter_mode(count: int, lanes: tuple[int, ...]) -> None:
    expect_equal(made(lanes), count)


@pytest.mark.parametrize("count", COUNTS)
def test_streams_of_the_reference_are_those_of_counter_mode(count: int) -> None:
    expect_equal(engine.Reference(), count)


@pytest.mark.parametrize("lanes", WIDTHS, ids=str)
@pytest.mark.parametrize("blocks", FAR)
def test_the_counter_overflows_byte_by_byte(blocks: int, lanes: tuple[int, ...]) -> None:
    """In the middle of a fill, and between two."""
    seeds, start = seeds_of(2), 2 * blocks
    for before in (start - 10, start - 4, start):
        streams = made(lanes).keystreams(seeds)
        for at, width in ((0, before), (before, 30)):
            assert np.array_equal(filled(streams, 2, width), by_definition(seeds, at, width)), at


def test_seeds_that_lie_apart_in_memory() -> None:
    seeds = random_blocks(SeededRng("apart"), 10).reshape(5, 2, 2)[:, 1]
    assert np.array_equal(filled(made((2,)).keystreams(seeds), 5, 10), by_definition(seeds, 0, 10))


@pytest.mark.parametrize("lanes", WIDTHS, ids=str)
def test_rows_of_other_streams_and_other_memory_stay(lanes: tuple[int, ...]) -> None:
    around = np.zeros((5, 34), dtype=np.uint64)
    made(lanes).keystreams(seeds_of(3)).fill(around[1:4])
    assert not around[[0, 4]].any()
    assert around[1:4].all()


def test_rows_of_another_shape_are_refused() -> None:
    """Before any code runs: keys would be read and words written beyond their arrays."""
    streams = made((2,)).keystreams(seeds_of(3))
    words = np.zeros((4, 8), dtype=np.uint64)
    odd = np.zeros((3, 7), dtype=np.uint64)
    for bent in (words, words[:2], words[:3, ::2], words[:3, :4], words[:3].view(np.uint32), odd):
        with pytest.raises(AssertionError):
            streams.fill(bent)
    assert not words.any()


def test_no_secret_in_the_repr() -> None:
    assert repr(made((2,)).keystreams(seeds_of(3))) == "CompiledKeystreams(n=3, <secret>)"
    assert repr(engine.Reference.keystreams(seeds_of(3))) == "Keystreams(n=3, <secret>)"
