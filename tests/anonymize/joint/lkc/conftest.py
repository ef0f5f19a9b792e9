"""What several tests of joint LKC runs look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anonymize.joint.disclosure import RevealLedger
from tests.support.computations import Computed, watched
from tests.support.horizontal import Revealed


@pytest.fixture
def revealed(monkeypatch: pytest.MonkeyPatch) -> Revealed:
    """Everything revealed, with its values (name, value, to), one list for every party of every run."""
    ledgers: list[RevealLedger] = []
    seen: Revealed = []
    original = RevealLedger.reveal

    def recording(self: RevealLedger, name: str, value: Any, to: Any, shape: Any = None) -> Any:
        if not any(ledger is self for ledger in ledgers):
            ledgers.append(self)
            seen.append([])
        place = next(i for i, ledger in enumerate(ledgers) if ledger is self)
        seen[place].append((name, value.tolist() if isinstance(value, np.ndarray) else value, to))
        return original(self, name, value, to, shape)

    monkeypatch.setattr(RevealLedger, "reveal", recording)
    return seen


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[Computed]:
    """Every batch of circuits that the pair evaluates, at both ends."""
    return watched(monkeypatch)
