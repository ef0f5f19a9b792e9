"""A party's knowledge of its own rows and costs after a run, and the part allowed in the report.

In a vertical LKC run the traffic of validity tests shows the number of refused candidates, which the reveal ledger
discloses to their owner and the holder only. The traffic of a shuffle shows the number of each party's rows, which
only the leader learns. So no cost of such a phase leaves the party, nor a sum with such a cost. For a DP run the
report has only values that follow from job and release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from jobs.data.tables import Table
from jobs.task import Result, Task
from party.net.link import Link
from party.net.runner import Meter

AGAIN = "the result of an earlier run was given again; see the account of the earlier run"
"""Sentence for the owner in the account of a repetition."""


def account_of(table: Table, n_matched: int | None, result: Result) -> dict[str, Any]:
    """Return the fate of the party's rows and records, in numbers and sentences, and the party's private reveals.

    For the owner: no part stands in a report. ``n_matched`` as in :meth:`Table.told`.
    """
    fields, words = table.told(n_matched)
    again = [AGAIN] if result.repeated else []
    return {"data": fields, "in_words": [*words, *again], **result.own}


def own_costs(meter: Meter, links: Mapping[str, Link]) -> dict[str, Any]:
    """Return all counts of the party: seconds, bytes, rounds and gates by phase, traffic by peer."""
    return {
        "phases": {name: asdict(cost) for name, cost in meter.phases.items()},
        "links": {peer: asdict(link.traffic) for peer, link in links.items()},
    }


def public_costs(task: Task, meter: Meter, links: Mapping[str, Link]) -> dict[str, Any]:
    """Return the costs allowed in the report."""
    withheld = task.mode.withheld
    kept_back = withheld.links or not withheld.phases.isdisjoint(meter.phases)
    costs = own_costs(meter, {} if kept_back else links)
    costs["phases"] = {n: cost for n, cost in costs["phases"].items() if n not in withheld.phases}
    for name, cost in costs["phases"].items():
        if withheld.seconds is None or name in withheld.seconds:
            del cost["seconds"]
    return costs
