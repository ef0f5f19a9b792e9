"""Questions and alignments in the ledger: what counts, what counts once, what is struck out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from anonymize.tds import Observer
from crypto.local import run_local
from jobs.data.sources import Csv
from jobs.errors import BudgetError, PolicyError, Problem
from jobs.owner.account import Unaccounted
from jobs.owner.answers import Answering, Answers, Kind, asks, check_answers
from jobs.owner.ledger import ChargedJob, PrivacyLedger
from jobs.owner.listing import charged_job
from jobs.owner.policy import Policy
from jobs.task import Task
from tests.support import jobs
from tests.support.dp_jobs import dp_joint
from tests.support.joint import sample_rows
from tests.support.rng import SeededRng
from tests.support.samples import COLUMNS, PARTIES, joint_job, vertical_job

JOB, OTHER = ChargedJob("lkc", "one", bytes(32)), ChargedJob("lkc", "two", bytes([1] * 32))
TASK = jobs.task_of(joint_job())


@pytest.fixture
def ledger(tmp_path: Path) -> PrivacyLedger:
    return PrivacyLedger(tmp_path / "privacy.sqlite", "patients", "coordinator")


@pytest.fixture
def table(tmp_path: Path) -> Csv:
    return Csv(jobs.write_csv(tmp_path / "table.csv", sample_rows(20), COLUMNS))


def policy(**limits: int) -> Policy:
    return Policy(**limits)


def refused(answers: Answers, kind: Kind, job: ChargedJob = JOB, version: str = "1") -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        answers.charge(kind, job, version)
    return caught.value


def test_looking_makes_no_ledger(ledger: PrivacyLedger) -> None:
    assert Answers(ledger, policy()).all() == []
    Answers(ledger, policy()).check("question", JOB, "1")
    assert not ledger.exists


def test_a_question_counts_once_for_an_asker_a_job_and_a_version(ledger: PrivacyLedger) -> None:
    other = Answers(ledger.asked_by("another"), policy())
    answers = Answers(ledger, policy(max_questions=4))
    assert answers.charge("question", JOB, "1") is not None
    assert answers.charge("question", JOB, "1") is None
    for each, job, version in ((answers, OTHER, "1"), (answers, JOB, "2"), (other, JOB, "1")):
        assert each.charge("question", job, version) is not None
    problem = refused(answers, "question", OTHER, "2").problem
    assert problem.message == "no further question of this data set is answered (`policy.max_questions`)"
    assert "4 of 4" in problem.private
    assert "4" not in str(problem.shared())
    assert answers.charge("question", JOB, "2") is None  # what was answered may be heard again
    assert [(a.asker, a.job, a.version) for a in answers.all()] == [
        ("coordinator", "one", "1"),
        ("coordinator", "two", "1"),
        ("coordinator", "one", "2"),
        ("another", "one", "1"),
    ]


def test_a_question_that_came_to_a_result_is_free_ever_after(ledger: PrivacyLedger) -> None:
    """The release has its own charge; its repetition asks nothing new, whatever else was asked since."""
    answers = Answers(ledger, policy(max_questions=1))
    answers.charge("question", JOB, "1")
    answers.strike_out(JOB, "1")
    assert (answers.all(), answers.words()) == ([], "questions: 0 of 1, alignments: 0 of 10")
    answers.charge("question", OTHER, "1")
    answers.check("question", JOB, "1")
    assert answers.charge("question", JOB, "1") is None
    refused(answers, "question", JOB, "2")  # another table


def test_no_alignment_is_like_another(ledger: PrivacyLedger) -> None:
    answers = Answers(ledger, policy(max_alignments=2, max_questions=0))
    for _ in range(2):
        answers.charge("alignment", JOB, "")
    assert "no further alignment" in refused(answers, "alignment").problem.message
    assert "no further question" in refused(answers, "question").problem.message
    assert answers.words() == "questions: 0 of 0, alignments: 2 of 2"


def test_data_sets_are_counted_apart(ledger: PrivacyLedger, tmp_path: Path) -> None:
    Answers(ledger, policy()).charge("question", JOB, "1")
    staff = PrivacyLedger(tmp_path / "privacy.sqlite", "staff")
    assert Answers(staff, policy()).all() == []


def test_what_a_question_came_to(ledger: PrivacyLedger) -> None:
    answers = Answers(ledger, policy())
    numbers = [answers.charge("question", JOB, version) for version in "123"]
    for number, came_to in zip(numbers[1:], ("data-empty", "peer-lost"), strict=True):
        assert number is not None
        answers.note(number, came_to)
    assert [a.words for a in answers.all()] == ["answered", "refused: data-empty", "admitted, then peer-lost"]


@pytest.mark.parametrize(
    ("job", "tells"),
    [
        (joint_job(), True),
        (vertical_job(), True),
        (dp_joint("vertical"), True),
        (dp_joint("horizontal"), False),  # no value is an error, and nothing is matched
    ],
)
def test_where_reading_a_table_tells_something(job: dict[str, Any], tells: bool) -> None:
    assert asks(jobs.task_of(job)) == tells


def answering(ledger: PrivacyLedger, task: Task = TASK, **limits: int) -> Answering:
    return Answering(Unaccounted(), ledger, policy(**limits), task)


def test_beyond_the_limit_the_table_is_not_looked_at(ledger: PrivacyLedger, table: Csv) -> None:
    answering(ledger).load(table, PARTIES[0], SeededRng(0))
    table.path.write_text("no table at all")
    with pytest.raises(PolicyError, match="no further question"):
        answering(ledger, max_questions=1).load(table, PARTIES[0], SeededRng(0))
    with pytest.raises(PolicyError, match="no further question"):
        check_answers(ledger, policy(max_questions=1), TASK, table)
    check_answers(ledger, policy(max_questions=2), TASK, table)


def test_the_end_is_noted_of_what_the_run_was_counted(ledger: PrivacyLedger, table: Csv) -> None:
    for error_id in ("data-empty", "peer-lost"):
        account = answering(ledger)
        account.ask(table)
        account.ended(Problem(error_id, "says the test", PARTIES[1]))
    (answer,) = Answers(ledger, policy()).all()
    assert answer.came_to == "data-empty"  # the second run was counted with the first


@pytest.mark.parametrize(
    ("error_id", "n_left"), [("peer-lost", 0), ("cancelled", 0), ("data-empty", 1), ("policy-refused", 1)]
)
def test_a_result_strikes_out_what_a_lost_run_asked(
    ledger: PrivacyLedger, table: Csv, error_id: str, n_left: int
) -> None:
    """The job came to a result in the end. A refusal told something else, and stays."""
    Answers(ledger.asked_by("another"), policy()).charge("question", JOB, "1")
    lost, later = answering(ledger), answering(ledger)
    lost.ask(table)
    lost.ended(Problem(error_id, "says the test"))
    later.ask(table)
    run_local({PARTIES[0]: later.conducted(TASK, (), lambda shown: nothing(), Observer())})
    later.ended(Problem("peer-lost", "after the result"))
    answers = Answers(ledger, policy()).all()
    assert [answer.asker for answer in answers] == ["another", *["coordinator"] * n_left]


def nothing() -> Any:
    return None
    yield


class Charged(Unaccounted):
    """A run that is charged to an entry."""

    def __init__(self, number: int) -> None:
        self._number = number

    @property
    def number(self) -> int:
        return self._number


@pytest.mark.parametrize(("n_tellers", "at"), [(0, PARTIES[1]), (1, PARTIES[1]), (2, ""), (3, "")])
def test_nobody_is_named_for_what_another_passed_on(ledger: PrivacyLedger, n_tellers: int, at: str) -> None:
    """The disk of one party is full; another, which heard of it first, passes the word on."""
    number = ledger.reserve(charged_job(TASK), None)
    problem = Problem("io-failed", "the disk is full", PARTIES[1])
    for teller in (PARTIES[1], PARTIES[2], PARTIES[0])[:n_tellers]:
        problem = Problem.told(problem.for_others(), teller)
    Answering(Charged(number), ledger, policy(), TASK).ended(problem)
    assert [(entry.ended, entry.ended_at) for entry in ledger.entries()] == [("io-failed", at)]


def test_the_end_is_noted_at_the_party_that_a_peer_lost(ledger: PrivacyLedger) -> None:
    """A peer tells of the loss before the party notices the loss."""
    number = ledger.reserve(charged_job(TASK), None)
    lost = Problem("peer-lost", f"{PARTIES[1]} went away", PARTIES[1])
    said = Problem.told(lost.for_others(), PARTIES[2])
    Answering(Charged(number), ledger, policy(), TASK).ended(said)
    assert [(entry.ended, entry.ended_at) for entry in ledger.entries()] == [("peer-lost", PARTIES[1])]


@pytest.mark.parametrize(("opened", "state"), [(False, "returned"), (True, "opened")])
def test_an_ended_run_keeps_no_charge_that_is_not_final(
    ledger: PrivacyLedger, opened: bool, state: str
) -> None:
    number = ledger.reserve(charged_job(TASK), None)
    if opened:
        ledger.open(number)
    Answering(Charged(number), ledger, policy(), TASK).ended(Problem("peer-lost", "says the test"))
    assert [(entry.state, entry.ended) for entry in ledger.entries()] == [(state, "peer-lost")]
    with pytest.raises(BudgetError, match="is not reserved"):
        ledger.open(number)


@pytest.mark.parametrize("limit", [0, 1])
def test_alignments_are_refused_before_a_table_is_read(ledger: PrivacyLedger, limit: int) -> None:
    account = answering(ledger, jobs.task_of(vertical_job()), max_alignments=limit)
    if limit:
        account.check()
    else:
        with pytest.raises(PolicyError, match="no further alignment"):
            account.check()


def test_a_kept_result_needs_no_alignment(ledger: PrivacyLedger) -> None:
    """Nothing is computed where all parties keep the result; what else there is to align is refused in time."""

    class Keeping(Unaccounted):
        keeps = True

    task = jobs.task_of(vertical_job())
    account = Answering(Keeping(), ledger, policy(max_alignments=0), task)
    account.check()
    with pytest.raises(PolicyError, match="no further alignment"):
        next(account.conducted(task, (), lambda shown: iter(()), Observer()))  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("limits", "own", "most"),
    [
        ({"max_peer_ids": 1}, 500, 1),
        ({"max_peer_ids": 5000}, 1, 5000),
        ({}, 0, 1000),
        ({}, 100, 1000),
        ({}, 101, 1010),
        ({}, 5000, 50_000),
    ],
)
def test_many_ids_of_any_other_party_end_a_run(
    ledger: PrivacyLedger, limits: dict[str, int], own: int, most: int
) -> None:
    """The bound is the policy's; unset, it is 10 times the own number of ids, and at least 1,000."""
    heard: list[tuple[int, dict[str, int]]] = []

    class Shown(Observer):
        def announced(self, own: int, others: Mapping[str, int]) -> None:
            heard.append((own, dict(others)))

    def protocol(shown: Observer, others: dict[str, int]) -> Any:
        shown.announced(own, others)
        return "a result"
        yield

    def run(**others: int) -> Any:
        account = answering(ledger, jobs.task_of(vertical_job()), **limits)
        next(account.conducted(TASK, (), lambda shown: protocol(shown, others), Shown()))

    assert policy(**limits).peer_ids(own) == most
    with pytest.raises(StopIteration):
        run(loan=1, bank=most)
    for larger, smaller in (("loan", "bank"), ("bank", "loan")):
        with pytest.raises(PolicyError) as caught:
            run(**{larger: most + 1, smaller: 1})
        problem = caught.value.problem
        assert problem.error_id == "policy-refused"
        assert problem.message == ("a party enters more ids than our policy allows (`policy.max_peer_ids`)")
        numbers = f"{most + 1:,} ids; `policy.max_peer_ids` allows {most:,}, and we enter {own:,}"
        assert problem.private == f"{larger}: {numbers}"
    assert heard == [(own, {"loan": 1, "bank": most})]
    assert [answer.kind for answer in Answers(ledger, policy()).all()] == ["alignment"] * 3


@pytest.mark.parametrize(("n_common", "goes_on"), [(19, False), (20, True)])
def test_few_common_records_end_a_run(ledger: PrivacyLedger, n_common: int, goes_on: bool) -> None:
    heard: list[int] = []

    class Shown(Observer):
        def aligned(self, n_common: int) -> None:
            heard.append(n_common)

    def protocol(shown: Observer) -> Any:
        shown.aligned(n_common)
        return "a result"
        yield

    account = answering(ledger, jobs.task_of(vertical_job()))
    running = account.conducted(TASK, (), protocol, Shown())
    with pytest.raises(StopIteration if goes_on else PolicyError) as caught:
        next(running)
    assert heard == [n_common] * goes_on
    assert goes_on or str(n_common) not in str(caught.value)
    assert [answer.kind for answer in Answers(ledger, policy()).all()] == ["alignment"]
