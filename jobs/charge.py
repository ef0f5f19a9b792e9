"""A joint run of LKC-privacy at one party: charged in the privacy ledger before its first message.

LKC releases do not compose, so a policy may limit their number. What a run opens, it opens to the other parties
whether or not a table is delivered in the end, so a run counts from its beginning. Its result is kept before anybody
sees it. Where all parties keep the same result of a job on their present tables, that is the result: no protocol
runs, and nothing is opened or charged. Any other start is a new run. So no word of another party makes a run free.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from anonymize.joint.disclosure import RevealLedger
from anonymize.tds import Observer
from crypto.encoding import expect_length
from crypto.errors import LocalProtocolError
from crypto.rng import Rng
from crypto.rounds import Round, Rounds
from jobs.data.tables import Table
from jobs.errors import PolicyError
from jobs.fields import PERSON
from jobs.kept import Kept, keeps, written
from jobs.ledger import ChargedJob, ChargedRun, Entry, PrivacyLedger
from jobs.own_groups import OwnGroups
from jobs.task import Task

KINDS = frozenset({"lkc", "sequences"})
"""The models whose releases do not compose, as a ledger names them."""
_EARLIER = "lkc/earlier"
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


class LkcAccount:
    """One run's place in the ledger of one party."""

    keeps = False

    def __init__(
        self, ledger: PrivacyLedger, task: Task, run: bytes, limit: int | None, own_k: int = 1
    ) -> None:
        """``run``: 16 bytes, the same at all parties, new for each run. ``limit``, ``own_k``: the policy's."""
        self._ledger = ledger
        self._task = task
        self._run = run
        self._limit = limit
        self._own_k = own_k
        self._table = b""
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
            self._check(self._ledger.entries())

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        """Raise PolicyError if the run would have to be refused, whatever the other parties say."""
        self.recognize(table_digest(self._ledger.key(rng), table, task, me, rng))

    def recognize(self, table: bytes) -> None:
        """Look for a kept result on this table, by its digest; raise PolicyError as :meth:`read`."""
        self._table = table
        found = self._ledger.kept_run(self._task.digest, table) if keeps(self._task) else None
        self._kept = None if found is None else Kept.read(*found)
        if self._kept is None:
            self._check(self._ledger.entries())

    def _check(self, entries: Sequence[Entry]) -> None:
        check_releases(entries, self._limit)

    def charge(self) -> int:
        """Charge the run for good; return the number of its entry. Raises PolicyError beyond the limit."""
        run = ChargedRun(charged_job(self._task), self._run, self._table)
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

        Rounds: 1 ("lkc/earlier") before those of the protocol. Bytes: 32 to each other party.
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
        made: Conducted = yield from protocol(OwnGroups(shown, self._own_k, *_counted(task)))
        result = made.after(ledger)
        if keeps(task):
            self._ledger.finish(number, written(result))
        return result

    def deliver(self, release: bytes, *, agreed: bool) -> None:
        """The files of the release are in place. Raises LocalProtocolError without a charge: our own bug."""
        if self._number is None:
            raise LocalProtocolError("delivered without a charge")
        self._ledger.deliver(self._number, release, agreed=agreed)


def _counted(task: Task) -> tuple[str, str]:
    """What K counts, one and many."""
    return ("person", "people") if task.job.model.unit == PERSON else ("record", "records")


def charged_job(task: Task) -> ChargedJob:
    """What the ledger notes of a job, which costs no ε."""
    return ChargedJob(task.model.name, task.job.name, task.digest)


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


def table_digest(key: bytes, table: Table, task: Task, me: str, rng: Rng) -> bytes:
    """The keyed digest by which a party knows its table again: 32 bytes, whatever the order of the rows.

    It covers what pass 1 reads. Plain columns are read later, so where we hold some, no digest is like another.
    """
    held = task.held_by(me)
    if any(name in held for name in task.job.names("plain")):
        return rng.bytes(32)
    return hmac.digest(key, table.canonical(), "sha256")
