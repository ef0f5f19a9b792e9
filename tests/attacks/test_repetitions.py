"""A repetition opens nothing: no word of one party makes the others run a protocol that nobody counts.

One party has another table in each run and says each time what makes the others take the run for a repetition, as it
did in the second attack (A1): 49 runs of one job came to 38 tables for one counted release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import AnonymizeError
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message
from jobs.errors import PolicyError
from tests.support import jobs
from tests.support.charged import Site
from tests.support.joint import sample_rows
from tests.support.samples import joint_job
from tests.support.wards import dealt_records, joint_wards_job, movements

EARLIER = "lkc/earlier"
KD = {"method": "kd", "goal": "general", "model": {"lkc": {"L": "all", "K": "3", "C": "1/2"}}}
LKC: Mapping[str, Mapping[str, Any]] = {
    "sealed": {"disclosure": "sealed"},
    "strict": {"disclosure": "strict", "score": "infogain"},
    "leader": {"disclosure": "leader"},
    "kd": {"disclosure": "sealed", **KD},
}
Write = Callable[[Site, int], None]


def write_rows(site: Site, number: int) -> None:
    site.write(sample_rows(60 + 3 * number))


def write_records(site: Site, number: int) -> None:
    dealt_records(site.folder, site.bundle.job.roster, movements(60, seed=number))


@pytest.fixture(params=[*LKC, "sequences"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Site, Write]:
    """Parties that have run the job once, and what gives them the tables of another run."""
    lkc = request.param in LKC
    fields = joint_job(**LKC[request.param]) if lkc else joint_wards_job()
    write = write_rows if lkc else write_records
    made = Site(tmp_path, jobs.bundle_of(fields))
    write(made, 1)
    return made, write


def change_the_table_of(liar: str, site: Site, write: Write, number: int) -> None:
    kept = {party: site.table(party).read_bytes() for party in site.bundle.job.roster}
    write(site, number)
    other = site.table(liar).read_bytes()
    assert other != kept[liar]
    for party, content in kept.items():
        site.table(party).write_bytes(other if party == liar else content)


def sent_by(site: Site, said: bytes, liar: str) -> set[tuple[str, str]]:
    """Run the job while the liar says something; return who sent which steps."""
    seen: set[tuple[str, str]] = set()

    def lies(message: Message) -> bytes:
        seen.add((message.sender, message.step))
        return said if message.sender == liar and message.step == EARLIER else message.payload

    with pytest.raises((PolicyError, RemoteProtocolError, LocalProtocolError, AnonymizeError)):
        site.run(tamper=lies)
    return seen


@pytest.mark.some(1)
def test_who_lies_that_it_keeps_the_result_gets_nothing(site: tuple[Site, Write]) -> None:
    parties, write = site
    results, _ = parties.run()
    liar, *honest = parties.bundle.job.roster
    parties.limits[liar] = None  # its own ledger does not stop it
    said = hashlib.sha256(results[liar].encoded).digest()
    for number in (2, 3):
        change_the_table_of(liar, parties, write, number)
        seen = sent_by(parties, said, liar)
        assert {step for sender, step in seen if sender in honest} == {EARLIER}
        assert [party for party in honest if parties.accounts[party].again] == honest
    states = [[entry.state for entry in parties.ledger(party).entries()] for party in honest]
    assert states == [["finished"]] * len(honest)


@pytest.mark.some(1)
def test_who_says_anything_else_makes_a_new_run_which_is_counted(site: tuple[Site, Write]) -> None:
    parties, _ = site
    parties.run()
    liar, *honest = parties.bundle.job.roster
    seen = sent_by(parties, bytes(range(32)), liar)
    assert {step for sender, step in seen if sender in honest} == {EARLIER}
    for party in honest:
        assert [entry.state for entry in parties.ledger(party).entries()] == ["finished"]
    for party in parties.bundle.job.roster:
        parties.limits[party] = 2
    sent_by(parties, bytes(range(32)), liar)
    for party in honest:
        assert len(parties.ledger(party).entries()) == 2


def test_a_run_that_own_k_stops_is_counted(tmp_path: Path) -> None:
    parties = Site(tmp_path, jobs.bundle_of(joint_job(disclosure="sealed")), own_k=21)
    write_rows(parties, 0)
    for _ in range(2):
        with pytest.raises(PolicyError):
            parties.run()
    # One party's policy stops the first run, and this party refuses the second. To the others nothing was opened.
    assert sorted(parties.states()) == [["opened"], ["returned"], ["returned"]]


@pytest.mark.some(2)
def test_an_honest_repetition_takes_no_circuit(site: tuple[Site, Write]) -> None:
    parties, _ = site
    results, _ = parties.run()
    again, transcript = parties.run()
    assert set(transcript.steps) == {EARLIER}
    for party, result in again.items():
        assert result.encoded == results[party].encoded
