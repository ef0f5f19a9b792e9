"""A DP run and its ledgers: charged before anything is opened, kept before anybody sees it, given again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from anonymize.errors import DataError, PrivacyError
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message
from jobs.dp.charge import Epsilon
from jobs.errors import BudgetError
from jobs.owner.account import LedgerAccount
from tests.support.dp_jobs import PARTITIONS, TWO, dp_site
from tests.support.samples import PARTIES

ONE = Fraction(1)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_run_is_charged_once_and_kept(tmp_path: Path, partition: str) -> None:
    site = dp_site(tmp_path, partition)
    results, transcript = site.run()
    assert {result.encoded for result in results.values()} == {results[PARTIES[0]].encoded}
    assert site.spent() == {ONE}
    for party in site.tables:
        assert site.states(party) == ["finished"]
        assert site.ledger(party).stored(site.bundle.digest) == results[party].encoded
    assert transcript.messages[0].step == "dp/stored"


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_retry_gives_the_same_bytes_and_costs_nothing(tmp_path: Path, partition: str) -> None:
    site = dp_site(tmp_path, partition)
    first, _ = site.run(seed="first")
    again, transcript = site.run(seed="again", limits=dict.fromkeys(site.tables, ONE))
    assert {result.repeated for result in first.values()} == {False}
    assert {result.repeated for result in again.values()} == {True}
    assert {r.encoded for r in again.values()} == {r.encoded for r in first.values()}
    assert transcript.steps == ("dp/stored",)
    assert site.spent() == {ONE}
    for party, result in again.items():
        assert result.table.counts.tolist() == first[party].table.counts.tolist()
        assert result.outcome == first[party].outcome
        assert result.spent.charges == first[party].spent.charges


def test_nothing_is_opened_or_kept_without_a_charge(tmp_path: Path) -> None:
    """It is no assert: those can be off."""
    site = dp_site(tmp_path)
    account = LedgerAccount(Epsilon(site.ledger(PARTIES[0]), site.task, ONE))
    for unpaid in (account.open, lambda: account.finish(b"")):
        with pytest.raises(LocalProtocolError, match="without a charge"):
            unpaid()


def test_a_retry_is_of_the_same_job_only(tmp_path: Path) -> None:
    one, other = dp_site(tmp_path, epsilon="1"), dp_site(tmp_path, epsilon="0.5")
    one.run()
    other.run()
    assert other.spent() == {Fraction(3, 2)}


def test_a_repetition_is_charged_if_one_party_lost_the_result(tmp_path: Path) -> None:
    site = dp_site(tmp_path)
    first, _ = site.run(seed="first")
    (tmp_path / "site" / PARTIES[2] / "privacy.sqlite").unlink()
    site.ledger(PARTIES[2]).accept()
    again, transcript = site.run(seed="again")
    assert len(transcript.steps) > 1
    assert again[PARTIES[0]].encoded != first[PARTIES[0]].encoded
    assert [site.ledger(p).spent() for p in PARTIES] == [2, 2, 1]
    third, transcript = site.run(seed="third")
    assert transcript.steps == ("dp/stored",)
    assert third[PARTIES[2]].encoded == again[PARTIES[0]].encoded


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_party_without_budget_stops_the_run_before_anything_is_opened(
    tmp_path: Path, partition: str
) -> None:
    site = dp_site(tmp_path, partition)
    with pytest.raises(BudgetError) as caught:
        site.run(limits={TWO[1]: Fraction(1, 2)})
    assert caught.value.problem.error_id == "budget-exceeded"
    assert site.spent() == {Fraction(0)}


BEFORE = ("dp/stored", "shares/seed", "ot/base/", "paillier/key", "intersection/")
"""Keys, and the alignment, which ε does not cover."""


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("engine", ["circuit", "thesis"])
def test_a_charge_is_final_before_the_first_message_made_of_records(
    tmp_path: Path, partition: str, engine: str
) -> None:
    """Every message finds the full ε charged on the sender's disk, for good."""
    site = dp_site(tmp_path, partition, n_rows=24, engine=engine, max_rows="30")
    sent: list[tuple[str, str]] = []

    def watch(message: Message) -> bytes:
        (state,) = site.states(message.sender) or ["none"]
        sent.append((message.step, state))
        return message.payload

    site.run(tamper=watch)
    # Vertical: whether the classes agree is part of the alignment.
    start = 1 + max((i for i, (step, _) in enumerate(sent) if step == "vertical/agree"), default=-1)
    assert (start > 0) == (partition == "vertical")
    late = [(step, state) for step, state in sent[start:] if not step.startswith(BEFORE)]
    assert {state for _, state in late} == {"opened"}
    assert len({step for step, _ in late}) >= 5
    assert {state for step, state in sent if step != "dp/stored"} == {"reserved", "opened"}


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_run_that_fails_after_the_first_opening_stays_charged(tmp_path: Path, partition: str) -> None:
    site = dp_site(tmp_path, partition)
    step = {"horizontal": "dp/counts", "vertical": "joint_histogram/corrections"}[partition]

    def cut(message: Message) -> bytes:
        return b"" if message.step == step else message.payload

    with pytest.raises(RemoteProtocolError):
        site.run(tamper=cut)
    assert site.spent() == {ONE}
    for party in site.tables:
        # Whoever sent the counts has its result already, and keeps it; it was never delivered.
        assert site.states(party)[0] in {"opened", "finished"}
    again, transcript = site.run(seed="again")
    assert len(transcript.steps) > 1
    assert site.spent() == {2 * ONE}
    assert len({result.encoded for result in again.values()}) == 1


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_run_that_fails_before_costs_nothing(tmp_path: Path, partition: str) -> None:
    """Unless a party outside the pair has already shared its counts, after which it cannot know."""
    site = dp_site(tmp_path, partition)

    def cut(message: Message) -> bytes:
        return b"" if message.step == "ot/base/offer" else message.payload

    with pytest.raises(RemoteProtocolError):
        site.run(tamper=cut)
    for party in site.tables:
        assert site.states(party) == (["returned"] if party in TWO else ["opened"])


