"""Fixtures of several tests of whole runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from party.net import client, server


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every message that any of us hands to gRPC, as bytes."""
    taken: list[bytes] = []

    def tapped(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def tap(value: Any) -> Any:
            message = convert(value)
            taken.append(message.SerializeToString())
            return message

        return tap

    for module, name in (
        (client, "from_envelope"),
        (client, "from_request"),
        (server, "from_envelope"),
        (server, "from_event"),
    ):
        monkeypatch.setattr(module, name, tapped(getattr(module, name)))
    return taken
