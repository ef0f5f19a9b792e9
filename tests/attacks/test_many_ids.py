"""A party that enters the ids of a whole register, to learn whom the others have (second attack, B).

The policy of each other party bounds the ids that it may enter. A larger set ends the run before a tag, a transfer or
a point is sent, and counts as an alignment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from anonymize.tds import Observer
from coordinator.run import conduct
from coordinator.simulate import COORDINATOR
from crypto.errors import RemoteProtocolError
from crypto.local import Message, run_local
from crypto.rounds import Inbox, Round, Rounds
from jobs.data.sources import Csv
from jobs.errors import PartyError, PolicyError
from jobs.loading import open_task
from jobs.modes import protocol_of
from jobs.owner.answers import Answering, Answers
from jobs.owner.ledger import PrivacyLedger
from jobs.owner.objections import allowance
from jobs.owner.policy import Policy
from jobs.task import Result, Task
from party import computation
from tests.support import jobs
from tests.support.dp_jobs import TWO, dp_joint
from tests.support.duplex import run
from tests.support.intersections import AGREE, SIZE
from tests.support.joint import sample_rows
from tests.support.network import network, serving
from tests.support.rng import SeededRng
from tests.support.samples import COLUMNS, vertical_job
from tests.support.synthetic_jobs import synthetic_joint

OPENING = "lkc/opening"
SAYS = "a party enters more ids than our policy allows (`policy.max_peer_ids`)"
PEOPLE, BOUND = 12, 20
PAIR = ("loan", "bank")
THREE = {"loan": ["job"], "bank": ["age"], "clinic": ["surgery"]}


def of_three() -> dict[str, Any]:
    parties = {
        name: {"address": f"127.0.0.1:740{i}", "columns": held}
        for i, (name, held) in enumerate(THREE.items())
    }
    return vertical_job(parties=parties)


class Aligned(Exception):
    """The run went on to the end of the alignment."""


class Stopping(Observer):
    """Ends a run that comes so far."""

    def aligned(self, n_common: int) -> None:
        raise Aligned


class Run:
    """The parties of a vertical job in this process, each with its ledger on disk and a policy of its own."""

    def __init__(
        self, folder: Path, fields: dict[str, Any], sizes: Mapping[str, int], bounds: Mapping[str, int | None]
    ) -> None:
        """``sizes``: how many ids each party enters. ``bounds``: of those whose policy has one; None: unset."""
        self.task, self.sent = jobs.task_of(fields), defaultdict[str, list[str]](list)
        self.parties: dict[str, Rounds[Result]] = {}
        self.answers: dict[str, Answers] = {}
        folder.mkdir(exist_ok=True)
        for me in self.task.job.roster:
            given = allowance(self.task, me, COORDINATOR)
            policy = Policy.model_validate(given | ({"max_peer_ids": bounds[me]} if me in bounds else {}))
            ledger = PrivacyLedger(folder / me, me, COORDINATOR)
            self.answers[me] = Answers(ledger, policy)
            self.parties[me] = self._party(folder / f"{me}.csv", me, ledger, policy, sizes[me])

    def _party(self, path: Path, me: str, ledger: PrivacyLedger, policy: Policy, size: int) -> Rounds[Result]:
        task = self.task
        account = Answering(task.model.charges.account(ledger, policy, task, bytes(16)), ledger, policy, task)
        table = task.load(Csv(jobs.write_csv(path, sample_rows(size), COLUMNS)), me)
        return protocol_of(task, me, table, SeededRng(me), Stopping(), account)

    def conduct(self) -> None:
        """Run until the ids are aligned, which raises, or the run ends before."""
        run_local(self.parties, tamper=self._noted)

    def _noted(self, message: Message) -> bytes:
        self.sent[message.sender].append(message.step)
        return message.payload

    def refused(self) -> PolicyError:
        with pytest.raises(PolicyError) as caught:
            self.conduct()
        return caught.value

    def admitted(self) -> bool:
        with pytest.raises(Aligned):
            self.conduct()
        return True

    def alignments(self, party: str) -> int:
        return sum(answer.kind == "alignment" for answer in self.answers[party].all())


def sizes_of(fields: dict[str, Any], asker: str, size: int) -> dict[str, int]:
    return dict.fromkeys(fields["parties"], PEOPLE) | {asker: size}


CASES = [
    *((vertical_job(), *pair) for pair in (PAIR, PAIR[::-1])),
    *((of_three(), asker, other) for asker in THREE for other in THREE if asker != other),
    (vertical_job(disclosure="leader"), *PAIR),
    *(
        (job, *TWO)
        for job in (dp_joint("vertical"), dp_joint("vertical", {"engine": "thesis", "max_rows": "30"}))
    ),
    (synthetic_joint("vertical"), *TWO),
]
"""A job, who enters many ids, and whose policy bounds them."""


@pytest.mark.parametrize(("fields", "asker", "other"), CASES)
def test_one_id_above_the_bound_is_refused(
    tmp_path: Path, fields: dict[str, Any], asker: str, other: str
) -> None:
    """The other party sends its size and nothing after it, and counts the alignment, as the asker does."""
    ran = Run(tmp_path, fields, sizes_of(fields, asker, BOUND + 1), {other: BOUND})
    problem = ran.refused().problem
    assert (problem.error_id, problem.message) == ("policy-refused", SAYS)
    assert f"{asker}: {BOUND + 1} ids" in problem.private
    assert not any(character.isdigit() for character in str(problem.shared()))
    assert ran.sent[other][-1] == SIZE
    assert {step for sent in ran.sent.values() for step in sent if step.startswith("intersection/")} <= {
        SIZE,
        AGREE,
    }
    assert all(sent[-1] in (SIZE, AGREE, OPENING) for sent in ran.sent.values())
    assert {party: ran.alignments(party) for party in ran.parties} == dict.fromkeys(ran.parties, 1)


@pytest.mark.some(4)
@pytest.mark.parametrize(("fields", "asker", "other"), CASES)
def test_as_many_ids_as_the_bound_are_admitted(
    tmp_path: Path, fields: dict[str, Any], asker: str, other: str
) -> None:
    assert Run(tmp_path, fields, sizes_of(fields, asker, BOUND), {other: BOUND}).admitted()


@pytest.mark.some(2)
@pytest.mark.parametrize(("people", "most"), [(PEOPLE, 1000), (101, 1010)])
@pytest.mark.parametrize(("asker", "other"), [PAIR, PAIR[::-1]])
def test_unset_the_bound_is_ten_times_ones_own_and_at_least_a_thousand(
    tmp_path: Path, people: int, most: int, asker: str, other: str
) -> None:
    for size in (most, most + 1):
        sizes = {asker: size, other: people}
        ran = Run(tmp_path / str(size), vertical_job(), sizes, {other: None})
        if size == most:
            assert ran.admitted()
        else:
            assert ran.refused().problem.message == SAYS


def announcing(size: int, honest: Rounds[Result]) -> Generator[Round, Inbox, Result]:
    """Let a party say that it enters so many ids, and agree with what the others heard."""
    inbox: Inbox | None = None
    with closing(honest):
        while True:
            try:
                turn = next(honest) if inbox is None else honest.send(inbox)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            if turn.step == SIZE:
                said = dict.fromkeys(turn.outgoing, size.to_bytes(8, "little"))
                inbox = yield Round(SIZE, said, turn.wait_for)
            elif turn.step == AGREE:
                heard = yield Round(AGREE, {}, turn.wait_for)
                yield Round(AGREE, heard, frozenset())
                inbox = turn.outgoing
            else:
                inbox = yield turn


@pytest.mark.parametrize(("fields", "asker"), [(job, asker) for job, asker, _ in CASES[:8:2]])
def test_who_announces_fewer_ids_than_it_enters_is_found_out(
    tmp_path: Path, fields: dict[str, Any], asker: str
) -> None:
    others = {party: BOUND for party in fields["parties"] if party != asker}
    ran = Run(tmp_path, fields, sizes_of(fields, asker, 10 * BOUND), others)
    ran.parties[asker] = announcing(BOUND, ran.parties[asker])
    with pytest.raises(RemoteProtocolError) as caught:
        ran.conduct()
    assert caught.value.culprit == asker


@pytest.mark.some(1)
@pytest.mark.parametrize(("asker", "other"), [PAIR, PAIR[::-1]])
def test_a_register_finds_nobody(
    tmp_path: Path, asker: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A party of 300 people allows one alignment and leaves the bound unset; all parties have daemons."""
    fields = vertical_job(model={"lkc": {"L": "2", "K": "20", "C": "0.5"}})
    bundle = jobs.bundle_of(fields)
    tables = {
        party: jobs.write_csv(tmp_path / f"{party}.csv", sample_rows(size), COLUMNS)
        for party, size in ((asker, 20_000), (other, 300))
    }
    net, sent = network(tmp_path / "net", bundle, tables), defaultdict[tuple[str, str], list[str]](list)
    net.change(other, lambda config: config["policy"].pop("max_peer_ids"))
    net.change(other, lambda config: config["policy"].update(max_alignments=1))
    honest = computation.protocol_of

    def noted(task: Task, me: str, *rest: Any) -> Rounds[Result]:
        inbox = None
        with closing(honest(task, me, *rest)) as generator:
            while True:
                try:
                    turn = next(generator) if inbox is None else generator.send(inbox)
                except StopIteration as stop:
                    return stop.value  # type: ignore[no-any-return]
                sent[task.job.name, me] += [turn.step] if turn.outgoing else []
                inbox = yield turn

    monkeypatch.setattr(computation, "protocol_of", noted)

    async def said(number: int) -> tuple[str, str | None, str]:
        task = open_task(jobs.bundle_of(fields | {"name": f"ask-{number}"}))
        with pytest.raises(PartyError) as caught:
            await conduct(task, net.coordinator, tmp_path / f"out-{number}")
        problem = caught.value.problem
        return problem.error_id, problem.party, problem.message

    async def scenario() -> list[tuple[str, str | None, str]]:
        async with serving(net):
            return [await said(number) for number in range(2)]

    limit = "no further alignment of this data set is answered (`policy.max_alignments`)"
    assert run(scenario()) == [("policy-refused", other, SAYS), ("policy-refused", other, limit)]
    assert sent["ask-0", other][-1] == SIZE
    assert not sent["ask-1", other]
    assert set(sent["ask-1", asker]) <= {OPENING}  # none, if the refusal was there first
    for party in (asker, other):
        config = net.config(party)
        kinds = [answer.kind for answer in Answers(config.ledger, config.policy).all()]
        assert kinds.count("alignment") == 1
        assert {entry.state for entry in config.ledger.entries()} == {"returned"}  # no release is used up
