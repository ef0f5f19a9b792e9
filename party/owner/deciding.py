"""Decision of an owner on a proposed job: noted in the audit, then kept."""

from __future__ import annotations

import os
import pwd
from datetime import datetime

from crypto.rng import SystemRng
from jobs.errors import MAX_SHARED_CHARS, ConfigError
from jobs.loading import read_task
from party.owner.approvals import NO_TERMS, Approvals, Decision, Proposal, Terms, terms_of
from party.owner.audit import Audit
from party.owner.config import PartyConfig
from party.owner.identity import in_words

MOST_RUNS = 1_000_000
"""Most runs of an approval."""


def approve(
    config: PartyConfig, proposal: Proposal, by: str, now: datetime, *, runs: int, until: datetime | None
) -> Decision:
    """Allow runs of a job. Raises ConfigError for no possible runs, PartyError without a usable certificate.

    until:  end of the approval; None: no end.
    """
    if not 1 <= runs <= MOST_RUNS:
        raise ConfigError("usage", f"{runs} runs", remedy=f"name a number of runs from 1 to {MOST_RUNS}")
    if until is not None and until <= now:
        raise ConfigError("usage", f"the last day, {in_words(until)}, is over", remedy="name a later day")
    return _decided(config, proposal, Decision(True, now, by, _terms(config, proposal), "", runs, until))


def deny(config: PartyConfig, proposal: Proposal, by: str, now: datetime, reason: str) -> Decision:
    """Deny a job. Raises ConfigError without a fit reason."""
    if len(reason) > MAX_SHARED_CHARS:
        raise ConfigError(
            "usage", f"the reason has more than {MAX_SHARED_CHARS} characters", remedy="write less"
        )
    if not reason.strip():
        raise ConfigError("usage", "the reason is empty", remedy="write words for the coordinator")
    return _decided(config, proposal, Decision(False, now, by, NO_TERMS, reason, 0))


def user() -> str:
    """Return the operating system's name of the user, whatever the environment says."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _terms(config: PartyConfig, proposal: Proposal) -> Terms:
    return terms_of(config, read_task(proposal.bundle), proposal.coordinator)


def _decided(config: PartyConfig, proposal: Proposal, decision: Decision) -> Decision:
    audit = Audit(config.state_dir, SystemRng())
    facts = {
        "job": proposal.job,
        "job_sha256": proposal.job_sha256,
        "coordinator": proposal.coordinator,
        "user": decision.by,
        "approved": decision.approved,
        "reason": decision.reason,
        "runs": decision.runs,
        "until": None if decision.until is None else in_words(decision.until),
        "certificates": decision.terms.certificates,
    }
    Approvals(config.state_dir).decide(proposal, decision, lambda: audit.note("decision", facts))
    return decision
