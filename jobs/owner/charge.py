"""A joint run of LKC-privacy at one party: charged in the privacy ledger before its first message.

LKC releases do not compose, so a policy limits their number, and a later release has the domains of the first. What a
run opens, it opens to the other parties whether or not a table is delivered in the end. So a run is charged at its
beginning, and the charge is final once all parties have said that they are about to open something. Nobody opens
before that, and a run that ends before gives its charge back. Its result is kept before anybody sees it. Where all
parties keep the same result of a job on their present tables, that is the result: no protocol runs, and nothing is
opened or charged. Any other start is a new run. So no word of another party makes a run free.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from anonymize.joint.disclosure import RevealLedger
from anonymize.table import Ints
from anonymize.tds import Observer
from crypto.encoding import expect_length
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rng import Rng
from crypto.rounds import Inbox, Round, Rounds
from jobs.data.tables import Table
from jobs.errors import PolicyError
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
"""The models whose releases do not compose, as a ledger names them."""
_EARLIER, _OPENING = "lkc/earlier", "lkc/opening"
_AGREED = b"\1"
_KEPT_BYTES = 32
_NOTHING = bytes(_KEPT_BYTES)


class Conducted(Protocol):
    """What comes of a run that is charged here."""

    def after(self, ledger: RevealLedger) -> Self:
        """The same with what was revealed before the protocol began."""
        ...


def reveal_earlier(ledger: RevealLedger, n_parties: int) -> None:
    """What all parties tell each other before a run."""
    ledger.reveal("earlier_run", None, "all", (n_parties, _KEPT_BYTES))


@dataclass(frozen=True)
class Limits:
    """The part of an owner's policy that bounds all LKC releases of a data set together.

    releases:       how many there may be; None: as many as one likes.
    own_k:          how many of our records a group must have that has any.
    other_domains:  whether a later release may have other domains than the first.
    """

    releases: int | None = None
    own_k: int = 1
    other_domains: bool = False


def limits_of(policy: Policy) -> Limits:
    return Limits(policy.max_lkc_releases, policy.own_k, policy.other_domains)


class LkcAccount:
    """One run's place in the ledger of one party."""

    keeps = False

    def __init__(
        self, ledger: PrivacyLedger, task: Task, run: bytes, limits: Limits, known: tuple[Known, ...] = ()
    ) -> None:
        """``run``: 16 bytes, the same at all parties, new for each run. ``known``: as :class:`Published` has it."""
        self._ledger = ledger
        self._task = task
        self._run = run
        self._limits = limits
        self._published = Published.of_task(task, known)
        self._table = b""
        self._loaded: Table | None = None
        self._kept: Kept | None = None
        self._number: int | None = None
        self.again = False

    @property
    def remark(self) -> str:
        return "gave the result of an earlier run again: nothing was charged" if self.again else ""

    @property
    def number(self) -> int | None:
        return self._number

    def check(self) -> None:
        """Raise PolicyError if the run would have to be refused, whatever the table is.

        Whether the result of an earlier run is kept for the present table is known only when the table is read.
        """
        if not keeps(self._task) or self._ledger.stored(self._task.digest) is None:
            self._check(self._ledger.history())

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        """Raise PolicyError if the run would have to be refused, whatever the other parties say."""
        self._loaded = table
        self._published = Published.of_task(task, self._published.known, me)
        self.recognize(table_digest(self._ledger.key(rng), table, task, me, rng))

    def recognize(self, table: bytes) -> None:
        """Look for a kept result on this table, by its digest; raise PolicyError as :meth:`read`."""
        self._table = table
        found = self._ledger.kept_run(self._task.digest, table) if keeps(self._task) else None
        self._kept = None if found is None else Kept.read(*found)
        if self._kept is None:
            self._check(self._ledger.history())

    def _check(self, history: History) -> None:
        check_run(history, self._limits, self._published, matched=self._task.partition.matched)

    def charge(self) -> int:
        """Charge the run; return the number of its entry. Raises PolicyError beyond the limits."""
        run = ChargedRun(
            charged_job(self._task),
            self._run,
            self._table,
            self._published.encoded(),
        )
        self._number = self._ledger.charge_run(run, self._check)
        return self._number

    def conducted(
        self,
        task: Task,
        peers: Sequence[str],
        protocol: Callable[[Observer], Rounds[Any]],
        shown: Observer,
    ) -> Rounds[Any]:
        """Give the kept result of the job if all parties keep the same; else charge, run the protocol, keep.

        Rounds: 1 ("lkc/earlier") before those of the protocol. 1 ("lkc/opening") before the first message that tells
                something of a table: in horizontal jobs shares of its counts, in vertical ones what is made of ids.
        Bytes:  32 and 1 to each other party.
        Leakage: whether a party keeps a result of this very job on its present table, and which. It stands in the
                 reveal ledger before what the protocol reveals.

        Raises PolicyError if the policy allows no further release, or groups are to be opened with too few of our
        records; what the protocol raises.
        """
        kept = _NOTHING if self._kept is None else self._kept.digest
        inbox = yield Round(_EARLIER, dict.fromkeys(peers, kept), frozenset(peers))
        for peer in peers:
            expect_length(inbox[peer], _KEPT_BYTES, peer, _EARLIER)
        if self._kept is not None and all(inbox[peer] == kept for peer in peers):
            self.again, self._number = True, self._kept.number
            return self._kept.again(task)
        number = self.charge()
        ledger = RevealLedger(task.mode.name)
        reveal_earlier(ledger, 1 + len(peers))
        try:
            made: Conducted = yield from self._opened_together(number, peers, protocol, shown)
            result = made.after(ledger)
            if keeps(task):
                self._ledger.finish(number, written(result))
            return result
        finally:
            self._ledger.give_back(number)  # only what was not opened

    def _opened_together(
        self,
        number: int,
        peers: Sequence[str],
        protocol: Callable[[Observer], Rounds[Any]],
        shown: Observer,
    ) -> Rounds[Any]:
        """Run the protocol; make the charge final once all parties are about to open something.

        `own_k` may end the run before that. Then the charge is final, too: that it ends depends on our records.
        """
        opening = _Opening(shown, peers, lambda: self._ledger.open(number))
        if (
            self._task.partition.matched
        ):  # all parties have the same records: there is nothing to set side by side
            return (yield from opening.before(protocol(opening)))
        notes = _Notes(self._ledger, number)
        composed = Composed(opening, self._limits.own_k, self._loaded, self._published, notes)
        try:
            return (
                yield from opening.before(
                    protocol(OwnGroups(composed, self._limits.own_k, *_counted(self._task)))
                )
            )
        except PolicyError:
            opening.agree()
            composed.withdraw()
            raise

    def deliver(self, release: bytes, *, agreed: bool) -> None:
        """The files of the release are in place. Raises LocalProtocolError without a charge: our own bug."""
        if self._number is None:
            raise LocalProtocolError("delivered without a charge")
        self._ledger.deliver(self._number, release, agreed=agreed)


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
        """Run a protocol that tells us what it is about to open. Raises what it raises, RemoteProtocolError."""
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
                raise RemoteProtocolError(peer, _OPENING, "is not what every party says here")