@pytest.mark.parametrize("change", ["another class", "other people"])
def test_a_comparison_of_classes_costs_the_whole_job_and_an_empty_alignment_no_epsilon(
    tmp_path: Path, change: str
) -> None:
    """No ε covers either. The bit of classes is paid for as if it were a release; alignments are counted apart."""
    site = dp_site(tmp_path, "vertical")
    table = site.tables[TWO[1]]
    lines = table.read_text().splitlines()
    if change == "another class":
        lines[1] = lines[1].replace(",Y,", ",-,").replace(",N,", ",Y,").replace(",-,", ",N,")
    else:
        lines[1:] = [f"x{line}" for line in lines[1:]]
    table.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError) as caught:
        site.run()
    state = "opened" if change == "another class" else "returned"
    assert [site.states(party) for party in TWO] == [[state]] * 2
    if change == "another class":
        assert caught.value.error_id == "class-mismatch"
        assert (
            "in LKC jobs let a party give the class" in caught.value.remedy
        )  # `shared_by` is refused in DP jobs


def test_more_rows_than_the_public_bound_are_refused_and_cost_nothing(tmp_path: Path) -> None:
    site = dp_site(tmp_path, max_rows="20")  # 61 rows among three: one of them has 21
    with pytest.raises(PrivacyError) as caught:
        site.run()
    assert caught.value.error_id == "too-many-rows"
    assert site.spent() == {Fraction(0)}


@pytest.mark.parametrize("payload", [b"", bytes(31), bytes(33)])
def test_a_malformed_word_about_kept_results(tmp_path: Path, payload: bytes) -> None:
    site = dp_site(tmp_path)

    def change(message: Message) -> bytes:
        return payload if (message.sender, message.step) == (PARTIES[2], "dp/stored") else message.payload

    with pytest.raises(RemoteProtocolError) as caught:
        site.run(tamper=change)
    assert (caught.value.culprit, caught.value.step) == (PARTIES[2], "dp/stored")
    assert site.spent() == {Fraction(0)}


def test_a_party_that_lies_about_what_it_keeps_gains_nothing(tmp_path: Path) -> None:
    """The others compute again with it, and are charged: they never hand out what they keep."""
    site = dp_site(tmp_path)
    first, _ = site.run(seed="first")

    def change(message: Message) -> bytes:
        return bytes(32) if (message.sender, message.step) == (PARTIES[2], "dp/stored") else message.payload

    with pytest.raises(LocalProtocolError):  # it waits for a retry that the others do not make
        site.run(seed="again", tamper=change)
    assert [site.ledger(p).spent() for p in PARTIES] == [1, 1, 1]
    assert site.ledger(PARTIES[0]).stored(site.bundle.digest) == first[PARTIES[0]].encoded
