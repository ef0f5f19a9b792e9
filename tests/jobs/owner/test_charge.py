"""LKC runs and the ledger: charged before the first message; a kept result is given again and opens nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message
from jobs.data.sources import Csv
from jobs.errors import BudgetError, PolicyError
from jobs.loading import open_task
from jobs.owner.account import LedgerAccount
from jobs.owner.charge import Limits, Release, table_digest
from jobs.owner.kept import keeps
from jobs.owner.ledger import PrivacyLedger
from tests.support import jobs
from tests.support.charged import Site
from tests.support.joint import sample_rows
from tests.support.rng import SeededRng
from tests.support.samples import AS_IT_IS, COLUMNS, columns, joint_job, vertical_job

KEY = bytes(32)


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
                "shape": [len(results), 32],
                "to": "all",
                "iteration": 0,
            }
            assert [reveal["name"] for reveal in reveals].count("earlier_run") == 1
    site.limit = 2
    again, _ = site.run()
    assert all(again[party].reveals == results[party].reveals for party in results)


def test_a_run_is_charged_before_its_first_message(site: Site) -> None:
    seen: list[tuple[str, list[str]]] = []

    def watch(message: Message) -> bytes:
        seen.append((message.step, [e.state for e in site.ledger(message.sender).entries()]))
        return message.payload

    site.run(tamper=watch)
    assert {tuple(states) for step, states in seen if step == "lkc/earlier"} == {()}
    last = max(place for place, (step, _) in enumerate(seen) if step == "lkc/opening")
    before = [(step, states) for step, states in seen[: last + 1] if step != "lkc/earlier"]
    assert {tuple(states) for _, states in before} == {("reserved",)}
    assert {tuple(states) for _, states in seen[last + 1 :]} == {("opened",)}
    assert len({step for step, _ in seen}) > 2


BEFORE = (
    "lkc/earlier",
    "lkc/opening",
    "ot/base/",
    "run/",
    "secure_sum/key",
    "shares/seed",
    "shares/key",
    "intersection/size",
)
"""Steps that tell nothing of a table, but how many ids a vertical one has."""


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "fields",
    [*(joint_job(disclosure=level) for level in ("sealed", "strict", "leader")), vertical_job()],
    ids=["sealed", "strict", "leader", "vertical"],
)
def test_a_run_that_ends_before_all_agree_to_open_gives_its_charge_back(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    """One party does not agree. Nobody has sent anything that depends on a table, so nobody needs its word."""
    site = Site(tmp_path, jobs.bundle_of(fields))
    site.write(sample_rows(60))
    silent = site.bundle.job.roster[1]
    steps: list[str] = []

    def fail(message: Message) -> bytes:
        steps.append(message.step)
        if message.sender == silent and message.step == "lkc/opening":
            raise RemoteProtocolError(silent, message.step, "is gone")
        return message.payload

    for _ in range(2):
        with pytest.raises(RemoteProtocolError, match="is gone"):
            site.run(tamper=fail)
    states_of(site, "returned", "returned")
    assert all(step.startswith(BEFORE) for step in steps), set(steps)
    site.run()
    states_of(site, "returned", "returned", charged_state(site))


def test_what_is_no_agreement_is_refused(site: Site) -> None:
    sender = site.bundle.job.roster[1]

    def bend(message: Message) -> bytes:
        return b"\0" if message.sender == sender and message.step == "lkc/opening" else message.payload

    with pytest.raises(RemoteProtocolError) as caught:
        site.run(tamper=bend)
    assert (caught.value.culprit, caught.value.step) == (sender, "lkc/opening")
    assert site.states()[0] == ["returned"]


def states_of(site: Site, *states: str) -> None:
    """Expect these states of the entries of every party."""
    assert site.states() == [list(states)] * len(site.bundle.job.roster)


@pytest.mark.parametrize("disclosure", ["sealed", "leader"])
def test_the_kept_result_of_the_same_tables_is_given_again(tmp_path: Path, disclosure: str) -> None:
    site = Site(tmp_path, jobs.bundle_of(joint_job(disclosure=disclosure)))
    site.write(sample_rows(60))
    results, transcript = site.run()
    states_of(site, "finished")
    site.write(sample_rows(60), order=-1)  # the order of rows carries no meaning
    again, repeated = site.run()
    assert len(transcript.steps) > 2
    assert set(repeated.steps) == {"lkc/earlier"}
    for party, result in again.items():
        assert (result.encoded, result.reveals, result.own_reveals) == (
            results[party].encoded,
            results[party].reveals,
            results[party].own_reveals,
        )
        assert (result.repeated, results[party].repeated) == (True, False)
    states_of(site, "finished")
    assert all(account.again for account in site.accounts.values())
    for account in site.accounts.values():
        account.deliver(bytes(32), agreed=True)
    states_of(site, "released")
    site.run()
    states_of(site, "released")


def test_where_people_are_matched_each_run_is_charged(tmp_path: Path) -> None:
    site = Site(tmp_path, jobs.bundle_of(vertical_job()))
    site.write(sample_rows(60))
    site.run()
    states_of(site, "opened")
    with pytest.raises(PolicyError, match="no further LKC release"):
        site.run()


def test_no_raw_values_are_kept() -> None:
    assert keeps(jobs.task_of(joint_job()))
    assert not keeps(jobs.task_of(joint_job(columns=columns(patient=AS_IT_IS))))
    assert not keeps(jobs.task_of(vertical_job()))


def test_a_party_that_says_it_keeps_what_others_keep_opens_nothing_new(tmp_path: Path) -> None:
    """The liar has another table in each run. The others give the kept result again, and run no protocol."""
    site = Site(tmp_path, jobs.bundle_of(joint_job()))
    site.write(sample_rows(60))
    results, _ = site.run()
    liar, *honest = site.bundle.job.roster
    kept = hashlib.sha256(results[liar].encoded).digest()
    jobs.write_csv(site.folder / f"{liar}.csv", sample_rows(30), COLUMNS)
    site.limits[liar] = None
    seen: list[tuple[str, str]] = []

    def lies(message: Message) -> bytes:
        seen.append((message.sender, message.step))
        return kept if message.sender == liar and message.step == "lkc/earlier" else message.payload

    with pytest.raises((RemoteProtocolError, LocalProtocolError)):
        site.run(tamper=lies)  # the liar itself starts the protocol, alone
    assert {step for sender, step in seen if sender in honest} == {"lkc/earlier"}
    assert [[e.state for e in site.ledger(party).entries()] for party in honest] == [["finished"]] * len(
        honest
    )


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
    states_of(site, *2 * [charged_state(site)])
    site.write(sample_rows(61))
    with pytest.raises(PolicyError):
        site.run()


def test_a_limit_stops_a_repetition_that_one_party_does_not_know(site: Site) -> None:
    """It lost its ledger, and says so: nobody can vouch that its table is the same."""
    site.run()
    loser = site.bundle.job.roster[1]
    (site.folder / loser / "privacy.sqlite").unlink()
    with pytest.raises(BudgetError, match="lacks runs that were charged"):
        site.ledger(loser).entries()
    site.ledger(loser).accept()
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


def charged_state(site: Site) -> str:
    """Return the state of an entry whose run came to a result."""
    return "opened" if site.bundle.job.partition == "vertical" else "finished"


def test_a_run_that_fails_after_its_beginning_stays_charged_and_is_no_free_repetition(site: Site) -> None:
    agreed: list[str] = []

    def harm(message: Message) -> bytes:
        agreed.extend([message.sender] * (message.step == "lkc/opening"))
        n_parties = len(site.bundle.job.roster)
        all_agreed = len(agreed) == n_parties * (n_parties - 1) and message.step != "lkc/opening"
        return b"?" if all_agreed else message.payload

    with pytest.raises((RemoteProtocolError, LocalProtocolError)):
        site.run(tamper=harm)
    states_of(site, "opened")
    with pytest.raises(PolicyError, match="no further LKC release"):
        site.run()
    states_of(site, "opened")


def test_groups_with_too_few_of_our_records_end_a_charged_run(site: Site) -> None:
    """Vertical parties have the same records, so there is nothing to ask."""
    site.own_k = 21  # of 60 records in three hands
    if site.bundle.job.partition == "vertical":
        site.run()
    else:
        with pytest.raises(PolicyError, match="fewer of our records"):
            site.run()
        # The first party stops the run; the others are stopped before all agree to open anything.
        assert site.states() == [["opened"], ["returned"], ["returned"]]
        return
    states_of(site, "opened")
    site.own_k = 1
    with pytest.raises(PolicyError, match="no further LKC release"):
        site.run()


def test_a_malformed_word_about_earlier_runs_is_the_senders(site: Site) -> None:
    sender = site.bundle.job.roster[1]
    with pytest.raises(RemoteProtocolError) as caught:
        site.run(tamper=lambda m: m.payload[:-1] if m.sender == sender else m.payload)
    assert (caught.value.culprit, caught.value.step) == (sender, "lkc/earlier")
    assert "opened" not in site.states()[0]


def test_nothing_is_delivered_without_a_charge(tmp_path: Path) -> None:
    task = jobs.task_of(joint_job())
    account = LedgerAccount(Release(PrivacyLedger(tmp_path / "ledger", "d"), task, bytes(16), Limits()))
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
    bundle = jobs.bundle_of(joint_job(columns=columns(patient=AS_IT_IS)))
    path = jobs.write_csv(tmp_path / "t.csv", sample_rows(20), COLUMNS)
    me, coins = bundle.job.roster[0], SeededRng(0)
    task = open_task(bundle)
    loaded = task.load(Csv(path), me)
    assert table_digest(KEY, loaded, task, me, coins) != table_digest(KEY, loaded, task, me, coins)