def _counted(task: Task) -> tuple[str, str]:
    """What K counts, one and many."""
    return ("person", "people") if task.model.per_person(task.job) else ("record", "records")


def charged_releases(entries: Sequence[Entry]) -> list[Entry]:
    """The LKC releases that a policy limits."""
    return [entry for entry in entries if entry.kind in KINDS and entry.stands]


def check_releases(entries: Sequence[Entry], limit: int | None) -> None:
    """Raise PolicyError if as many LKC runs of the data set are charged as the policy allows. None: no limit."""
    before = len(charged_releases(entries))
    if limit is not None and before >= limit:
        raise PolicyError(
            "policy-refused",
            "no further LKC release of this data set is allowed: they do not compose (`policy.max_lkc_releases`)",
            private=f"{before} of {limit} are charged",
        )


@dataclass(frozen=True)
class _Notes:
    """The part of a ledger in which a run notes what it publishes. number: of its entry."""

    ledger: PrivacyLedger
    number: int

    def note(self, content: bytes) -> None:
        self.ledger.note_published(self.number, content)

    def earlier(self) -> list[bytes]:
        return noted(self.ledger.history(), besides=self.number)


def noted(history: History, besides: int | None = None) -> list[bytes]:
    """Return what charged runs noted that opened something, or may be about to; ``besides``: without this entry."""
    nothing = Published({}, (), ()).encoded()
    found = []
    for entry in charged_releases(history.entries):
        content = history.published.get(entry.number, nothing)
        waits = entry.state == "reserved" and Published.read(content).groups is None
        if entry.number != besides and not waits:
            found.append(content)
    return found


def check_run(history: History, limits: Limits, now: Published, *, matched: bool) -> None:
    """Raise PolicyError if no further run is allowed beside the earlier ones.

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
    """The keyed digest by which a party knows its table again: 32 bytes, whatever the order of the rows.

    It covers what pass 1 reads. Plain columns are read later, so where we hold some, no digest is like another.
    """
    held = task.held_by(me)
    if any(name in held for name in task.job.names("plain")):
        return rng.bytes(32)
    return hmac.digest(key, table.canonical(), "sha256")
