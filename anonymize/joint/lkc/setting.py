"""Commons of the parts of a vertical LKC run at one party, and the columns that concern each party."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anonymize.criteria.criterion import inferences, tallies_of
from anonymize.joint.columns import Columns
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.lkc.request import Request
from anonymize.joint.roster import Roster
from anonymize.lkc.requirement import concerned, criteria_of
from anonymize.tds import Observer
from crypto.rng import Rng


@dataclass(frozen=True)
class Setting:
    """Commons of the parts of a run at one party."""

    roster: Roster
    columns: Columns
    request: Request
    ledger: RevealLedger
    observer: Observer
    rng: Rng


def protected_of(columns: Columns, party: str, request: Request, qid: int | None = None) -> tuple[int, ...]:
    """The party's sensitive columns of which some criterion bounds what a group tells.

    qid:  the column of a candidate, by its number: what bounds inferences from its groups alone.
    """
    entries = request.requirement.entries(request.schema)
    criteria = inferences(criteria_of(entries if qid is None else concerned(entries, qid)))
    looked_at = {column for counted in tallies_of(criteria) for column in counted.columns}
    return tuple(i for i in columns.sensitive_of(party) if i in looked_at)


def asked_about(columns: Columns, qid: int, parties: Sequence[str], request: Request) -> tuple[str, ...]:
    """The parties whose sensitive columns a candidate of a column is tested against; never its owner."""
    return tuple(p for p in parties if p != columns.qid[qid] and protected_of(columns, p, request, qid))


def asked_by(columns: Columns, owner: str, parties: Sequence[str], request: Request) -> tuple[str, ...]:
    """The parties whose sensitive columns some of an owner's candidates are tested against."""
    asked = {p for qid in columns.qid_of(owner) for p in asked_about(columns, qid, parties, request)}
    return tuple(p for p in parties if p in asked)
