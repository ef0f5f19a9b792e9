"""Questions about a table that nobody counted: refusals, alignments, classes, numbers of rows, runs that break off.

Each test asks as the attacker would, by changed jobs or a daemon that leaves when it has what it wants, and finds
that the other parties' ledgers counted every answer and their policies ended it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import conduct
from crypto.rounds import Inbox, Round
from jobs.errors import PartyError
from jobs.lkc.result import LkcResult
from jobs.loading import open_task
from jobs.owner.answers import Answers
from jobs.task import Result, Task
from party import computation
from party.net import control
from tests.support import jobs
from tests.support.by_hand import open_control
from tests.support.dp_jobs import dp_joint, dp_network
from tests.support.duplex import run
from tests.support.joint import sample_rows
from tests.support.network import Network, sample_network, serving
from tests.support.samples import COLUMNS, PARTIES, joint_job

A, B, C = PARTIES
CANCELLED = ("cancelled", "coordinator")
"""End of a run where the coordinator, who heard of it, was quicker than the party that left."""
Leaves = Callable[[Round | Result], bool]
"""Tells if a hostile party has what it wants: asked of each of its rounds before it is sent, and of its
result.
"""


def leaving(party: str, leaves: Leaves, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a party run the protocol as prescribed, and go when it has what it wants."""
    honest = computation.protocol_of

    def hostile(generator: Generator[Round, Inbox, Result]) -> Generator[Round, Inbox, Result]:
        inbox: Inbox | None = None
        with closing(generator):
            while True:
                try:
                    turn = next(generator) if inbox is None else generator.send(inbox)
                except StopIteration as stop:
                    leave_if(leaves(stop.value))
                    return stop.value
                leave_if(leaves(turn))
                inbox = yield turn

    def protocol_of(task: Task, me: str, *rest: Any) -> Any:
        generator = honest(task, me, *rest)
        return hostile(generator) if me == party else generator

    monkeypatch.setattr(computation, "protocol_of", protocol_of)


def leave_if(wanted: bool) -> None:
    if wanted:
        raise PartyError("io-failed", "the disk is full")


async def said_of(net: Network, fields: dict[str, Any], out: Path) -> str:
    """Run a job; return the id of its error, or `ran`."""
    try:
        await conduct(jobs.task_of(fields), net.coordinator, out)
    except PartyError as error:
        return error.problem.error_id
    return "ran"


async def is_admitted(net: Network, fields: dict[str, Any]) -> bool | None:
    """Return True if hospital-a admits a job that is never started; None if it refuses to look."""
    bundle = jobs.bundle_of(fields)
    calls: list[Any] = []
    stream = await open_control(Network(net.root, bundle, net.addresses), A, calls)
    for piece in control.pieces("bundle", bundle.encoded):
        await stream.write(control.Submit(bytes(16), piece))
    event = await stream.read()
    if isinstance(event, control.Allowed):
        await stream.write(control.Read())
        event = await stream.read()
    await stream.close()
    await calls[0].close()
    if isinstance(event, control.Failed) and event.problem.error_id == "busy":
        return await is_admitted(net, fields)  # the last session is still being put away
    if isinstance(event, control.Failed) and event.problem.error_id == "policy-refused":
        assert (
            event.problem.message
            == "no further question of this data set is answered (`policy.max_questions`)"
        )
        return None
    return isinstance(event, control.Admitted)


def policy(net: Network, party: str, **changes: Any) -> None:
    net.change(party, lambda fields: fields["policy"].update(changes))


def answers(net: Network, party: str) -> list[tuple[str, str]]:
    config = net.config(party)
    return [(each.kind, each.came_to) for each in Answers(config.ledger, config.policy).all()]


