"""Answers of a party about its table beside releases, counted: refusals, admissions, alignments.

Every reading of a table answers something about the table. A *question* is a job that reads the table, counted
before the table is looked at. If the job comes to a result, the question no longer counts, since the release has a
separate charge. So a refusal counts, and an unused admission counts. The same job of the same coordinator on the
same version of the table counts once. An *alignment* tells peers which of the ids they entered are ours, and then a
bit about classes. Each alignment is counted before its first message, for good: nobody sees the entered ids. The
number of ids is visible, and bounded by the policy; an alignment refused for the number stays counted.

Beyond the limit of the policy the answer is a single message, sent before any data is read.
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
"""Outcome of a question that no longer counts. The question stays known, so its repetition does not count."""

_REFUSALS = (*ANSWERS, "policy-refused")
"""Outcomes that told something about the table which the result of a later run need not tell."""

_PLURALS = {"question": "questions", "alignment": "alignments"}


@dataclass(frozen=True)
class Answer:
    """Counted answer.

    asker:    the coordinator.
    version:  of the table, as its source tells without reading the table.
    came_to:  the id of the error that ended the run; empty while unknown.
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
    def key(self) -> tuple[str, ...]:
        """Identity of a question: the same question counts once."""
        return self.kind, self.asker, self.job_sha256, self.version

    @property
    def words(self) -> str:
        """Statement for the owner on the asker's knowledge."""
        if not self.came_to:
            return "answered"
        return f"refused: {self.came_to}" if self.came_to in ANSWERS else f"admitted, then {self.came_to}"


