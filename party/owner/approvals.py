"""Owner's decisions on proposed jobs, in a SQLite file beside the privacy ledger.

A proposal is a job of a coordinator, known by its job hash. The proposal waits until the owner approves or denies the
job, or until the proposal expires. An approval covers a number of runs, until a time, on terms: the certificates of
the coordinator and of the other parties, and the version of the program. If an approval has lapsed, and the
coordinator asks again, the job waits again.

Decisions and begun runs are only added: the last decision counts, and a run is on disk before the run begins. Old
proposals are removed once their approvals are over.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

from jobs.errors import ConfigError, PartyError, PolicyError
from jobs.owner.durable import time_as_text, time_of_text, transaction
from jobs.task import Task
from jobs.version import __version__
from party.owner.config import PartyConfig, usable_peer
from party.owner.identity import in_words

APPROVALS = "approvals.sqlite"
DAYS = 30
"""Days that a proposal waits for a decision."""
MOST_WAITING, MOST_BYTES = 100, 64 << 20
"""Most proposals of a coordinator that wait, and most bytes of the proposals."""
MOST_OVER = 1000
"""Approved jobs that are kept after their approvals are over; see :func:`_forget`."""
LEAST_DIGITS = 8
"""Fewest digits of a job hash that name a proposal."""

State: TypeAlias = Literal["unknown", "waiting", "approved", "denied"]
"""State of a proposal. unknown: never proposed, no longer kept, or approved for runs that are over."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS proposals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_sha256 TEXT NOT NULL,
    coordinator TEXT NOT NULL,
    job TEXT NOT NULL,
    bundle BLOB NOT NULL,
    proposed TEXT NOT NULL,
    UNIQUE (job_sha256, coordinator)
);
CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER PRIMARY KEY,
    proposal INTEGER NOT NULL,
    approved INTEGER NOT NULL,
    decided TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    runs INTEGER NOT NULL,
    until TEXT NOT NULL,
    terms TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS begun (
    run BLOB PRIMARY KEY,
    decision INTEGER NOT NULL,
    began TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS asked (
    decision INTEGER PRIMARY KEY,
    asked TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS unnoted (
    decision INTEGER PRIMARY KEY
);
CREATE TABLE IF NOT EXISTS untold (
    proposal INTEGER PRIMARY KEY
);
CREATE INDEX IF NOT EXISTS decisions_of_proposals ON decisions (proposal);
CREATE INDEX IF NOT EXISTS runs_of_decisions ON begun (decision)
"""
_THIS = "WHERE job_sha256 = ? AND coordinator = ?"
_UNDECIDED = "id NOT IN (SELECT proposal FROM decisions)"

_SIZE = f"""
SELECT count(*), coalesce(sum(length(bundle)), 0) FROM proposals WHERE coordinator = ? AND {_UNDECIDED}
"""  # noqa: S608 (made of the constant above)
"""Number and bytes of the proposals of a coordinator that wait for their first decision."""

_IS_LAST = "decisions.id = (SELECT max(id) FROM decisions WHERE proposal = proposals.id)"

_OVER = f"""
SELECT proposals.id, job, decided FROM proposals JOIN decisions ON {_IS_LAST}
WHERE approved
    AND (until <> '' AND until <= ? OR runs <= (SELECT count(*) FROM begun WHERE decision = decisions.id))
    AND decisions.id NOT IN (SELECT decision FROM asked UNION SELECT decision FROM unnoted)
ORDER BY decisions.id DESC LIMIT -1 OFFSET ?
"""  # noqa: S608 (made of the constants above)
"""Proposals whose approvals cover no run any more and that nobody asked for again, but the newest."""

_FORGOTTEN = f"""
SELECT id FROM ({_OVER}) AS over WHERE 2 <= (
    SELECT count(DISTINCT job_sha256) FROM proposals JOIN decisions ON {_IS_LAST}
    WHERE approved AND job = over.job AND decided > over.decided
)
"""  # noqa: S608 (made of the constants above)
"""Proposals of `_OVER` that :meth:`Approvals.before` returns for no job: two of the name were approved later."""

_FORGET = f"DELETE FROM proposals WHERE id IN ({_FORGOTTEN})"  # noqa: S608 (made of the constant above)

_LAST = f"""
SELECT proposals.id, job_sha256, coordinator, job, bundle, proposed, decisions.id, approved, decided, decided_by,
    terms, reason, runs, until, (SELECT count(*) FROM begun WHERE decision = decisions.id), asked,
    EXISTS (SELECT 1 FROM unnoted WHERE decision = decisions.id)
FROM proposals
LEFT JOIN decisions ON {_IS_LAST}
LEFT JOIN asked ON asked.decision = decisions.id
"""  # noqa: S608 (made of the constants above)
"""Proposals with their last decisions."""


@dataclass(frozen=True)
class Terms:
    """Terms of an approval.

    certificates:  SHA-256 of the certificate of the coordinator and of each other party, hexadecimal, by name.
    version:       first two numbers of the program's version.
    """

    certificates: Mapping[str, str]
    version: str

    def changes(self, now: Terms) -> list[str]:
        """Say how the present terms differ from these terms."""
        names = sorted({*self.certificates, *now.certificates})
        changed = [name for name in names if self.certificates.get(name) != now.certificates.get(name)]
        said = [f"the certificate of {name} changed" for name in changed]
        if self.version != now.version:
            said.append(f"the program changed from version {self.version} to {now.version}")
        return said

    def as_text(self) -> str:
        return json.dumps({"certificates": dict(self.certificates), "version": self.version}, sort_keys=True)

    @staticmethod
    def of_text(text: str) -> Terms:
        fields = json.loads(text)
        return Terms(fields["certificates"], fields["version"])


def terms_of(config: PartyConfig, task: Task, coordinator: str) -> Terms:
    """Return the present terms of a job. Raises PartyError for a party without a usable certificate."""
    return terms_with(config, [coordinator, *(name for name in task.job.roster if name != config.name)])


def terms_with(config: PartyConfig, names: Iterable[str]) -> Terms:
    """Return the present terms of work with some others. Raises PartyError for one without a usable certificate."""
    certificates = {name: usable_peer(config, name).fingerprint for name in names}
    return Terms(certificates, ".".join(__version__.split(".")[:2]))


@dataclass(frozen=True)
class Decision:
    """Decision of an owner on a proposal.

    by:      user of the operating system.
    reason:  words for the coordinator of a denied job.
    runs:    number of runs that an approval covers.
    until:   end of an approval; None: no end.
    begun:   runs of the approval that have begun.
    asked:   time at which the coordinator asked again, after the approval had lapsed.
    noted:   False if the audit may have no line of the decision. An approval does not hold then; a denial does.
    number:  of the decision in the store; 0: not kept yet.
    """

    approved: bool
    decided: datetime
    by: str
    terms: Terms
    reason: str = ""
    runs: int = 1
    until: datetime | None = None
    begun: int = 0
    asked: datetime | None = None
    noted: bool = field(default=True, compare=False)
    number: int = field(default=0, compare=False)

    def lapse(self, terms: Terms, now: datetime) -> str:
        """Say why an approval does not cover a run now; empty: the approval covers a run."""
        found = self.terms.changes(terms)
        if not self.noted:
            found.append("the decision was not finished: decide again")
        if self.begun >= self.runs:
            found.append(f"the approved runs have begun ({self.runs})")
        if self.until is not None and now >= self.until:
            found.append(f"the approval ended at {in_words(self.until)}")
        return "; ".join(found)


@dataclass(frozen=True)
class Proposal:
    """Job that a coordinator proposed.

    bundle:    the job's bytes.
    decision:  the last decision; None: the proposal waits for its first decision.
    """

    number: int
    job_sha256: str
    coordinator: str
    job: str
    bundle: bytes = field(repr=False)
    proposed: datetime
    decision: Decision | None = None

    @property
    def last_decision(self) -> int:
        """Number of the last decision; 0 without a decision."""
        return 0 if self.decision is None else self.decision.number

    @property
    def denial(self) -> Decision | None:
        """Last decision if the decision is a denial."""
        return None if self.decision is None or self.decision.approved else self.decision

    @property
    def expires(self) -> datetime:
        """End of the wait for a first decision."""
        return self.proposed + timedelta(days=DAYS)

    def standing(self, terms: Terms, now: datetime) -> Standing:
        """Return the state of the proposal under the present terms."""
        decision = self.decision
        if decision is None:
            return Standing("waiting")
        if not decision.approved:
            return Standing("denied", decision.reason)
        lapse = decision.lapse(terms, now)
        if not lapse:
            return Standing("approved")
        return Standing("unknown" if decision.asked is None else "waiting", own=lapse)


@dataclass(frozen=True)
class Standing:
    """State of a job at an owner.

    reason:  words for the coordinator.
    own:     words for the owner: the reason that an approval does not hold any more.
    """

    state: State
    reason: str = ""
    own: str = field(default="", repr=False)


UNKNOWN = Standing("unknown")


class Approvals:
    """Store of proposals and decisions."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / APPROVALS

    def propose(
        self,
        task: Task,
        coordinator: str,
        now: datetime,
        noted: Callable[[], object] = lambda: None,
        *,
        told: bool = True,
    ) -> bool:
        """Keep a proposal; return False if the same job of the coordinator is kept already.

        noted:  called before a new proposal is kept. If it raises, nothing is kept.
        told:   False if no owner is told, because the policy asks for no decision.

        Raises PolicyError if too many proposals of the coordinator wait.
        """
        bundle = task.bundle.encoded
        with self._changed(now) as connection:
            if _found(connection, task.digest.hex(), coordinator):
                return False
            n_waiting, n_bytes = connection.execute(_SIZE, (coordinator,)).fetchone()
            if n_waiting >= MOST_WAITING or n_bytes + len(bundle) > MOST_BYTES:
                raise PolicyError(
                    "proposals-full", f"too many proposals of {coordinator} wait for a decision"
                )
            made = connection.execute(
                "INSERT INTO proposals (job_sha256, coordinator, job, bundle, proposed) VALUES (?, ?, ?, ?, ?)",
                (task.digest.hex(), coordinator, task.job.name, bundle, time_as_text(now)),
            ).lastrowid
            if not told:
                connection.execute("INSERT INTO untold VALUES (?)", (made,))
            noted()
        return True

    def ask_again(
        self, task: Task, coordinator: str, now: datetime, noted: Callable[[], object] = lambda: None
    ) -> bool:
        """Let a job wait again whose approval has lapsed, or that needed no decision until now; return False if the
        job waits already.

        noted:  called before the job waits. If it raises, nothing changes.
        """
        with self._changed(now) as connection:
            kept = _found(connection, task.digest.hex(), coordinator)
            if kept is None:
                return False
            untold = connection.execute("DELETE FROM untold WHERE proposal = ?", (kept.number,)).rowcount > 0
            lapsed = kept.decision is not None and kept.decision.asked is None
            if lapsed:
                connection.execute("INSERT INTO asked VALUES (?, ?)", (kept.last_decision, time_as_text(now)))
            elif kept.decision is not None or not untold:
                return False
            noted()
        return True

    def standing(self, digest: bytes, coordinator: str, terms: Terms, now: datetime) -> Standing:
        """Return the state of a coordinator's job under the present terms."""
        if not self._path.exists():
            return UNKNOWN
        with self._changed(now) as connection:
            return _standing(connection, digest, coordinator, terms, now)

    def begin(self, digest: bytes, coordinator: str, terms: Terms, run: bytes, now: datetime) -> None:
        """Count a run of an approved job, durably. Raises PolicyError if no approval covers the run.

        run:  16 bytes. Raises PartyError for a run that has begun before.
        """
        with self._changed(now) as connection:
            standing = _standing(connection, digest, coordinator, terms, now)
            if standing.state != "approved":
                raise refusal(standing)
            if connection.execute("SELECT 1 FROM begun WHERE run = ?", (run,)).fetchone():
                raise PartyError("peer-protocol", "a run with this number has begun before")
            connection.execute(
                "INSERT INTO begun (run, decision, began) SELECT ?, max(decisions.id), ? FROM decisions "
                "JOIN proposals ON proposals.id = proposal WHERE job_sha256 = ? AND coordinator = ?",
                (run, time_as_text(now), digest.hex(), coordinator),
            )

    def decide(
        self, proposal: Proposal, decision: Decision, noted: Callable[[], object] = lambda: None
    ) -> None:
        """Keep a decision. Raises ConfigError if the proposal has expired, or was decided, meanwhile.

        noted:  notes the decision, once it is on disk. Until it has returned and this is on disk, too, an approval
                does not hold, so that no run rests on a decision without a line. A denial holds at once.
        """
        until = "" if decision.until is None else time_as_text(decision.until)
        with self._changed(decision.decided) as connection:
            kept = _found(connection, proposal.job_sha256, proposal.coordinator)
            if kept is None:
                raise _unknown(proposal.job_sha256)
            if kept.last_decision != proposal.last_decision:
                raise decided_meanwhile()
            made = connection.execute(
                "INSERT INTO decisions (proposal, approved, decided, decided_by, reason, runs, until, terms) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    kept.number,
                    decision.approved,
                    time_as_text(decision.decided),
                    decision.by,
                    decision.reason,
                    decision.runs,
                    until,
                    decision.terms.as_text(),
                ),
            ).lastrowid
            connection.execute("INSERT INTO unnoted VALUES (?)", (made,))
        noted()
        with self._changed(decision.decided) as connection:
            connection.execute("DELETE FROM unnoted WHERE decision = ?", (made,))
            _forget(connection, decision.decided)

    def all(self, now: datetime) -> list[Proposal]:
        """Return all proposals, oldest first."""
        return self._found_if_any("ORDER BY proposals.id", now)

    def waiting(self, now: datetime) -> list[Proposal]:
        """Return the proposals without a decision, or asked for again after the last decision, oldest first.

        The proposals are few: the store is bounded, and each repeated question follows a decision.
        """
        where = "WHERE decisions.id IS NULL OR asked IS NOT NULL ORDER BY proposals.id"
        return self._found_if_any(where, now)

    def decided(self, last: int, now: datetime) -> list[Proposal]:
        """Return the proposals with the last decisions, newest decision first, without those asked for again."""
        where = (
            f"WHERE decisions.id IS NOT NULL AND asked IS NULL ORDER BY decisions.id DESC LIMIT {int(last)}"
        )
        return self._found_if_any(where, now)

    def exactly(self, job_sha256: str, coordinator: str, now: datetime) -> Proposal | None:
        """Return the proposal of a coordinator with a whole job hash."""
        found = self._found_if_any(_THIS, now, (job_sha256, coordinator))
        return next(iter(found), None)

    def _found_if_any(self, where: str, now: datetime, given: Sequence[str] = ()) -> list[Proposal]:
        if not self._path.exists():
            return []
        with self._changed(now) as connection:
            return _proposals(connection, where, given)

    def named(self, digits: str, coordinator: str | None, now: datetime) -> Proposal:
        """Return the proposal whose job hash begins with some digits. Raises ConfigError without just one.

        coordinator:  the proposer; None: any coordinator.
        """
        digits = digits.lower()
        if len(digits) < LEAST_DIGITS or not set(digits) <= set("0123456789abcdef"):
            raise ConfigError(
                "usage",
                f"{digits!r} is no job hash",
                remedy=f"write {LEAST_DIGITS} digits or more of the hash; `party jobs` lists the hashes",
            )
        of_hash = self._found_if_any("WHERE job_sha256 LIKE ?", now, (f"{digits}%",))
        found = [each for each in of_hash if coordinator in (None, each.coordinator)]
        if not found:
            raise _unknown(digits)
        if len({each.job_sha256 for each in found}) > 1:
            raise ConfigError(
                "usage", f"several jobs begin with {digits}", remedy="write more digits; see `party jobs`"
            )
        if len(found) > 1:
            names = ", ".join(each.coordinator for each in found)
            raise ConfigError(
                "usage", f"{names} proposed the job", remedy="name one of them with --coordinator"
            )
        return found[0]

    def before(self, proposal: Proposal, now: datetime) -> Proposal | None:
        """Return the last approved other job of the same name, of any coordinator."""
        return self._other(proposal, "approved ORDER BY decided DESC", now)

    def beside(self, proposal: Proposal, now: datetime) -> Proposal | None:
        """Return the last proposed other job of the same name that is not approved, of any coordinator."""
        return self._other(proposal, "approved IS NOT TRUE ORDER BY proposed DESC", now)

    def same(self, proposal: Proposal, now: datetime) -> list[Proposal]:
        """Return the same job as other coordinators proposed the job."""
        given = (proposal.job_sha256, proposal.coordinator)
        return self._found_if_any("WHERE job_sha256 = ? AND coordinator <> ?", now, given)

    def _other(self, proposal: Proposal, which: str, now: datetime) -> Proposal | None:
        where = f"WHERE job = ? AND job_sha256 <> ? AND {which} LIMIT 1"
        given = (proposal.job, proposal.job_sha256)
        return next(iter(self._found_if_any(where, now, given)), None)

    def _changed(self, now: datetime) -> AbstractContextManager[sqlite3.Connection]:
        """Return a transaction, after the proposals that have expired are gone."""
        expired = time_as_text(now - timedelta(days=DAYS))
        dropping = f"DELETE FROM proposals WHERE proposed <= '{expired}' AND {_UNDECIDED}"  # noqa: S608 (a time of ours)
        return transaction(self._path, f"{_SCHEMA}; {dropping}", self._failed)

    def _failed(self, error: sqlite3.Error) -> PartyError:
        return PartyError(
            "io-failed", "the approvals cannot be read or written", cause=f"{self._path}: {error}"
        )


NO_TERMS = Terms({}, "")
"""Terms of a denial."""


def refusal(standing: Standing) -> PolicyError:
    """Return the error for a job that is not approved."""
    if standing.state == "denied":
        return PolicyError("approval-denied", f"the owner denied the job: {standing.reason}")
    return PolicyError("approval-waiting", "the owner has not approved the job", private=standing.own)


def decided_meanwhile() -> ConfigError:
    """Return the error for a decision on what has changed since the owner looked."""
    return ConfigError(
        "usage",
        "the job, a decision on the job or a certificate has changed since you looked; nothing was decided",
        remedy="look at the job again, then decide",
    )


def _unknown(digits: str) -> ConfigError:
    return ConfigError(
        "usage", f"no proposal waits with the job hash {digits}", remedy="`party jobs` lists the proposals"
    )


def _standing(
    connection: sqlite3.Connection, digest: bytes, coordinator: str, terms: Terms, now: datetime
) -> Standing:
    """Return the state of a coordinator's job. Once an approval holds again, nobody asks for it any more."""
    proposal = _found(connection, digest.hex(), coordinator)
    if proposal is None:
        return UNKNOWN
    standing = proposal.standing(terms, now)
    if standing.state == "approved":
        connection.execute("DELETE FROM asked WHERE decision = ?", (proposal.last_decision,))
    return standing


def _found(connection: sqlite3.Connection, job_sha256: str, coordinator: str) -> Proposal | None:
    return next(iter(_proposals(connection, _THIS, (job_sha256, coordinator))), None)


def _forget(connection: sqlite3.Connection, now: datetime) -> None:
    """Remove old proposals whose removal changes no answer about a job.

    An approval that still allows runs stays, and so does a denial. The runs stay, too, so that none begins again. The
    last decision has the greatest number and stays, so that no number comes back.
    """
    connection.execute(_FORGET, (time_as_text(now), MOST_OVER))
    for table in ("decisions", "untold"):
        connection.execute(f"DELETE FROM {table} WHERE proposal NOT IN (SELECT id FROM proposals)")  # noqa: S608 (constants)


def _proposals(connection: sqlite3.Connection, where: str, given: Sequence[str] = ()) -> list[Proposal]:
    """Return proposals with their last decisions.

    where:  condition and order, in SQL.
    """
    rows = connection.execute(f"{_LAST} {where}", tuple(given))
    return [
        Proposal(number, digest, coordinator, job, bundle, time_of_text(proposed), _decision(decision))
        for number, digest, coordinator, job, bundle, proposed, *decision in rows.fetchall()
    ]


def _decision(row: Sequence[Any]) -> Decision | None:
    number, approved, decided, by, terms, reason, runs, until, begun, asked, unnoted = row
    if number is None:
        return None
    end, again = (time_of_text(text) if text else None for text in (until, asked))
    kept = Terms.of_text(terms)
    at, noted = time_of_text(decided), not unnoted
    return Decision(bool(approved), at, by, kept, reason, runs, end, begun, again, noted, number)
