"""A joint run of LKC-privacy at one party: charged in the privacy ledger before its first message, and once only.

LKC releases do not compose, so a policy may limit their number. What a run opens, it opens to the other parties
whether or not a table is delivered in the end, so a run counts from its beginning. The same job on the same tables
opens the same things again and gives the same table: a repetition counts once. That it is one, all parties must say:
each tells the others the last run of the job that had its present table, and all must name the same.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from anonymize.joint.disclosure import RevealLedger
from anonymize.tds import Observer
from crypto.errors import LocalProtocolError
from crypto.rng import Rng
from crypto.rounds import Rounds
from jobs.data.tables import Table
from jobs.errors import PolicyError
from jobs.fields import PERSON
from jobs.ledger import ChargedJob, ChargedRun, Entry, PrivacyLedger
from jobs.links import tell_all
from jobs.own_groups import OwnGroups
from jobs.task import Task

KINDS = frozenset({"lkc", "sequences"})
"""The models whose releases do not compose, as a ledger names them."""
_EARLIER = "lkc/earlier"
_RUN_BYTES = 16
_NONE = bytes(_RUN_BYTES)


class Conducted(Protocol):
    """What comes of a run that is charged here."""

    def after(self, ledger: RevealLedger) -> Self:
        """The same with what was revealed before the protocol began."""
        ...


def reveal_earlier(ledger: RevealLedger, n_parties: int) -> None:
    """What all parties tell each other before a run."""
    ledger.reveal("earlier_run", None, "all", (n_parties, _RUN_BYTES))


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
        self._earlier: tuple[int, bytes] | None = None
        self._number: int | None = None
        self.again = False

    @property
    def remark(self) -> str:
        return "repeats an earlier run on the same tables: the two count as one release" if self.again else ""

    @property
    def number(self) -> int | None:
        return self._number

    @property
    def earlier(self) -> bytes:
        """The charged run of this job that had our present table; zeros if there is none."""
        return _NONE if self._earlier is None else self._earlier[1]

    def check(self) -> None:
        """Raise PolicyError if the run would have to be refused, whatever the table is.

        Whether the run repeats a charged one of its job is known only when the table is read.
        """
        entries, job = self._ledger.entries(), self._task.digest.hex()
        if not any(entry.job_sha256 == job for entry in charged_releases(entries)):
            self._check(entries)

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        """Raise PolicyError if the run would have to be refused, whatever the other parties say."""
        self.recognize(table_digest(self._ledger.key(rng), table, task, me, rng))

    def recognize(self, table: bytes) -> None:
        """Look for the earlier run that had this table, by its digest; raise PolicyError as :meth:`read`."""
        self._table = table
        self._earlier = self._ledger.charged_run(self._task.digest, table)
        if self._earlier is None:
            self._check(self._ledger.entries())

    def _check(self, entries: Sequence[Entry]) -> None:
        check_releases(entries, self._limit)

    def charge(self, *, again: bool) -> None:
        """Charge the run for good, unless it is an earlier one ``again``. Raises PolicyError beyond the limit."""
        self.again = again and self._earlier is not None
        if self.again and self._earlier is not None:
            self._number = self._earlier[0]
        else:
            run = ChargedRun(charged_job(self._task), self._run, self._table)
            self._number = self._ledger.charge_run(run, self._check)

    def conducted(
        self,
        task: Task,
        me: str,
        protocol: Callable[[Observer], Rounds[Any]],
        shown: Observer,
    ) -> Rounds[Any]:
        """Find out whether the run repeats an earlier one, charge it if not, then run the protocol.

        Rounds, bytes: those of :func:`jobs.links.tell_all` for 16 ("lkc/earlier"), before those of the protocol.
        Leakage: whether a party charged a run of this very job before, which, and whether its table has changed
                 since. It stands in the reveal ledger before what the protocol reveals.

        Raises PolicyError if the policy allows no further release, or groups are to be opened with too few of our
        records; what the protocol raises.
        """
        told = yield from tell_all(me, task.links, _EARLIER, self.earlier)
        ledger = RevealLedger(task.mode.name, observer=shown)
        reveal_earlier(ledger, len(told))
        self.charge(again=all(each == self.earlier for each in told.values()))
        result: Conducted = yield from protocol(OwnGroups(shown, self._own_k, *_counted(task)))
        return result.after(ledger)

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
