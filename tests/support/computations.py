"""What the circuits of a run let out, and what they must cost: every two-party computation, watched at both ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from crypto.batch import Run
from crypto.circuit import Circuit, Held, Region, To
from crypto.rounds import Rounds
from crypto.two_party import EvaluatorSession, GarblerSession, Inputs, Outputs
from tests.support.sessions import transfer_bytes


@dataclass(frozen=True)
class Computed:
    """One batch of a circuit at one end. out: what does not stay in the session, as lists, by (name, for whom)."""

    role: Held
    circuit: Circuit
    batch: int
    out: Mapping[tuple[str, To], Any]

    @property
    def _agreed(self) -> Run:
        return Run(self.circuit, self.batch, {}, b"")

    @property
    def more_rounds(self) -> int:
        """Rounds beyond those of a batch that is one window of chunks."""
        run = self._agreed
        return 2 * (-(-len(run.chunks) // run.lookahead) - 1) if run.evaluator_opens else 0

    @property
    def bytes_sent(self) -> int:
        """By both ends together."""
        run, circuit = self._agreed, self.circuit
        total = 16
        for chunk in run.chunks:
            n = chunk.stop - chunk.start
            total += 32 * n * circuit.and_gates + (len(run.decoded.rows) * n + 7) // 8
            total += transfer_bytes(circuit.region_rows[Region.EVALUATOR] * n)
            total += 8 * n * len(run.returned.rows)
        return total


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Computed]:
    """Everything that sessions compute from now on."""
    seen: list[Computed] = []
    for session in (GarblerSession, EvaluatorSession):
        monkeypatch.setattr(session, "run", _watching(session.run, seen))
    return seen


def _watching(
    original: Callable[..., Rounds[Outputs]], seen: list[Computed]
) -> Callable[..., Rounds[Outputs]]:
    def run(self: Any, circuit: Circuit, batch: int, inputs: Inputs) -> Rounds[Outputs]:
        outputs = yield from original(self, circuit, batch, inputs)
        destinations = {name: group.to for name, group in circuit.outputs.items()}
        out = {
            (name, destinations[name]): value.tolist()  # type: ignore[union-attr]
            for name, value in outputs.items()
            if destinations[name] is not To.CARRIED
        }
        seen.append(Computed(self.role, circuit, batch, out))
        return outputs

    return run