def test_releases_count_though_their_runs_break_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H6: hospital-b keeps every table and fails; one release is allowed."""
    net, taken = sample_network(tmp_path / "net", disclosure="sealed"), []

    def keeps(turn: object) -> bool:
        taken.extend([turn] if isinstance(turn, LkcResult) else [])
        return isinstance(turn, LkcResult)

    leaving(B, keeps, monkeypatch)
    for party in PARTIES:
        policy(net, party, max_lkc_releases=1)

    async def scenario() -> list[str]:
        async with serving(net):
            jobs_asked = [
                joint_job(disclosure="sealed", model={"lkc": {"L": "2", "K": str(k), "C": "1/2"}})
                for k in range(2, 4)
            ]
            return [await said_of(net, job, tmp_path / f"{i}") for i, job in enumerate(jobs_asked)]

    assert run(scenario()) == ["io-failed", "policy-refused"]
    assert len(taken) == 1
    for party in (A, C):
        (entry,) = net.config(party).ledger.entries()
        assert entry.state in (
            "opened",
            "finished",
        )  # the news may come before the result is kept; either is charged
        assert entry.asker == "coordinator"
        assert (entry.ended, entry.ended_at) in {("io-failed", B), CANCELLED}


def test_a_search_for_the_greatest_value_by_jobs_that_are_never_started(tmp_path: Path) -> None:
    """H5: a binary search takes ten questions, the policy allows four; no answer after that depends on data."""
    net = sample_network(tmp_path / "net", disclosure="sealed")
    policy(net, A, max_questions=4)

    def below(most: int) -> dict[str, Any]:
        age = {"role": "qid", "numeric": {"min": "-1", "max": str(most), "step": str(most + 1)}}
        return joint_job(disclosure="sealed", columns={**COLUMNS, "age": age})

    async def scenario() -> tuple[list[bool | None], set[bool | None], bool | None]:
        heard, low, high = [], 1, 1000
        async with serving(net, only=[A]):
            while low < high and None not in heard:
                middle = (low + high) // 2
                heard.append(await is_admitted(net, below(middle)))
                low, high = (low, middle) if heard[-1] else (middle + 1, high)
            later = {await is_admitted(net, below(most)) for most in (2, 50, 500, 5000)}
            return heard, later, await is_admitted(net, below(500))

    heard, later, again = run(scenario())
    assert heard == [True, True, True, True, None][: len(heard)] or heard[-1] is None
    assert len(heard) == 5
    assert later == {None, True}  # 500 was asked first, and is the same answer for the same file
    assert again is True
    assert len(answers(net, A)) == 4
    assert net.config(A).ledger.entries() == []


def test_the_same_question_counts_once_and_a_changed_table_makes_another(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net", disclosure="sealed")
    policy(net, A, max_questions=2)
    no_knee = {"role": "sensitive", "domain": ["Heart", "Rare"], "values": ["Rare"]}
    job = joint_job(disclosure="sealed", columns={**COLUMNS, "surgery": no_knee})

    async def scenario() -> None:
        async with serving(net, only=[A]):
            for _ in range(3):
                assert await is_admitted(net, job) is False
            assert len(answers(net, A)) == 1
            jobs.write_csv(net.config(A).source.path, sample_rows(8), COLUMNS)  # type: ignore[attr-defined]
            assert await is_admitted(net, job) is False
            assert len(answers(net, A)) == 2
            jobs.write_csv(net.config(A).source.path, sample_rows(9), COLUMNS)  # type: ignore[attr-defined]
            assert await is_admitted(net, job) is None

    run(scenario())
    assert {came_to for _, came_to in answers(net, A)} <= {"data-unknown-value", ""}


@pytest.mark.more
def test_a_job_with_a_result_is_no_question(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net", disclosure="sealed")

    async def scenario() -> None:
        async with serving(net):
            assert await said_of(net, joint_job(disclosure="sealed"), tmp_path / "out") == "ran"

    run(scenario())
    assert [answers(net, party) for party in PARTIES] == [[], [], []]


def test_a_requirement_that_cannot_be_met_is_an_answer(tmp_path: Path) -> None:
    """Asked with one K after another it is the number of rows."""
    net = sample_network(tmp_path / "net", disclosure="sealed")
    policy(net, A, max_questions=1)
    too_many = [
        joint_job(disclosure="sealed", model={"lkc": {"L": "2", "K": k, "C": "1/2"}}) for k in ("500", "400")
    ]

    async def scenario() -> list[str]:
        async with serving(net):
            return [await said_of(net, job, tmp_path / str(i)) for i, job in enumerate(too_many)]

    assert run(scenario()) == ["requirement-unmet", "policy-refused"]
    assert answers(net, A) in ([("question", "requirement-unmet")], [("question", "cancelled")])


def dp_asking(tmp_path: Path, partition: str) -> tuple[Network, Callable[[int], dict[str, Any]]]:
    """A network of a DP job, and the job under other names."""
    job = dp_joint(partition)
    return dp_network(tmp_path, jobs.bundle_of(job)), lambda i: job | {"name": f"ask-{i}"}


@pytest.mark.some(1)
@pytest.mark.parametrize("least", [20, 1])
def test_the_class_of_a_person_by_a_table_of_one_row(
    tmp_path: Path, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H4: the default of `min_common` compares no class; without it each comparison costs the whole ε, each
    alignment counts, and both end.
    """
    net, named = dp_asking(tmp_path, "vertical")
    agreed = []

    def has_heard(turn: object) -> bool:
        heard = (
            isinstance(turn, Round) and turn.step == "vertical/agree" and b"\x01" in turn.outgoing.values()
        )
        agreed.extend([True] if heard else [])
        return heard

    leaving(A, has_heard, monkeypatch)
    policy(net, A, epsilon_budget="1000", max_alignments=1000, max_questions=1000)
    policy(net, B, epsilon_budget="2", max_alignments=3, min_common=least)
    people = sample_rows(61)

    async def scenario() -> list[str]:
        said = []
        async with serving(net, only=[A, B]):
            for i in range(4):
                row = people[i] | {"transfused": people[i]["transfused"]}
                jobs.write_csv(net.config(A).source.path, [row], COLUMNS)  # type: ignore[attr-defined]
                said.append(await said_of(net, named(i), tmp_path / f"out{i}"))
        return said

    said = run(scenario())
    spent = net.config(B).ledger.spent()
    counted = [kind for kind, _ in answers(net, B)].count("alignment")
    if least > 1:
        assert said == ["policy-refused"] * 4
        assert (agreed, spent, counted) == ([], 0, 3)
    else:
        assert said == [*["io-failed"] * 2, *["budget-exceeded"] * 2]
        assert (len(agreed), spent, counted) == (2, Fraction(2), 2)


