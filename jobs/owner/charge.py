"""Charge of a run whose releases do not compose: a release among the allowed number.

A policy limits the number of LKC releases, and a later release has the domains of the first. A run discloses its
openings to the peers, with or without a delivered table. So a run is charged at its beginning, and the charge is
final once all parties have announced an opening. Nobody opens before the announcements, and a run that ends before
gives its charge back (:mod:`jobs.owner.account`). A result is given again only if all parties keep the result for
their present tables.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from anonymize.joint.disclosure import RevealLedger
from anonymize.table import Ints
from anonymize.tds import Observer
from crypto.errors import RemoteProtocolError
from crypto.rng import Rng
from crypto.rounds import Inbox, Round, Rounds
from jobs.data.tables import Table
from jobs.errors import PolicyError
from jobs.owner.account import Run
from jobs.owner.composition import Composed, Known, Published, check_tested
from jobs.owner.domains import changed
from jobs.owner.kept import Kept, keeps, written
from jobs.owner.ledger import ChargedRun, Entry, History, PrivacyLedger
from jobs.owner.listing import charged_job
from jobs.owner.observing import PassedOn
from jobs.owner.own_groups import OwnGroups
from jobs.owner.policy import Policy
from jobs.task import Task

KINDS = frozenset({"lkc", "sequences"})
"""Models whose releases do not compose, by their names in a ledger."""
_OPENING = "lkc/opening"
_AGREED = b"\1"
_KEPT_BYTES = 32


class Conducted(Protocol):
    """Outcome of a charged run."""

    def after(self, ledger: RevealLedger) -> Self:
        """Return the outcome with the reveals before the protocol."""
        ...


def reveal_earlier(ledger: RevealLedger, n_parties: int) -> None:
    """Record the parties' messages to each other before a run."""
    ledger.reveal("earlier_run", None, "all", (n_parties, _KEPT_BYTES))


@dataclass(frozen=True)
class Limits:
    """Part of an owner's policy that bounds all LKC releases of a data set together.

    releases:       largest number of releases, or None.
    own_k:          fewest of our records in a group with any of our records.
    other_domains:  True if a later release may have other domains than the first.
    """

    releases: int | None = None
    own_k: int = 1
    other_domains: bool = False


def limits_of(policy: Policy) -> Limits:
    return Limits(policy.max_lkc_releases, policy.own_k, policy.other_domains)


class Release:
    """Charge of a run as a release among the number that a policy allows, with its table."""

    step: ClassVar[str] = "lkc/earlier"

    def __init__(
        self, ledger: PrivacyLedger, task: Task, run: bytes, limits: Limits, known: tuple[Known, ...] = ()
    ) -> None:
        """``run``: 16 bytes, the same at all parties, new for each run. ``known``: as in :class:`Published`."""
        self.ledger = ledger
        self.kept: Kept | None = None
        self._task = task
        self._run = run
        self._limits = limits
        self._published = Published.of_task(task, known)
        self._table = b""
        self._loaded: Table | None = None

    def check(self) -> None:
        """Raise PolicyError if the run would have to be refused, whatever the table is.

        Whether the result of an earlier run is kept for the present table is known only when the table is read.
        """
        if not keeps(self._task) or self.ledger.stored(self._task.digest) is None:
            self._check(self.ledger.history())

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        """Look for a kept result on the table. Raises PolicyError without a kept result if the run is refused."""
        self._loaded = table
        self._published = Published.of_task(task, self._published.known, me)
        self._table = table_digest(self.ledger.key(rng), table, task, me, rng)
        found = self.ledger.kept_run(task.digest, self._table) if keeps(task) else None
        self.kept = None if found is None else Kept.read(*found)
        if self.kept is None:
            self._check(self.ledger.history())

    def _check(self, history: History) -> None:
        check_run(history, self._limits, self._published, matched=self._task.partition.matched)

    def reserve(self) -> int:
        """Charge the run; return the number of its entry. Raises PolicyError beyond the limits."""
        published = self._published.encoded()
        run = ChargedRun(charged_job(self._task), self._run, self._table, published)
        return self.ledger.charge_run(run, self._check)

    def opened(self, number: int, peers: Sequence[str], run: Run, shown: Observer) -> Rounds[Any]:
        """Run the protocol; make the charge final once all parties have announced an opening.

        Rounds: 1 ("lkc/opening") before the first message about a table: in horizontal jobs shares of its counts,
        in
                vertical jobs values made of ids.
        Bytes:  1 to each peer.
        Leakage: the parties' messages about earlier runs stand in the reveal ledger before the protocol's reveals.

        Raises PolicyError if a group with too few of our records is about to be opened.
        """
        ledger = RevealLedger(self._task.mode.name, observer=shown)
        reveal_earlier(ledger, 1 + len(peers))
        made: Conducted = yield from self._opened_together(number, peers, run, shown)
        return made.after(ledger)

    def _opened_together(self, number: int, peers: Sequence[str], run: Run, shown: Observer) -> Rounds[Any]:
        """Run the protocol. `own_k` may end the run before all parties are about to open something.

        Then the charge is final, too: the end of the run depends on our records.
        """
        opening = _Opening(shown, peers, lambda: self.ledger.open(number))
        if self._task.partition.matched:  # all parties have the same records: nothing to set side by side
            return (yield from opening.before(run(opening)))
        notes = _Notes(self.ledger, number)
        composed = Composed(opening, self._limits.own_k, self._loaded, self._published, notes)
        own = OwnGroups(composed, self._limits.own_k, *_counted(self._task))
        try:
            return (yield from opening.before(run(own)))
        except PolicyError:
            opening.agree()
            composed.withdraw()
            raise

    def written(self, result: Any) -> bytes | None:
        return written(result) if keeps(self._task) else None


