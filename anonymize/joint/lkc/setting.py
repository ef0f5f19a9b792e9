"""Common state of the parts of a vertical LKC run at a party, and the columns that concern each party."""

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
    """Common state of the parts of a run at a party."""

    roster: Roster
    columns: Columns
    request: Request
    ledger: RevealLedger
    observer: Observer
    rng: Rng


def protected_of(columns: Columns, party: str, request: Request, qid: int | None = None) -> tuple[int, ...]:
    """Return the party's sensitive columns in criteria that bound inferences.

    qid:  number of a candidate's column: only criteria on its groups count.
    """
    entries = request.requirement.entries(request.schema)
    criteria = inferences(criteria_of(entries if qid is None else concerned(entries, qid)))
    looked_at = {column for counted in tallies_of(criteria) for column in counted.columns}
    return tuple(i for i in columns.sensitive_of(party) if i in looked_at)


def asked_about(columns: Columns, qid: int, parties: Sequence[str], request: Request) -> tuple[str, ...]:
    """Return the parties whose sensitive columns a column's candidates are tested against, without the owner."""
    return tuple(p for p in parties if p != columns.qid[qid] and protected_of(columns, p, request, qid))


def asked_by(columns: Columns, owner: str, parties: Sequence[str], request: Request) -> tuple[str, ...]:
    """Return the parties whose sensitive columns some of an owner's candidates are tested against."""
    asked = {p for qid in columns.qid_of(owner) for p in asked_about(columns, qid, parties, request)}
    return tuple(p for p in parties if p in asked)
