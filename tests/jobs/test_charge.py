"""LKC runs and the ledger: charged before the first message, and a repetition on the same tables counts once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from anonymize.tds import Observer
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, run_local
from jobs.bundle import Bundle
from jobs.charge import LkcAccount, table_digest
from jobs.data.sources import Csv
from jobs.errors import PolicyError
from jobs.ledger import PrivacyLedger
from jobs.loading import open_task
from jobs.modes import protocol_of
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.rng import SeededRng
from tests.support.samples import COLUMNS, columns, joint_job, vertical_job

KEY = bytes(32)


@dataclass
class Site:
    """The parties of a job in this process, each with its ledger on disk."""

    folder: Path
    bundle: Bundle
    limit: int | None = 1
    own_k: int = 1
    runs: int = 0
    accounts: dict[str, LkcAccount] = field(default_factory=dict)

    def write(self, rows: list[dict[str, str]], order: int = 1) -> None:
        roster = self.bundle.job.roster
        for i, name in enumerate(roster):
            mine = rows if self.bundle.job.partition == "vertical" else rows[i :: len(roster)]
            jobs.write_csv(self.folder / f"{name}.csv", mine[::order], COLUMNS)

    def ledger(self, party: str) -> PrivacyLedger:
        return PrivacyLedger(self.folder / party / "privacy.sqlite", party)

    def run(self, **how: Any) -> Any:
        self.runs += 1
        task = open_task(self.bundle)
        generators = {}
        for me in self.bundle.job.roster:
            loaded = open_task(self.bundle).load(Csv(self.folder / f"{me}.csv"), me)
            coins = SeededRng((self.runs, me))
            run = bytes([self.runs] * 16)
            account = LkcAccount(self.ledger(me), task, run, self.limit, self.own_k)
            account.check()
            account.read(task, me, loaded, coins)
            self.accounts[me] = account
            generators[me] = protocol_of(task, me, loaded, coins, Observer(), account)
        return run_local(generators, **how)

    def states(self) -> list[list[str]]:
        return [[e.state for e in self.ledger(party).entries()] for party in self.bundle.job.roster]


@pytest.fixture(params=["horizontal", "vertical"])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    fields = joint_job() if request.param == "horizontal" else vertical_job()
    made = Site(tmp_path, jobs.bundle_of(fields))
    made.write(sample_rows(60))
    return made


def test_what_parties_tell_of_earlier_runs_is_the_first_of_all_reveals(site: Site) -> None:
    """In the ledger that goes into the report as in a party's own, and the shape tells nothing."""
    results, transcript = site.run()
    assert transcript.steps[0] == "lkc/earlier"
    for result in results.values():
        for reveals in (result.reveals, result.own_reveals):
            assert reveals[0] == {
                "name": "earlier_run",
                "shape": [len(results), 16],
                "to": "all",
                "iteration": 0,
            }
            assert [reveal["name"] for reveal in reveals].count("earlier_run") == 1
    again, _ = site.run()
    assert all(again[party].reveals == results[party].reveals for party in results)


def test_a_run_is_charged_before_its_first_message(site: Site) -> None:
    seen: list[tuple[str, list[str]]] = []

    def watch(message: Message) -> bytes:
        seen.append((message.step, [e.state for e in site.ledger(message.sender).entries()]))
        return message.payload

    site.run(tamper=watch)
    assert {tuple(states) for step, states in seen if step == "lkc/earlier"} == {()}
    assert {tuple(states) for step, states in seen if step != "lkc/earlier"} == {("opened",)}
    assert len({step for step, _ in seen}) > 2


def test_the_same_job_on_the_same_tables_counts_once(site: Site) -> None:
    site.run()
    site.write(sample_rows(60), order=-1)  # the order of rows carries no meaning
    site.run()
    n = len(site.bundle.job.roster)
    assert site.states() == [["opened"]] * n
    assert all(account.again for account in site.accounts.values())
    for account in site.accounts.values():
        account.deliver(bytes(32), agreed=True)
    assert site.states() == [["released"]] * n
    site.run()
    assert site.states() == [["released"]] * n


def test_a_changed_table_is_another_release(site: Site) -> None:
    """Also at the parties whose own tables have not changed: they would see two tables that differ by a row."""
    site.limit = 2
    site.run()
    rows = sample_rows(60)
    changed = site.bundle.job.roster[1]
    other = [{**row, "age": "5" if i == 1 else row["age"]} for i, row in enumerate(rows)]
    assert other != rows
    unchanged = {p: (site.folder / f"{p}.csv").read_bytes() for p in site.bundle.job.roster if p != changed}
    site.write(other)
    for party, content in unchanged.items():
        (site.folder / f"{party}.csv").write_bytes(content)
    site.run()
    assert site.states() == [["opened", "opened"]] * len(site.bundle.job.roster)
    site.write(sample_rows(61))
    with pytest.raises(PolicyError):
        site.run()