class _Opening(PassedOn):
    """Holds the first message back that tells something of a table, until all parties are about to send theirs.

    agreed:  makes the charge final.
    """

    def __init__(self, shown: Observer, peers: Sequence[str], agreed: Callable[[], None]) -> None:
        super().__init__(shown)
        self._peers = frozenset(peers)
        self._agreed = agreed
        self._due = self._done = False

    def opening_groups(self, own: Ints) -> None:
        super().opening_groups(own)
        self._due = True

    def announced(self, own: int, others: Mapping[str, int]) -> None:
        super().announced(own, others)
        self._due = True

    def agree(self) -> None:
        """Make the charge final, once."""
        if not self._done:
            self._agreed()
            self._done = True

    def before(self, protocol: Rounds[Any]) -> Rounds[Any]:
        """Run a protocol up to its first announced opening. Raises the protocol's errors, RemoteProtocolError."""
        inbox: Inbox | None = None
        try:
            while True:
                turn = next(protocol) if inbox is None else protocol.send(inbox)
                if self._due and not self._done:
                    yield from self._wait()
                    self.agree()
                inbox = yield turn
        except StopIteration as stop:
            return stop.value
        finally:
            protocol.close()

    def _wait(self) -> Rounds[None]:
        told = yield Round(_OPENING, dict.fromkeys(self._peers, _AGREED), self._peers)
        for peer in sorted(self._peers):
            if told[peer] != _AGREED:
                raise RemoteProtocolError(peer, _OPENING, "differs between the parties")


def _counted(task: Task) -> tuple[str, str]:
    """Return the unit of K, singular and plural."""
    return ("person", "people") if task.model.reading.per_person(task.job) else ("record", "records")


def charged_releases(entries: Sequence[Entry]) -> list[Entry]:
    """Return the LKC releases limited by a policy."""
    return [entry for entry in entries if entry.kind in KINDS and entry.stands]


def check_releases(entries: Sequence[Entry], limit: int | None) -> None:
    """Raise PolicyError if the data set has as many charged LKC runs as the policy allows. None: no limit."""
    before = len(charged_releases(entries))
    if limit is not None and before >= limit:
        raise PolicyError(
            "policy-refused",
            "no further LKC release of this data set is allowed: LKC releases do not compose "
            "(`policy.max_lkc_releases`)",
            private=f"{before} of {limit} are charged",
        )


@dataclass(frozen=True)
class _Notes:
    """Part of a ledger for a run's notes on its publications. number: of its entry."""

    ledger: PrivacyLedger
    number: int

    def note(self, content: bytes) -> None:
        self.ledger.note_published(self.number, content)

    def earlier(self) -> list[bytes]:
        return noted(self.ledger.history(), besides=self.number)


def noted(history: History, besides: int | None = None) -> list[bytes]:
    """Return the notes of charged runs with past or imminent openings; ``besides``: entry to leave out."""
    nothing = Published({}, (), ()).encoded()
    found = []
    for entry in charged_releases(history.entries):
        content = history.published.get(entry.number, nothing)
        waits = entry.state == "reserved" and Published.read(content).groups is None
        if entry.number != besides and not waits:
            found.append(content)
    return found


def check_run(history: History, limits: Limits, now: Published, *, matched: bool) -> None:
    """Raise PolicyError if no further run is allowed beside the earlier runs.

    matched:  the job is vertical: all parties have all its records, and `own_k` is ignored.
    """
    check_releases(history.entries, limits.releases)
    if not limits.other_domains:
        for entry in charged_releases(history.entries):
            if entry.number in history.published:
                check_domains(Published.read(history.published[entry.number]), now)
    if limits.own_k > 1 and not matched:
        check_tested([Published.read(content) for content in noted(history)], now)


def check_domains(before: Published, now: Published) -> None:
    """Raise PolicyError if a column has another domain than in an earlier release."""
    for name in changed(before.domains, now.domains):
        raise PolicyError(
            "policy-refused",
            f"column {name} has another domain than in an earlier LKC release of this data set: the differences of "
            "the two tables would tell of few people (`policy.other_domains`)",
            remedy=f"give column {name} the taxonomy or grid of the earlier job: the same values in the same order, "
            "and the same `missing`",
        )


def table_digest(key: bytes, table: Table, task: Task, me: str, rng: Rng) -> bytes:
    """Return the keyed digest for recognizing a party's table: 32 bytes, in any order of rows.

    The digest covers pass 1. Plain columns are read later, so with plain columns no two digests are alike.
    """
    held = task.held_by(me)
    if any(name in held for name in task.job.names("plain")):
        return rng.bytes(32)
    return hmac.digest(key, table.canonical(), "sha256")
