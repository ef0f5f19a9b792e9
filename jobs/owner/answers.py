"""Answers of a party about its table beside releases, counted: refusals, admissions, alignments.

Whatever reads a table answers something about it. A *question* is a job that reads the table; it is counted before
the table is looked at, and counts no more when the job comes to a result, which is a release with a charge of its
own. So a refusal counts, and an admission that is not made use of counts. The same job of the same coordinator on the
same version of the table counts once. An *alignment* tells others which of the ids that they entered are ours, and
then one bit of classes. Each is counted before its first message, for good: nobody sees what the others entered. How
many ids they enter is seen, and bounded by the policy; an alignment that is refused for it stays counted.

Beyond the limit of the policy the answer is one message, which depends on no data and is given before any is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Literal

from anonymize.tds import Observer
from crypto.rng import Rng
from crypto.rounds import Rounds
from jobs.data.counted import counted
from jobs.data.sources import Source
from jobs.data.tables import Table
from jobs.errors import ANSWERS, PolicyError, Problem
from jobs.owner.ledger import ChargedJob, PrivacyLedger, now
from jobs.owner.observing import PassedOn
from jobs.owner.policy import Policy
from jobs.task import Account, Result, Task

Kind = Literal["question", "alignment"]

_RELEASED = "released"
"""Outcome of a question that counts no more; the question stays known, so that its repetition is none."""

_PLURALS = {"question": "questions", "alignment": "alignments"}


@dataclass(frozen=True)
class Answer:
    """One counted answer.

    asker:    the coordinator. version: of the table, as its source tells it without reading it.
    came_to:  the id of the error that the run ended with; empty while that is not known, and after a crash.
    """

    number: int
    kind: Kind
    asker: str
    job: str
    job_sha256: str
    version: str
    asked: str
    came_to: str = ""

    @property
    def words(self) -> str:
        """Say what the asker was told, for the owner."""
        if not self.came_to:
            return "answered"
        return f"refused: {self.came_to}" if self.came_to in ANSWERS else f"admitted, then {self.came_to}"


class Answers:
    """The counted answers about one data set, in its privacy ledger."""

    def __init__(self, ledger: PrivacyLedger, policy: Policy) -> None:
        self._ledger = ledger
        self._limits: dict[Kind, int] = {
            "question": policy.max_questions,
            "alignment": policy.max_alignments,
        }

    def all(self) -> list[Answer]:
        """Oldest first."""
        if not self._ledger.exists:
            return []
        with self._ledger.connected() as connection:
            return _counting(self._all(connection))

    def _all(self, connection: Connection) -> list[Answer]:
        """With the questions that count no more."""
        rows = connection.execute(
            "SELECT id, kind, asker, job, job_sha256, version, asked, came_to FROM answers WHERE data = ? "
            "ORDER BY id",
            (self._ledger.data,),
        )
        return [Answer(*row) for row in rows.fetchall()]

    def check(self, kind: Kind, job: ChargedJob, version: str) -> None:
        """Raise PolicyError if the answer would be one too many."""
        if not self._ledger.exists:
            self._check([], kind)
            return
        with self._ledger.connected() as connection:
            answers = self._all(connection)
        if not self._is_known(answers, kind, job, version):
            self._check(answers, kind)

    def charge(self, kind: Kind, job: ChargedJob, version: str) -> int | None:
        """Count an answer, on disk; return its number, or None for a question that is counted already.

        Raises PolicyError beyond the limit, BudgetError if the ledger cannot be written.
        """
        with self._ledger.connected() as connection:
            answers = self._all(connection)
            if self._is_known(answers, kind, job, version):
                return None
            self._check(answers, kind)
            cursor = connection.execute(
                "INSERT INTO answers (data, kind, asker, job, job_sha256, version, asked, came_to) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, '')",
                (self._ledger.data, kind, self._ledger.asker, job.name, job.digest.hex(), version, now()),
            )
            return cursor.lastrowid

    def strike_out(self, number: int) -> None:
        """The question came to a result, which has a charge of its own."""
        self.note(number, _RELEASED)

    def note(self, number: int, came_to: str) -> None:
        """With which error the run ended."""
        with self._ledger.connected() as connection:
            connection.execute("UPDATE answers SET came_to = ? WHERE id = ?", (came_to, number))

    def _is_known(self, answers: Sequence[Answer], kind: Kind, job: ChargedJob, version: str) -> bool:
        key = (kind, self._ledger.asker, job.digest.hex(), version)
        known = {(each.kind, each.asker, each.job_sha256, each.version) for each in answers}
        return kind == "question" and key in known

    def _check(self, answers: Sequence[Answer], kind: Kind) -> None:
        n, limit = sum(each.kind == kind for each in _counting(answers)), self._limits[kind]
        if n >= limit:
            raise PolicyError(
                "policy-refused",
                f"no further {kind} of this data set is answered (`policy.max_{_PLURALS[kind]}`)",
                private=f"{n} of {limit} are counted: `party budget` lists them, `max_{_PLURALS[kind]}` is the "
                "limit",
            )

    def words(self) -> str:
        """Say how many are counted and allowed, for the owner."""
        found = Counter(each.kind for each in self.all())
        return ", ".join(
            f"{_PLURALS[kind]}: {found[kind]} of {limit}" for kind, limit in self._limits.items()
        )

    def fields(self) -> dict[str, int]:
        """The same as fields."""
        found = Counter(each.kind for each in self.all())
        counts = {_PLURALS[kind]: found[kind] for kind in self._limits}
        return counts | {f"max_{_PLURALS[kind]}": limit for kind, limit in self._limits.items()}


def _counting(answers: Sequence[Answer]) -> list[Answer]:
    return [each for each in answers if each.came_to != _RELEASED]


class Answering:
    """The account of a run with what its model does not charge: questions and alignments."""

    def __init__(self, account: Account, ledger: PrivacyLedger, policy: Policy, task: Task) -> None:
        """``account``: of the model. ``ledger``: on behalf of the coordinator (:meth:`PrivacyLedger.asked_by`)."""
        self._account = account
        self._ledger = ledger
        self._answers = Answers(ledger, policy)
        self._policy = policy
        self._task = task
        self._job = _charged(task)
        self._counted: list[int] = []

    @property
    def remark(self) -> str:
        return self._account.remark

    @property
    def number(self) -> int | None:
        return self._account.number

    @property
    def keeps(self) -> bool:
        return self._account.keeps

    def check(self) -> None:
        """Before a table is read: raise as the model's account, PolicyError if no further alignment is allowed.

        Where a result is kept there may be none to come; if there is, :meth:`conducted` refuses it.
        """
        self._account.check()
        if self._task.partition.matched and not self.keeps:
            self._answers.check("alignment", self._job, "")

    def load(self, source: Source, me: str, rng: Rng) -> Table:
        """Count the question, then read the table. Raises PolicyError beyond the limit; what reading it raises."""
        self.ask(source)
        table = self._task.load(source, me)
        self.read(self._task, me, table, rng)
        return table

    def ask(self, source: Source) -> None:
        """Count the question before the table is looked at, where its values can decide the answer."""
        if asks(self._task) and (number := self._answers.charge("question", self._job, source.version())):
            self._counted.append(number)

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        self._account.read(task, me, table, rng)

    def conducted(
        self,
        task: Task,
        peers: Sequence[str],
        protocol: Callable[[Observer], Rounds[Result]],
        shown: Observer,
    ) -> Rounds[Result]:
        """Under the model's account; an alignment is counted before its first message.

        The question is struck out once there is a result. Raises PolicyError if no further alignment is allowed, or
        too many ids are entered or too few records common; what the model's account and the protocol raise.
        """
        questions = tuple(self._counted)
        result = yield from self._account.conducted(
            task, peers, lambda seen: self._counting(protocol, seen), shown
        )
        for number in questions:
            self._answers.strike_out(number)
            self._counted.remove(number)
        return result

    def _counting(self, protocol: Callable[[Observer], Rounds[Result]], seen: Observer) -> Rounds[Result]:
        if not self._task.partition.matched:
            return (yield from protocol(seen))
        number = self._answers.charge("alignment", self._job, "")
        assert number is not None, "no alignment is like another"
        self._counted.append(number)
        return (yield from protocol(_Aligned(seen, self._policy)))

    def deliver(self, release: bytes, *, agreed: bool) -> None:
        self._account.deliver(release, agreed=agreed)

    def ended(self, problem: Problem) -> None:
        """The run ended with a problem: note which, and where it arose as far as it was said.

        A party that stops tells the coordinator, too, whose cancellation may be here first: then that is noted.
        """
        where = problem.party or ""
        where = self._ledger.asker if problem.error_id == "cancelled" else where
        for number in self._counted:
            self._answers.note(number, problem.error_id)
        if self.number is not None:
            self._ledger.end(self.number, problem.error_id, where)


class _Aligned(PassedOn):
    """Ends a run in which others enter too many ids, or which has too few common records.

    The first before anything made from ids is sent, the second before classes are compared or given.
    """

    def __init__(self, shown: Observer, policy: Policy) -> None:
        super().__init__(shown)
        self._policy = policy

    def announced(self, own: int, others: Mapping[str, int]) -> None:
        most = self._policy.peer_ids(own)
        if beyond := [f"{party}: {counted(n, 'id', 'ids')}" for party, n in others.items() if n > most]:
            raise PolicyError(
                "policy-refused",
                "a party enters more ids than our policy allows (`policy.max_peer_ids`)",
                private=f"{', '.join(beyond)}; `policy.max_peer_ids` allows {most:,}, and we enter {own:,}",
            )
        super().announced(own, others)

    def aligned(self, n_common: int) -> None:
        least = self._policy.min_common
        if n_common < least:
            raise PolicyError(
                "policy-refused",
                "fewer records are common to all parties than our policy asks for (`policy.min_common`)",
                private=f"{counted(n_common, 'record', 'records')}, and `policy.min_common` is {least}",
            )
        super().aligned(n_common)


def asks(task: Task) -> bool:
    """Return True if reading a table for this job answers something about its values: not where no value is
    an error.
    """
    return task.model.reading.checked or task.partition.matched


def check_answers(ledger: PrivacyLedger, policy: Policy, task: Task, source: Source) -> None:
    """Raise PolicyError if a job would be refused for what was answered before it, DataError without a table."""
    answers = Answers(ledger, policy)
    if asks(task):
        answers.check("question", _charged(task), source.version())
    if task.partition.matched:
        answers.check("alignment", _charged(task), "")


def _charged(task: Task) -> ChargedJob:
    return ChargedJob(task.model.name, task.job.name, task.digest)