def test_a_limit_stops_a_repetition_that_one_party_does_not_know(site: Site) -> None:
    """It lost its ledger: nobody can vouch that its table is the same."""
    site.run()
    (site.folder / site.bundle.job.roster[1] / "privacy.sqlite").unlink()
    with pytest.raises(PolicyError, match="no further LKC release"):
        site.run()


def test_another_job_needs_another_permit(site: Site) -> None:
    site.run()
    other = jobs.bundle_of({**_fields(site), "name": "another"})
    site.bundle = other
    with pytest.raises(PolicyError):
        site.run()


def _fields(site: Site) -> dict[str, Any]:
    return joint_job() if site.bundle.job.partition == "horizontal" else vertical_job()


def test_a_run_that_fails_after_its_beginning_stays_charged_and_may_be_repeated(site: Site) -> None:
    def harm(message: Message) -> bytes:
        return message.payload if message.step == "lkc/earlier" else b"?"

    with pytest.raises((RemoteProtocolError, LocalProtocolError)):
        site.run(tamper=harm)
    assert [states for states in site.states() if states] == [["opened"]] * len(site.bundle.job.roster)
    site.run()
    assert site.states() == [["opened"]] * len(site.bundle.job.roster)


def test_groups_with_too_few_of_our_records_end_a_charged_run(site: Site) -> None:
    """Vertical parties have the same records, so there is nothing to ask."""
    site.own_k = 21  # of 60 records in three hands
    if site.bundle.job.partition == "vertical":
        site.run()
    else:
        with pytest.raises(PolicyError, match="fewer of our records"):
            site.run()
    assert site.states() == [["opened"]] * len(site.bundle.job.roster)
    site.own_k = 1
    site.run()


def test_a_malformed_word_about_earlier_runs_is_the_senders(site: Site) -> None:
    sender = site.bundle.job.roster[1]
    with pytest.raises(RemoteProtocolError) as caught:
        site.run(tamper=lambda m: m.payload[:-1] if m.sender == sender else m.payload)
    assert (caught.value.culprit, caught.value.step) == (sender, "lkc/earlier")
    assert "opened" not in site.states()[0]


def test_nothing_is_delivered_without_a_charge(tmp_path: Path) -> None:
    task = jobs.task_of(joint_job())
    account = LkcAccount(PrivacyLedger(tmp_path / "ledger", "d"), task, bytes(16), None)
    account.recognize(bytes(32))
    with pytest.raises(LocalProtocolError, match="without a charge"):
        account.deliver(bytes(32), agreed=True)


@pytest.mark.parametrize("fields", [joint_job(), vertical_job()], ids=["horizontal", "vertical"])
def test_a_table_is_known_again_by_its_rows(tmp_path: Path, fields: dict[str, Any]) -> None:
    bundle = jobs.bundle_of(fields)
    me = bundle.job.roster[0]

    def digest(rows: list[dict[str, str]], key: bytes = KEY) -> bytes:
        loaded = open_task(bundle).load(Csv(jobs.write_csv(tmp_path / "t.csv", rows, COLUMNS)), me)
        return table_digest(key, loaded, open_task(bundle), me, SeededRng(0))

    rows = sample_rows(20)
    one = digest(rows)
    assert digest(rows[::-1]) == one
    assert digest(rows, bytes([1] * 32)) != one
    other = "Lawyer" if rows[0]["job"] != "Lawyer" else "Mover"
    assert digest([{**rows[0], "job": other}, *rows[1:]]) != one
    assert digest(rows[1:]) != one
    assert digest([*rows, {**rows[0], "patient": "new"}]) != one


def test_with_plain_columns_no_table_is_known_again(tmp_path: Path) -> None:
    """They are read later and published raw: a repetition may say something new."""
    bundle = jobs.bundle_of(joint_job(columns=columns(patient={"role": "plain"})))
    path = jobs.write_csv(tmp_path / "t.csv", sample_rows(20), COLUMNS)
    me, coins = bundle.job.roster[0], SeededRng(0)
    task = open_task(bundle)
    loaded = task.load(Csv(path), me)
    assert table_digest(KEY, loaded, task, me, coins) != table_digest(KEY, loaded, task, me, coins)
