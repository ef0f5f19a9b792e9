"""Compiled code is used only where it runs, and only if it computes what the reference does."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from crypto import engine
from tests.support.engines import Both, compiled

pytest.importorskip("llvmlite")

from crypto.compiled import loading
from crypto.compiled.aes import lanes_of
from crypto.compiled.loading import Unusable, Wrong

WHATS = ["labels", "table", "keystreams", "transpose", "sums", "leaves", "products"]


class Bent(Both):
    """The reference, but for one bit of whatever array is named."""

    def __init__(self, what: str) -> None:
        super().__init__(engine.Reference())
        self.what = what

    def garbler(self, *given: Any) -> engine.Gates:
        return _BentGates(engine.Reference.garbler(*given), given[4], self.what)

    def evaluator(self, *given: Any) -> engine.Gates:
        return _BentGates(
            engine.Reference.evaluator(*given), given[3], "" if self.what == "table" else self.what
        )

    def keystreams(self, seeds: np.ndarray) -> engine.Keystreams:
        return _BentKeystreams(engine.Reference.keystreams(seeds), self.what)

    def transpose(self, *given: Any) -> None:
        engine.Reference.transpose(*given)
        given[2][-1, 1] ^= np.uint64(self.what == "transpose")

    def trees(self, *given: Any) -> engine.Trees:
        return _BentTrees(engine.Reference.trees(*given), self.what)

    def inner_products(self, *given: Any) -> np.ndarray:
        return _bent(engine.Reference.inner_products(*given), self.what == "products")


class _BentKeystreams:
    def __init__(self, streams: engine.Keystreams, what: str) -> None:
        self.streams, self.what = streams, what

    def fill(self, rows: np.ndarray) -> None:
        self.streams.fill(rows)
        _bent(rows, self.what == "keystreams")


class _BentTrees:
    def __init__(self, trees: engine.Trees, what: str) -> None:
        self.trees, self.what = trees, what
        self.grow = trees.grow

    def sum(self) -> np.ndarray:
        return _bent(self.trees.sum(), self.what == "sums")

    def vectors(self, correction: np.ndarray) -> np.ndarray:
        return _bent(self.trees.vectors(correction), self.what == "leaves")


def _bent(words: np.ndarray, bent: bool) -> np.ndarray:
    words.reshape(-1)[-1] ^= np.uint64(bent)
    return words


class _BentGates:
    def __init__(self, gates: engine.Gates, labels: np.ndarray, what: str) -> None:
        self.gates, self.labels, self.what = gates, labels, what
        self.rekey = gates.rekey

    def run(self, piece: Any, table: np.ndarray) -> None:
        self.gates.run(piece, table)
        if self.what == "labels":
            self.labels[-1, -1] ^= np.uint64(1 << 63)
        if self.what == "table":
            table[-1] ^= np.uint64(1)


def test_what_computes_the_reference_passes() -> None:
    loading.check(engine.Reference())


@pytest.mark.parametrize("what", WHATS)
def test_one_wrong_bit_is_noticed(what: str) -> None:
    with pytest.raises(Wrong):
        loading.check(Bent(what))


@pytest.mark.parametrize("what", WHATS)
def test_any_test_notices_engines_that_differ(what: str) -> None:
    """Of which all tests of circuits and transfers make use."""
    with pytest.raises(AssertionError, match="the engines"):
        loading.check(Both(Bent(what)))


def test_what_is_wrong_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(reason := compiled(), str):
        pytest.skip(reason)
    monkeypatch.setattr(loading, "Compiled", lambda lanes: Bent("table"))
    with pytest.raises(Wrong):
        loading.load()


def test_a_cpu_without_the_instructions_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading.binding, "get_host_cpu_features", lambda: {"aes": False, "avx512f": True})
    with pytest.raises(Unusable, match="no AES instructions"):
        loading.load()


@pytest.mark.parametrize(
    ("has", "lanes"),
    [
        ((), ()),
        (("vaes", "avx2", "avx512f"), ()),
        (("aes",), (2,)),
        (("aes", "avx512f", "avx2"), (2,)),
        (("aes", "vaes"), (2,)),
        (("aes", "vaes", "avx2"), (4, 2)),
        (("aes", "vaes", "avx2", "avx512f"), (8, 2)),
    ],
)
def test_lanes_are_those_whose_instructions_the_cpu_has(has: tuple[str, ...], lanes: tuple[int, ...]) -> None:
    assert lanes_of(dict.fromkeys(has, True)) == lanes


_NO_NEW_CODE = """
import ctypes, sys
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0):
    sys.exit("this system cannot be asked to refuse it")
from crypto.compiled.loading import Unusable, load
try:
    load()
except Unusable as error:
    print(error)
"""


def test_where_new_code_may_not_run_the_process_goes_on() -> None:
    """As systemd's MemoryDenyWriteExecute= and SELinux have it; LLVM alone would end the process."""
    if isinstance(reason := compiled(), str):
        pytest.skip(reason)
    ran = subprocess.run([sys.executable, "-c", _NO_NEW_CODE], capture_output=True, text=True, check=False)
    if "cannot be asked" in ran.stderr:
        pytest.skip(ran.stderr.strip())
    assert (ran.returncode, ran.stdout) == (0, "the system allows no new executable memory\n")