def test_membership_by_jobs_that_end_with_the_alignment(tmp_path: Path) -> None:
    """H4: nothing is common and no ε is spent; the policy ends it."""
    net, named = dp_asking(tmp_path, "vertical")
    policy(net, B, max_alignments=2)

    async def scenario() -> list[str]:
        said = []
        async with serving(net, only=[A, B]):
            for i in range(3):
                row = sample_rows(1)[0] | {"patient": f"nobody-{i}"}
                jobs.write_csv(net.config(A).source.path, [row], COLUMNS)  # type: ignore[attr-defined]
                said.append(await said_of(net, named(i), tmp_path / f"out{i}"))
        return said

    assert run(scenario()) == [*["no-common-records"] * 2, "policy-refused"]
    assert [kind for kind, _ in answers(net, B)].count("alignment") == 2
    assert net.config(B).ledger.spent() == 0


@pytest.mark.more
def test_a_repetition_is_free_when_no_question_is_left(tmp_path: Path) -> None:
    """The kept result is given again: nothing is computed, and nothing new is asked."""
    net, named = dp_asking(tmp_path, "vertical")
    for party in (A, B):
        policy(net, party, max_questions=1, max_alignments=1, epsilon_budget="9")

    async def scenario() -> None:
        async with serving(net):
            assert await said_of(net, named(0), tmp_path / "first") == "ran"
            assert await is_admitted(net, named(0)) is True
            assert answers(net, A) == [("alignment", "")]
            policy(net, A, max_alignments=9)
            assert [await is_admitted(net, named(i)) for i in (1, 2)] == [True, None]
            assert await said_of(net, named(0), tmp_path / "again") == "ran"

    run(scenario())
    assert net.config(A).ledger.spent() == 1


@pytest.mark.more
def test_the_number_of_rows_by_other_bounds(tmp_path: Path) -> None:
    """H7: two public numbers are compared; which jobs run says nothing of the table."""
    net, named = dp_asking(tmp_path, "horizontal")

    def bounded(i: int, most: int) -> dict[str, Any]:
        model = {"dp": {"epsilon": "1/1000", "specializations": "1", "max_rows": str(most)}}
        return named(i) | {"model": model}

    async def scenario() -> list[str]:
        async with serving(net):
            bounds = (1, 20, 21, 999, 1000)  # the largest table has 21 rows, the policies' bound is 1000
            return [await said_of(net, bounded(i, most), tmp_path / f"{i}") for i, most in enumerate(bounds)]

    assert run(scenario()) == [*["policy-refused"] * 4, "ran"]