class Answers:
    """Counted answers about a data set, in its privacy ledger."""

    def __init__(self, ledger: PrivacyLedger, policy: Policy) -> None:
        self._ledger = ledger
        self._limits: dict[Kind, int] = {
            "question": policy.max_questions,
            "alignment": policy.max_alignments,
        }

    def all(self) -> list[Answer]:
        """Return the answers that count, oldest first. A question that came to a release does not count."""
        if not self._ledger.exists:
            return []
        with self._ledger.connected() as connection:
            return _counting(self._all(connection))

    def _all(self, connection: Connection) -> list[Answer]:
        """Return all answers, oldest first, with the questions that came to a release."""
        rows = connection.execute(
            "SELECT id, kind, asker, job, job_sha256, version, asked, came_to FROM answers WHERE data = ? "
            "ORDER BY id",
            (self._ledger.data,),
        )
        return [Answer(*row) for row in rows.fetchall()]

    def check(self, kind: Kind, job: ChargedJob, version: str) -> None:
        """Raise PolicyError if a further answer would exceed the limit."""
        if not self._ledger.exists:
            self._check([], kind)
            return
        with self._ledger.connected() as connection:
            answers = self._all(connection)
        if not self._is_known(answers, kind, job, version):
            self._check(answers, kind)

    def charge(self, kind: Kind, job: ChargedJob, version: str) -> int | None:
        """Count an answer, on disk; return its number, or None for a question already counted.

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
        self._ledger.told({"kind": kind, "answer": cursor.lastrowid})
        return cursor.lastrowid

    def strike_out(self, job: ChargedJob, version: str) -> None:
        """Strike out the question of a job that came to a result, since the result has a separate charge.

        A run that was lost before may have asked the question. A refusal stays, since the result does not tell it.
        """
        with self._ledger.connected() as connection:
            for each in self._all(connection):
                if each.key == self._key(job, version) and each.came_to not in _REFUSALS:
                    _note(connection, each.number, _RELEASED)

    def note(self, number: int, came_to: str) -> None:
        """Note the error that ended the run."""
        with self._ledger.connected() as connection:
            _note(connection, number, came_to)

    def _is_known(self, answers: Sequence[Answer], kind: Kind, job: ChargedJob, version: str) -> bool:
        return kind == "question" and self._key(job, version) in {each.key for each in answers}

    def _key(self, job: ChargedJob, version: str) -> tuple[str, ...]:
        return "question", self._ledger.asker, job.digest.hex(), version

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
        """Return the answers as fields."""
        found = Counter(each.kind for each in self.all())
        counts = {_PLURALS[kind]: found[kind] for kind in self._limits}
        return counts | {f"max_{_PLURALS[kind]}": limit for kind, limit in self._limits.items()}


def _note(connection: Connection, number: int, came_to: str) -> None:
    connection.execute("UPDATE answers SET came_to = ? WHERE id = ?", (came_to, number))


def _counting(answers: Sequence[Answer]) -> list[Answer]:
    return [each for each in answers if each.came_to != _RELEASED]


class Answering:
    """Account of a run with the answers that its model does not charge: questions and alignments."""

    def __init__(self, account: Account, ledger: PrivacyLedger, policy: Policy, task: Task) -> None:
        """``account``: of the model. ``ledger``: on behalf of the coordinator (:meth:`PrivacyLedger.asked_by`)."""
        self._account = account
        self._ledger = ledger
        self._answers = Answers(ledger, policy)
        self._policy = policy
        self._task = task
        self._job = _charged(task)
        self._counted: list[int] = []
        self._version: str | None = None

    @property
    def data(self) -> str:
        """Name of the data set that the run is charged to."""
        return self._ledger.data

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
        """Raise, before a table is read, as the model's account; PolicyError if no further alignment is allowed.

        With a kept result there may be no alignment to come. If there is an alignment, :meth:`conducted` refuses
        it.
        """
        self._account.check()
        if self._task.partition.matched and not self.keeps:
            self._answers.check("alignment", self._job, "")

    def load(self, source: Source, me: str, rng: Rng) -> Table:
        """Count the question, then read the table. Raises PolicyError beyond the limit, and the errors of reading."""
        self.ask(source)
        table = self._task.load(source, me)
        self.read(self._task, me, table, rng)
        return table

    def ask(self, source: Source) -> None:
        """Count the question before the table is looked at, if its values can decide the answer."""
        if asks(self._task):
            self._version = source.version()
            if number := self._answers.charge("question", self._job, self._version):
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
        """Run the protocol under the model's account; count an alignment before its first message.

        A question with a result is struck out. Raises PolicyError for an alignment too many, too many entered ids
        or too few common records; and the errors of the model's account and of the protocol.
        """
        questions = tuple(self._counted)
        result = yield from self._account.conducted(
            task, peers, lambda seen: self._counting(protocol, seen), shown
        )
        if self._version is not None:
            self._answers.strike_out(self._job, self._version)
        for number in questions:
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
        """Note the problem that ended the run, and the place of the problem, as far as known.

        A charge that is not final is given back. A step of the run may still compute: the step opens nothing then,
        and a further run meets no charge of this run.

        A stopping party also tells the coordinator, and the coordinator's cancellation may arrive first. The
        cancellation is noted then.
        """
        where = problem.named or ""
        where = self._ledger.asker if problem.error_id == "cancelled" else where
        for number in self._counted:
            self._answers.note(number, problem.error_id)
        if self.number is not None:
            self._ledger.give_back(self.number)
            self._ledger.end(self.number, problem.error_id, where)


class _Aligned(PassedOn):
    """Observer that ends a run in which peers enter too many ids, or with too few common records.

    The first end comes before anything made from ids is sent, the second before classes are compared or given.
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
    """Return True if reading a table for the job answers something about its values: not if no value is an error."""
    return task.model.reading.checked or task.partition.matched


def check_answers(ledger: PrivacyLedger, policy: Policy, task: Task, source: Source) -> None:
    """Raise PolicyError if earlier answers would make the policy refuse the job, DataError without a table."""
    answers = Answers(ledger, policy)
    if asks(task):
        answers.check("question", _charged(task), source.version())
    if task.partition.matched:
        answers.check("alignment", _charged(task), "")


def _charged(task: Task) -> ChargedJob:
    return ChargedJob(task.model.name, task.job.name, task.digest)
