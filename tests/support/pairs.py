"""A protocol of the pair's engines, at both ends."""

from __future__ import annotations

from typing import Any

from anonymize.joint.engine import Engine
from anonymize.tds import Observer
from crypto.local import run_local
from tests.support.sessions import two_party_sessions


def at_the_pair(protocol: Any) -> list[Any]:
    """Run a protocol of an engine at both ends."""
    engines = [Engine(session, Observer()) for session in two_party_sessions()]
    results, _ = run_local({"g": protocol(engines[0]), "e": protocol(engines[1])})
    return [results["g"], results["e"]]
