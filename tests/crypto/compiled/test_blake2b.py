"""Compiled digests against the reference, for every number of lanes; compiled only where it pays, and if right."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from crypto import engine
from crypto.blocks import Octets
from crypto.digests import digests_of
from crypto.encoding import Words
from tests.support.engines import Both, compiled
from tests.support.rng import SeededRng

pytest.importorskip("llvmlite")

from crypto.compiled import blake2b
from crypto.compiled.blake2b import Digests, Kernel, compared, lanes_of
from crypto.compiled.engine import _compile

LANES = (2, 4, 8)


@cache
def made(lanes: int) -> Kernel:
    if isinstance(reason := compiled(), str):
        pytest.skip(reason)
    return Kernel(_compile, lanes)


def texts(n: int, width: int) -> Octets:
    return np.frombuffer(SeededRng((n, width)).bytes(n * width), dtype=np.uint8).reshape(n, width)


@pytest.mark.parametrize("lanes", LANES)
def test_every_length(lanes: int) -> None:
    for width in range(1, 301):
        rows = texts(9, width)
        assert np.array_equal(made(lanes)(rows, 32), digests_of(rows, 32))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("width", [16, 112, 128, 129, 700])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 601, 2049])
def test_every_number_of_rows(n: int, width: int, lanes: int) -> None:
    rows = texts(n, width)
    assert np.array_equal(made(lanes)(rows, 16), digests_of(rows, 16))


@pytest.mark.parametrize("size", [8, 16, 24, 32, 48, 64])
def test_every_size(size: int) -> None:
    assert np.array_equal(made(4)(texts(5, 100), size), digests_of(texts(5, 100), size))


def test_one_text_longer_than_the_working_memory() -> None:
    rows = texts(5, 8 * (blake2b._ROWS_WORDS + 1))
    assert np.array_equal(made(4)(rows, 32), digests_of(rows, 32))


def test_rows_apart_in_memory() -> None:
    rows = texts(20, 50)[::3, 5:45]
    assert np.array_equal(made(4)(rows, 32), digests_of(np.ascontiguousarray(rows), 32))


def test_code_is_made_once_after_enough_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, compiling = made(4), []
    monkeypatch.setattr(blake2b, "ENOUGH_ROWS", 10)
    monkeypatch.setattr(blake2b, "Kernel", lambda *given: compiling.append(given) or kernel)
    digests, rows = Digests(_compile, 4), texts(9, 20)
    seen = []
    for _ in range(4):
        assert np.array_equal(digests(rows, 32), digests_of(rows, 32))
        seen.append(len(compiling))
    assert seen == [0, 1, 1, 1]
    assert digests._hash is kernel


@pytest.mark.parametrize("wrong", [100, 300])
def test_wrong_code_is_not_used(wrong: int) -> None:
    """Of one block, or of several."""

    def bent(rows: Octets, size: int) -> Words:
        digests = digests_of(rows, size)
        digests[-1, -1] ^= np.uint64(rows.shape[1] == wrong)
        return digests

    with pytest.warns(UserWarning, match="hashlib is used"):
        assert compared(bent) is digests_of


def test_right_code_is_used() -> None:
    assert compared(made(4)) is made(4)


def test_any_test_notices_engines_that_differ() -> None:
    class Bent(engine.Reference):
        @staticmethod
        def digests(rows: Octets, size: int) -> Words:
            return digests_of(rows, size) ^ np.uint64(1)

    with pytest.raises(AssertionError, match="the engines digest differently"):
        Both(Bent()).digests(texts(3, 20), 16)


@pytest.mark.parametrize(("has", "lanes"), [((), 4), (("avx2",), 4), (("avx2", "avx512f"), 8)])
def test_lanes_are_those_of_the_registers(has: tuple[str, ...], lanes: int) -> None:
    assert lanes_of(dict.fromkeys(has, True)) == lanes
