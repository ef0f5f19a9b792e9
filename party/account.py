"""The account of a run's costs: what a party knows of its own, and what of it may stand in the report.

In a vertical LKC run the traffic of validity tests tells how many candidates were refused, which the reveal ledger
tells their owner and the holder only. So no cost of that phase leaves the party, nor a sum that holds it. Of a DP
run the report has only what follows from the job and the release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from party.job import Job
from party.link import Link
from party.runner import Meter


@dataclass(frozen=True)
class _Withheld:
    """What does not leave a party.

    phases:  these at all. seconds: those of these, None for all. links: traffic by peer.
    """

    phases: frozenset[str] = frozenset()
    seconds: frozenset[str] | None = frozenset()
    links: bool = False


_WITHHELD: Mapping[tuple[str, str], _Withheld] = {
    # In the last two a party waits for others that may still be testing: their seconds tell of it.
    ("lkc", "vertical"): _Withheld(frozenset({"validity"}), frozenset({"score", "integrate"}), links=True),
    # Seconds depend, however little, on the data.
    ("dp", "horizontal"): _Withheld(seconds=None, links=True),
    # Messages of these grow with the number of records, which only the parties know.
    ("dp", "vertical"): _Withheld(frozenset({"align", "count"}), None, links=True),
}


def own_account(meter: Meter, links: Mapping[str, Link]) -> dict[str, Any]:
    """All that this party counted: seconds, bytes, rounds and gates by phase, traffic by peer."""
    return {
        "phases": {name: asdict(cost) for name, cost in meter.phases.items()},
        "links": {peer: asdict(link.traffic) for peer, link in links.items()},
    }


def public_account(job: Job, meter: Meter, links: Mapping[str, Link]) -> dict[str, Any]:
    """What the report may say of it."""
    model = "lkc" if job.model.dp is None else "dp"
    withheld = _WITHHELD.get((model, job.partition), _Withheld())
    account = own_account(meter, {} if withheld.links else links)
    account["phases"] = {n: cost for n, cost in account["phases"].items() if n not in withheld.phases}
    for name, cost in account["phases"].items():
        if withheld.seconds is None or name in withheld.seconds:
            del cost["seconds"]
    return account