@pytest.mark.more
def test_a_table_beyond_its_owners_bound_says_the_same_to_every_job(tmp_path: Path) -> None:
    net, named = dp_asking(tmp_path, "horizontal")
    for party in PARTIES:
        policy(net, party, max_rows=20)  # hospital-a has 21 rows, the others have 20

    async def scenario() -> set[str]:
        said = set()
        async with serving(net):
            for i, most in enumerate((20, 21, 1000)):
                model = {"dp": {"epsilon": "1/1000", "specializations": "1", "max_rows": str(most)}}
                task = jobs.task_of(named(i) | {"model": model})
                with pytest.raises(PartyError) as caught:
                    await conduct(task, net.coordinator, tmp_path / f"{i}")
                problem = caught.value.problem
                assert (problem.error_id, problem.party) == ("too-many-rows", A)
                said.add(problem.message)
        return said

    assert run(scenario()) == {"the table has more rows than the owner's bound for DP jobs"}
    assert not any(net.config(party).ledger.spent() for party in PARTIES)


def test_who_burned_the_budget_stands_in_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """M8: hospital-c goes when the others' charge is final. It costs them the budget, and they know by whom."""
    net, named = dp_asking(tmp_path, "horizontal")
    heard: list[str] = []

    def has_heard_a_candidate(turn: object) -> bool:
        """By the next round it has: then the pair's charges are final."""
        heard.append(turn.step if isinstance(turn, Round) else "")
        return heard[-2:-1] == ["dp/candidate"]

    leaving(C, has_heard_a_candidate, monkeypatch)

    async def scenario() -> list[str]:
        async with serving(net):
            return [await said_of(net, named(i), tmp_path / f"{i}") for i in range(2)]

    assert run(scenario()) == ["io-failed", "budget-exceeded"]
    for party in (A, B):
        (entry,) = net.config(party).ledger.entries()
        assert (entry.state, entry.charged, entry.job) == ("opened", 1, "ask-0")
        assert (entry.asker, entry.ended, entry.ended_at) in {
            ("coordinator", "io-failed", C),
            ("coordinator", *CANCELLED),
        }


def test_what_a_coordinator_chooses_the_policy_has_a_say_in(tmp_path: Path) -> None:
    """M7: the compute pair, who leads, how counts are summed, whose noise."""
    net = sample_network(tmp_path / "net", disclosure="leader")
    asked = {
        "both others": joint_job(disclosure="sealed", leader=B, deputy=C),
        "another leads": joint_job(disclosure="leader", leader=C),
        "ring": joint_job(disclosure="leader", secure_sum="ring"),
        "noise of each": dp_joint("horizontal", {"noise": "each"}),
    }
    policy(net, A, disclosure=["sealed", "leader"], max_epsilon="1", max_rows=1)

    async def scenario() -> set[str]:
        async with serving(net, only=[A]):
            said = set()
            for job in asked.values():
                task = open_task(jobs.bundle_of(job))
                calls: list[Any] = []
                stream = await open_control(Network(net.root, task.bundle, net.addresses), A, calls)
                for piece in control.pieces("bundle", task.bundle.encoded):
                    await stream.write(control.Submit(bytes(16), piece))
                event = await stream.read()
                assert isinstance(event, control.Failed)
                said.add(event.problem.message)
                await stream.close()
                await calls[0].close()
            return said

    assert run(scenario()) == {
        f"{B} and {C} may not be the compute pair of a job with us (`policy.pairs`)",
        f"{C} may not lead a job with us (`policy.leaders`)",
        "counts may not be summed by secure_sum ring, only masked (`policy.secure_sum`)",
        "counts may not get noise of kind each, only joint (`policy.noise`)",
    }


def test_refusals_by_one_party_use_up_no_questions_of_the_others(tmp_path: Path) -> None:
    """A coordinator tries one K after the other; hospital-c alone refuses each. No other table is looked at."""
    net = sample_network(tmp_path / "net", disclosure="sealed")
    policy(net, C, min_k=500)

    async def scenario() -> list[str]:
        async with serving(net):
            refused = [
                await said_of(
                    net,
                    joint_job(disclosure="sealed", model={"lkc": {"L": "2", "K": str(k), "C": "0.5"}}),
                    tmp_path / f"out-{k}",
                )
                for k in range(3, 5)
            ]
            policy(net, C, min_k=2)
            return [*refused, await said_of(net, joint_job(disclosure="sealed"), tmp_path / "out")]

    assert run(scenario()) == ["policy-refused"] * 2 + ["ran"]
    assert [answers(net, party) for party in PARTIES] == [[], [], []]
