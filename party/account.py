"""The account of a run's costs: what a party knows of its own, and what of it may stand in the report.

In a vertical run the traffic of validity tests tells how many candidates were refused, which the reveal ledger
tells their owner and the holder only. So no cost of that phase leaves the party, nor a sum that holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from party.link import Link
from party.runner import Meter

_TESTS = {"vertical": frozenset({"validity"})}
_WAITING = {"vertical": frozenset({"score", "integrate"})}
"""Phases in which a party waits for others that may still be testing: their seconds tell of it."""


def own_account(meter: Meter, links: Mapping[str, Link]) -> dict[str, Any]:
    """All that this party counted: seconds, bytes, rounds and gates by phase, traffic by peer."""
    return {
        "phases": {name: asdict(cost) for name, cost in meter.phases.items()},
        "links": {peer: asdict(link.traffic) for peer, link in links.items()},
    }


def public_account(partition: str, meter: Meter, links: Mapping[str, Link]) -> dict[str, Any]:
    """What the report may say of it."""
    account, hidden = own_account(meter, links), _TESTS.get(partition, frozenset())
    account["phases"] = {name: cost for name, cost in account["phases"].items() if name not in hidden}
    for name in _WAITING.get(partition, frozenset()) & set(account["phases"]):
        del account["phases"][name]["seconds"]
    if hidden:
        account["links"] = {}
    return account
