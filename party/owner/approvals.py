"""What coordinators propose, and what the owner of the data decided: a SQLite file that daemon and commands share.

An approval binds one job of one coordinator with everything of :class:`Binding`: whatever of it is another when the
job is to run, the job waits for the owner again. Runs that were approved are counted down on disk before one begins,
so a run that was killed has been counted. What the owner decides on is what was shown: a proposal that changed since
is not decided.

Proposals of one coordinator, and of all, are bounded in number and bytes, and expire. What was once approved stays,
as what later jobs of that name are compared with: its number is the owner's own doing.

Every new proposal and every decision has its line in the audit before it counts (:mod:`party.owner.audit`).
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from jobs.errors import ConfigError, PartyError, PolicyError
from jobs.sqlite_file import transaction
from jobs.task import Task
from jobs.version import __version__
from party.owner.audit import Audit
from party.owner.config import PartyConfig, credentials_of, usable_peer
from party.owner.identity import fingerprint

APPROVALS = "approvals.sqlite"
EXPIRES_S = 30 * 86_400
"""A proposal that nobody decides on is kept so long, and so is a denial."""
MOST_OF_ONE, MOST = 16, 64
"""Proposals of one coordinator, and of all, that are kept; approvals do not count."""
BYTES_OF_ONE, BYTES = 32 << 20, 64 << 20
"""What their bundles may have together."""
SKEW_S = 300
"""A clock that says that an approval is to be given only in so long is wrong."""

State = Literal["waiting", "approved", "denied", "ended"]
"""ended: the runs are used up, or the date is over. For good: a clock that is set back revives none."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS proposals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    coordinator TEXT NOT NULL,
    job_sha256 TEXT NOT NULL,
    job TEXT NOT NULL,
    roster TEXT NOT NULL,
    bundle BLOB NOT NULL,
    came REAL NOT NULL,
    state TEXT NOT NULL,
    revision INTEGER NOT NULL,
    shown TEXT NOT NULL,
    reason TEXT NOT NULL,
    binding TEXT NOT NULL,
    runs INTEGER,
    until REAL,
    decided REAL,
    decided_by TEXT NOT NULL,
    UNIQUE (coordinator, job_sha256)
);
CREATE TABLE IF NOT EXISTS runs (
    proposal INTEGER NOT NULL,
    run BLOB NOT NULL,
    began REAL NOT NULL,
    UNIQUE (proposal, run)
)
"""
_COLUMNS = (
    "id, coordinator, job_sha256, job, roster, bundle, came, state, revision, shown, reason, binding, runs, until, "
    "decided, decided_by"
)


@dataclass(frozen=True)
class Binding:
    """What an approval is given for; another in any of it is not approved.

    certificates:  SHA-256 of the certificates of the coordinator and all parties, ours too, by name; of a party that
                   has none here, with whom we do not speak in the job, there is none.
    version:       of the program, major and minor.
    """

    job: str
    coordinator: str
    roster: tuple[str, ...]
    certificates: Mapping[str, str]
    version: str

    @property
    def encoded(self) -> str:
        """Canonical JSON."""
        return json.dumps(self.__dict__, sort_keys=True)


def binding_of(config: PartyConfig, job: str, roster: Sequence[str], coordinator: str) -> Binding:
    """As things stand now. Raises ConfigError or IdentityError where a certificate cannot be used."""
    others = {coordinator, *roster} & config.peers.keys() | {coordinator}
    found = {name: usable_peer(config, name).fingerprint for name in sorted(others)}
    own = fingerprint(credentials_of(config).certificate)
    version = ".".join(__version__.split(".")[:2])
    return Binding(job, coordinator, tuple(roster), {config.name: own, **found}, version)


@dataclass(frozen=True)
class Proposal:
    """A job that a coordinator proposed.

    job_sha256: hexadecimal. roster: JSON. came, until, decided: seconds since 1970.
    revision:   counts what changed about it.
    shown:      what the owner was last shown that an approval would bind; empty: nothing yet.
    binding:    what it was last approved for; empty: it never was.
    runs:       how many more may begin; None: any number. until: the last moment to begin one; None: none.
    decided_by: the user of the operating system.
    """

    number: int
    coordinator: str
    job_sha256: str
    job: str
    roster: str
    bundle: bytes = field(repr=False)
    came: float
    state: State
    revision: int
    shown: str = field(repr=False)
    reason: str
    binding: str = field(repr=False)
    runs: int | None
    until: float | None
    decided: float | None
    decided_by: str

    def binding_now(self, config: PartyConfig) -> Binding:
        """What an approval would bind now. Raises as :func:`binding_of`."""
        return binding_of(config, self.job_sha256, json.loads(self.roster), self.coordinator)

    @property
    def expires(self) -> float:
        """When nobody need decide on it any more; of no meaning once it is approved."""
        return self.came + EXPIRES_S

    def standing(self, binding: Binding, now: float) -> Standing:
        """How it stands for whoever would run it as things are now."""
        if self.state == "approved":
            early = self.decided is not None and now < self.decided - SKEW_S
            return "waiting" if early or self.binding != binding.encoded else "approved"
        return "unknown" if self.state != "ended" and now > self.expires else self.state

    def changed(self, binding: Binding) -> list[str]:
        """What is another now than it was approved for, in words; nothing if it never was."""
        if not self.binding:
            return []
        before, now = json.loads(self.binding), json.loads(binding.encoded)
        names = sorted(before["certificates"].keys() | now["certificates"].keys())
        certificates = [
            f"the certificate of {name}"
            for name in names
            if before["certificates"].get(name) != now["certificates"].get(name)
        ]
        version = f"the version of this program ({before['version']} then, {now['version']} now)"
        return certificates + [version] * (before["version"] != now["version"])


Standing = Literal["waiting", "approved", "denied", "ended", "unknown"]


@dataclass(frozen=True)
class Decision:
    """How far an approval goes, and who gave it (:class:`Proposal` says what each means)."""

    who: str
    runs: int | None = None
    until: float | None = None


class Approvals:
    """The proposals and approvals of one party."""

    def __init__(self, state_dir: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = state_dir / APPROVALS
        self._audit = Audit(state_dir)
        self._clock = clock

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with transaction(self._path, _SCHEMA) as connection:
                yield connection
        except sqlite3.Error as error:
            raise PartyError(
                "approval-store", "the approvals cannot be read or written", cause=f"{self._path}: {error}"
            ) from error

    # What a coordinator does.

    def propose(self, task: Task, binding: Binding) -> tuple[Standing, str]:
        """Keep a proposal; return how it stands, and why. Raises PolicyError if no further one is kept, PartyError if
        the audit cannot say so.

        One that waits is kept anew for a while; one that was denied stays denied until that has expired.
        """
        now = self._clock()
        with self._connected() as connection:
            connection.execute("DELETE FROM proposals WHERE binding = '' AND came < ?", (now - EXPIRES_S,))
            found = _of(connection, binding.coordinator, binding.job)
            if found is None or found.standing(binding, now) in ("ended", "unknown"):
                encoded = task.bundle.encoded
                _check_bounds(connection, binding.coordinator, len(encoded), now)
                _insert(connection, binding, task.job.name, encoded, now)
                self._audit.write("proposal", **_named(task.job.name, binding.job, binding.coordinator))
            elif found.state == "waiting":
                connection.execute("UPDATE proposals SET came = ? WHERE id = ?", (now, found.number))
            return self._standing(connection, binding, now)

    def standing(self, binding: Binding) -> tuple[Standing, str]:
        """How a job stands, and why."""
        if not self._path.exists():
            return "unknown", ""
        with self._connected() as connection:
            return self._standing(connection, binding, self._clock())

    def kept(self, job: str, coordinator: str) -> Proposal | None:
        """The proposal of a coordinator with this hash."""
        if not self._path.exists():
            return None
        with self._connected() as connection:
            return _of(connection, coordinator, job)

    def check(self, binding: Binding, me: str) -> None:
        """Raise PolicyError unless a job may run as things are now."""
        _require(me, *self.standing(binding))

    def begin(self, binding: Binding, run: bytes, me: str) -> None:
        """Count a run that begins, on disk. Raises as :meth:`check`, PartyError for the number of an earlier run."""
        now = self._clock()
        with self._connected() as connection:
            state, reason = self._standing(connection, binding, now)
            found = _of(connection, binding.coordinator, binding.job)
            if state == "approved" and found is not None:
                _count(connection, found, run, now)
        _require(me, state, reason)

    # What the owner does.

    def listed(self) -> list[Proposal]:
        """Everything that is kept, oldest first."""
        if not self._path.exists():
            return []
        with self._connected() as connection:
            return _proposals(connection, "ORDER BY id")

    def n_waiting(self) -> int:
        """How many proposals nobody has decided on. Raises PartyError."""
        now = self._clock()
        return sum(each.state == "waiting" and now <= each.expires for each in self.listed())

    def found(self, job: str, coordinator: str | None = None) -> Proposal:
        """The proposal with this name, or whose hash begins so. Raises ConfigError unless it is one."""
        of = [each for each in self.listed() if coordinator in (None, each.coordinator)]
        named = [
            each for each in of if job == each.job or (len(job) >= 8 and each.job_sha256.startswith(job))
        ]
        if len(named) == 1:
            return named[0]
        several = ", ".join(f"{each.job_sha256} of {each.coordinator}" for each in named)
        message = f"{job} is several proposals: {several}" if named else f"no proposal is called {job}"
        remedy = (
            "give its hash, and --coordinator if two propose it"
            if named
            else "party jobs lists what there is"
        )
        raise ConfigError("usage", message, remedy=remedy)

    def show(self, proposal: Proposal, binding: Binding) -> None:
        """The owner is shown it now, as things are now. Raises PartyError if it has changed meanwhile."""
        self._change(proposal, "shown = ?", (binding.encoded,))

    def approve(self, proposal: Proposal, binding: Binding, decision: Decision) -> None:
        """Approve what was shown, as things are now. Raises PartyError if it is not what was shown any more, or the
        audit cannot say so.
        """
        self._change(
            proposal,
            "state = 'approved', reason = '', binding = ?, runs = ?, until = ?, decided = ?, decided_by = ?, "
            "revision = revision + 1",
            (binding.encoded, decision.runs, decision.until, self._clock(), decision.who),
            shown=binding.encoded,
            line={
                "decided": "approved",
                "by": decision.who,
                "runs": decision.runs,
                "until": _moment(decision),
            },
        )

    def deny(self, proposal: Proposal, reason: str, who: str) -> None:
        """Deny it from now on, whether or not it was approved or shown. Raises as :meth:`approve`."""
        now = self._clock()
        self._change(
            proposal,
            "state = 'denied', reason = ?, came = ?, decided = ?, decided_by = ?, revision = revision + 1",
            (reason, now, now, who),
            line={"decided": "denied", "by": who, "reason": reason},
        )

    def last_approved(self, proposal: Proposal) -> Proposal | None:
        """The other job of this name that was approved last, of any coordinator."""
        before = [
            each
            for each in self.listed()
            if each.binding and each.job == proposal.job and each.job_sha256 != proposal.job_sha256
        ]
        return max(before, key=lambda each: each.decided or 0.0, default=None)

    def _change(
        self,
        proposal: Proposal,
        change: str,
        values: Sequence[Any],
        *,
        shown: str | None = None,
        line: Mapping[str, Any] | None = None,
    ) -> None:
        """Change it, if nobody has since it was read.

        shown:  what the owner must have been shown.
        line:   what of it is a decision, for the audit: without its line nothing is changed.
        """
        with self._connected() as connection:
            changed = connection.execute(
                f"UPDATE proposals SET {change} WHERE id = ? AND revision = ? AND shown = coalesce(?, shown)",  # noqa: S608
                (*values, proposal.number, proposal.revision, shown),
            )
            if changed.rowcount != 1:
                raise PartyError(
                    "approval-changed", f"{proposal.job} was not shown as it is now: nothing is decided"
                )
            if line is not None:
                which = _named(proposal.job, proposal.job_sha256, proposal.coordinator)
                self._audit.write(
                    "decision", **which, **{key: value for key, value in line.items() if value is not None}
                )

    def _standing(self, connection: sqlite3.Connection, binding: Binding, now: float) -> tuple[Standing, str]:
        """How it stands; an approval whose date is over ends here, for good."""
        connection.execute(
            "UPDATE proposals SET state = 'ended', revision = revision + 1 WHERE state = 'approved' AND until < ?",
            (now,),
        )
        found = _of(connection, binding.coordinator, binding.job)
        if found is None:
            return "unknown", ""
        state = found.standing(binding, now)
        return state, found.reason if state == "denied" else ""


def _moment(decision: Decision) -> str | None:
    """How long an approval goes, as lines of the audit have times."""
    return None if decision.until is None else datetime.fromtimestamp(decision.until, UTC).isoformat()


def _named(job: str, job_sha256: str, coordinator: str) -> dict[str, str]:
    """Which job a line of the audit is about."""
    return {"job": job, "job_sha256": job_sha256, "coordinator": coordinator}


def _of(connection: sqlite3.Connection, coordinator: str, job: str) -> Proposal | None:
    found = _proposals(connection, "WHERE coordinator = ? AND job_sha256 = ?", (coordinator, job))
    return found[0] if found else None


def _proposals(connection: sqlite3.Connection, which: str, values: Sequence[Any] = ()) -> list[Proposal]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM proposals {which}", values)  # noqa: S608  ours
    return [Proposal(*row) for row in rows.fetchall()]


def _insert(connection: sqlite3.Connection, binding: Binding, job: str, encoded: bytes, now: float) -> None:
    """A new proposal, or one whose approval has ended or denial has expired, which waits again."""
    connection.execute(
        "INSERT INTO proposals (coordinator, job_sha256, job, roster, bundle, came, state, revision, shown, reason, "
        "binding, decided_by) VALUES (?, ?, ?, ?, ?, ?, 'waiting', 0, '', '', '', '') ON CONFLICT DO UPDATE SET "
        "state = 'waiting', came = excluded.came, revision = revision + 1, shown = '', reason = ''",
        (binding.coordinator, binding.job, job, json.dumps(binding.roster), encoded, now),
    )


def _check_bounds(connection: sqlite3.Connection, coordinator: str, more: int, now: float) -> None:
    """Raise PolicyError if a proposal of so many bytes more is too many."""
    counted = "FROM proposals WHERE state IN ('waiting', 'denied') AND came >= ?"
    since = now - EXPIRES_S
    for n_most, bytes_most, which, values in (
        (MOST_OF_ONE, BYTES_OF_ONE, " AND coordinator = ?", (since, coordinator)),
        (MOST, BYTES, "", (since,)),
    ):
        n, size = connection.execute(
            f"SELECT count(*), coalesce(sum(length(bundle)), 0) {counted}{which}",
            values,
        ).fetchone()
        if n >= n_most or size + more > bytes_most:
            whose = f"of {coordinator} " if which else ""
            raise PolicyError("proposals-full", f"no further proposal {whose}is kept")


def _count(connection: sqlite3.Connection, approved: Proposal, run: bytes, now: float) -> None:
    """Count a run that begins. Raises PartyError for the number of an earlier one."""
    key = (approved.number, run)
    if connection.execute("SELECT 1 FROM runs WHERE proposal = ? AND run = ?", key).fetchone() is not None:
        raise PartyError("peer-protocol", "the coordinator gave the run the number of an earlier one")
    connection.execute("INSERT INTO runs (proposal, run, began) VALUES (?, ?, ?)", (*key, now))
    if approved.runs is not None:
        left = approved.runs - 1
        connection.execute(
            "UPDATE proposals SET runs = ?, state = ?, revision = revision + 1 WHERE id = ?",
            (left, "approved" if left else "ended", approved.number),
        )


_WHY: Mapping[str, str] = {
    "automatic": "asks nobody: its policy lets the job run",
    "approved": "approved the job",
    "refused": "refuses the job by its policy",
    "waiting": "waits for its approval",
    "denied": "denied the job",
    "ended": "approved runs that are over: propose it again",
    "unknown": "was not proposed this job",
}


def in_words(state: str, reason: str) -> str:
    """How a party stands that has not approved: what follows its name."""
    return _WHY.get(state, state) + (f": {reason}" if reason else "")


def _require(me: str, state: Standing, reason: str) -> None:
    if state != "approved":
        raise PolicyError("approval-needed", f"{me} {in_words(state, reason)}", party=me)
