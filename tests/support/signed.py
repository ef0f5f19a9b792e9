"""Signatures of a joint run, as its parties give them, without the run: what a forger keeps of a report."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from jobs.release.signatures import Signed, Statement, signature_fields
from jobs.release.sums import digests_of
from jobs.task import Task
from party.owner.identity import make_credentials
from party.owner.signing import der_of, sign


def signatures_of(task: Task, encoded: bytes, tables: Mapping[str, bytes] | None = None) -> dict[str, Any]:
    """Return signatures of all parties as a report has them. encoded: their result. tables: what follows from
    it.
    """
    roster, result = task.job.roster, hashlib.sha256(encoded).hexdigest()
    signed = []
    for party in roster:
        keys, links = make_credentials(party), {peer: _ANY for peer in roster if peer != party}
        statement = Statement(
            party,
            task.digest.hex(),
            _ANY[:32],
            dict.fromkeys(roster, _ANY),
            links,
            links,
            result,
            digests_of(tables or {}),
        )
        signed.append(Signed(statement, sign(keys, statement.encoded), der_of(keys.certificate)))
    return signature_fields(signed)


_ANY = "5a" * 32
