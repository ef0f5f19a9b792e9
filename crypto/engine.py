"""The engine does the bulk of the computing: gates of garbled circuits, and the bit transpose of oblivious
transfer.

NumPy is the reference. Another engine computes the same bits faster; what is sent, when, and with which coins does
not depend on it, so two parties need not have the same. A process has one in force, for whatever begins from then on.
Whoever starts the process decides which: nothing here looks for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from crypto.blocks import Blocks, transpose_rows
from crypto.circuit import Circuit, Rows
from crypto.encoding import Words
from crypto.half_gates import EvaluatorGates, GarblerGates
from crypto.pieces import Piece


class Gates(Protocol):
    """One side's gates of ``n`` instances of a circuit, on the rows of labels and public bits it was made for."""

    def rekey(self, key: bytes) -> None:
        """Go on with the next chunk of instances, under another key."""

    def run(self, piece: Piece, table: Words) -> None:
        """Work through the next piece; ``table`` is written by the garbler's side and read by the evaluator's."""


class Engine(Protocol):
    """See the module."""

    def garbler(
        self, circuit: Circuit, n: int, delta: Words, key: bytes, labels: Rows, public: Rows
    ) -> Gates:
        """The garbler's gates."""
        ...

    def evaluator(self, circuit: Circuit, n: int, key: bytes, labels: Rows, public: Rows) -> Gates:
        """The evaluator's gates."""
        ...

    def transpose(self, rows: Words, scratch: Words, out: Blocks) -> None:
        """As :func:`crypto.blocks.transpose_rows`."""


class Reference:
    """NumPy."""

    garbler = GarblerGates
    evaluator = EvaluatorGates
    transpose = staticmethod(transpose_rows)


@dataclass(slots=True)
class _Choice:
    """The engine in force; who waits for how many more AND gates."""

    engine: Engine
    missing: int = 0
    waiting: Callable[[], None] | None = None


_choice = _Choice(Reference())


def in_force() -> Engine:
    """The engine for what begins now."""
    return _choice.engine


def use(engine: Engine) -> None:
    """Put an engine in force."""
    _choice.engine = engine


def after(and_gates: int, act: Callable[[], None]) -> None:
    """Have ``act`` called once this process begins another such number of AND gates; it may call :func:`use`."""
    _choice.missing, _choice.waiting = and_gates, act


def begin(and_gates: int) -> None:
    """Count what is begun, all instances together."""
    _choice.missing -= and_gates
    if _choice.missing <= 0 and _choice.waiting is not None:
        act, _choice.waiting = _choice.waiting, None
        act()
