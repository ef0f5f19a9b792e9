"""Outputs and costs of the circuits of a run: every two-party computation, watched at both ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from crypto.batch import Run, more_rounds
from crypto.circuit import Circuit, Held, Region, To
from crypto.rounds import Rounds
from crypto.two_party import Asked, EvaluatorSession, GarblerSession, Outputs
from tests.support.sessions import transfer_bytes


def numbers_of(outputs: Outputs, name: str) -> list[int]:
    """Return the words of an output opened to the party."""
    values = outputs[name]
    assert isinstance(values, np.ndarray)
    return [int(value) for value in values[:, 0]]


@dataclass(frozen=True)
class Computed:
    """One batch of a circuit at one end.

    out:          what does not stay in the session, as lists, by (name, for whom).
    more_rounds:  beyond those of batches whose choices are all under way at once; of several that go side by side the
                  first one has those of all.
    """

    role: Held
    circuit: Circuit
    batch: int
    out: Mapping[tuple[str, To], Any]
    more_rounds: int

    @property
    def _agreed(self) -> Run:
        return Run(self.circuit, self.batch, {}, b"")

    @property
    def bytes_sent(self) -> int:
        """By both ends together."""
        run, circuit = self._agreed, self.circuit
        total = 16
        for chunk in run.chunks:
            n = chunk.stop - chunk.start
            total += 16 * n * circuit.table_blocks + (len(run.decoded.rows) * n + 7) // 8
            total += transfer_bytes(circuit.region_rows[Region.EVALUATOR] * n)
            total += (16 + 8) * n * len(run.returned.rows)
        return total


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Computed]:
    """Everything that sessions compute from now on."""
    seen: list[Computed] = []
    for session in (GarblerSession, EvaluatorSession):
        monkeypatch.setattr(session, "run_all", _watching(session.run_all, seen))
    return seen


def _watching(original: Callable[..., Rounds[Any]], seen: list[Computed]) -> Callable[..., Rounds[Any]]:
    def run_all(self: Any, asked: Sequence[Asked]) -> Rounds[list[Outputs]]:
        results = yield from original(self, asked)
        more = more_rounds([Run(circuit, batch, {}, b"") for circuit, batch, _ in asked])
        for (circuit, batch, _), outputs in zip(asked, results, strict=True):
            destinations = {name: group.to for name, group in circuit.outputs.items()}
            out = {
                (name, destinations[name]): value.tolist()
                for name, value in outputs.items()
                if destinations[name] is not To.CARRIED
            }
            seen.append(Computed(self.role, circuit, batch, out, more))
            more = 0
        return results  # type: ignore[no-any-return]

    return run_all
