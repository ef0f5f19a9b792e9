"""Joint runs: all parties come to the same, every ledger is charged once, and nobody has to be believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonymize.synthetic import loop
from anonymize.synthetic.marginals import Axis
from crypto.local import Transcript
from jobs.dp.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.errors import BudgetError, PartyError
from jobs.release.csv import REPORT
from jobs.release.delivery import checked_release
from jobs.release.encoded import decoded_arrays, encoded_arrays
from jobs.release.sums import SUMS, file_fields, sums_of
from jobs.synthetic.files import render
from jobs.synthetic.result import SyntheticResult, decode_result
from jobs.synthetic.verify import require_verified
from tests.support import jobs
from tests.support.delivered import made_files
from tests.support.dp_jobs import PARTITIONS, Site, dp_tables
from tests.support.joint import sample_rows
from tests.support.samples import PARTIES
from tests.support.synthetic_jobs import N_ROWS, made, own_columns, synthetic_joint, synthetic_site

EPSILON = Fraction(5)
RUNS = [(partition, with_class) for partition in PARTITIONS for with_class in (True, False)]


@pytest.mark.some(2)
@pytest.mark.parametrize(("partition", "with_class"), RUNS)
def test_all_parties_have_one_result_which_follows_from_its_counts(partition: str, with_class: bool) -> None:
    site, result = made(partition, with_class=with_class)
    task = site.task
    read = decode_result(result.encoded, task, "b")
    assert (read.encoded, read.delta, read.reveals) == (result.encoded, result.delta, result.reveals)
    assert len(result.outcome.opened.pairs) == 1
    assert sum(charge.epsilon for charge in result.spent.charges) == EPSILON
    assert 0 < Fraction(result.delta) <= Fraction(1, 2**40)
    told = [reveal["name"] for reveal in result.reveals]
    n = len(task.schema.qid)
    aligned = ["set_sizes", "common_records", *["class_agreement"] * with_class]
    measured = [*["noisy_marginal"] * 2 * n, "edge", "noisy_marginal"]
    assert told == [*(aligned if partition == "vertical" else []), *measured]
    files = made_files(render(task, result))
    assert abs(json.loads(files[REPORT])["rows"] - N_ROWS) < 100


@pytest.mark.parametrize("partition", PARTITIONS)
def test_columns_that_are_never_missing(tmp_path: Path, partition: str) -> None:
    """Missing cells count as a value there, and nobody is told of them."""
    changed = {name: {**own_columns()[name], "missing": "never"} for name in ("job", "age", "surgery")}
    bundle = jobs.bundle_of(synthetic_joint(partition, columns=own_columns(**changed)))
    rows = sample_rows(N_ROWS)
    rows[3] |= {"job": "?", "age": ""}
    site = Site(tmp_path / "site", bundle, dp_tables(tmp_path / "tables", bundle, rows))
    results, _ = site.run()
    result = results[PARTIES[0]]
    assert isinstance(result, SyntheticResult)
    lines = made_files(render(site.task, result))[SYNTHETIC_TABLE].decode().splitlines()[1:]
    assert lines
    assert not {"", "?"} & {cell for line in lines for cell in line.split(",")}


@pytest.mark.parametrize("partition", PARTITIONS)
def test_every_ledger_is_charged_once_and_the_result_is_given_again(tmp_path: Path, partition: str) -> None:
    site = synthetic_site(tmp_path, partition)
    first, _ = site.run()
    assert len({result.encoded for result in first.values()}) == 1
    assert site.spent() == {EPSILON}
    again, transcript = site.run(seed="other")
    assert {result.encoded for result in again.values()} == {first[PARTIES[0]].encoded}
    assert all(result.repeated for result in again.values())
    assert {message.step for message in transcript.messages} == {"dp/stored"}
    assert site.spent() == {EPSILON}
    assert {state for party in site.tables for state in site.states(party)} == {"finished"}


def test_a_party_without_budget_stops_the_run_before_anything_is_sent(tmp_path: Path) -> None:
    site = synthetic_site(tmp_path, "horizontal")
    with pytest.raises(BudgetError):
        site.run(limits={PARTIES[1]: Fraction(4)})
    assert site.spent() == {Fraction(0)}


def harmed(result: SyntheticResult, how: Callable[[dict[str, Any], list[Any]], object]) -> bytes:
    header, arrays = decoded_arrays(result.encoded, 2)
    header.pop("shapes")
    how(header, arrays)
    return encoded_arrays(header, arrays)


HARMS: dict[str, Callable[[dict[str, Any], list[Any]], object]] = {
    "a pair less": lambda h, a: a.__setitem__(0, a[0][:0]),
    "no such pair": lambda h, a: a.__setitem__(0, a[0] + 3),
    "a count less": lambda h, a: a.__setitem__(1, a[1][:-1]),
    "a count too large": lambda h, a: a[1].__setitem__(0, 10**6),
    "a cube": lambda h, a: a.__setitem__(1, a[1].reshape(-1, 1, 1)),
    "no account": lambda h, a: h.pop("account"),
    "less charged": lambda h, a: h["account"][0].update(epsilon="1/4"),
    "a large delta": lambda h, a: h.update(delta="1E-11"),
    "a small delta": lambda h, a: h.update(delta="1E-14"),
    "a delta of nothing": lambda h, a: h.update(delta="0"),
    "an endless delta": lambda h, a: h.update(delta="1e-99999999"),
    "no delta": lambda h, a: h.pop("delta"),
    "a reveal less": lambda h, a: h["reveals"].pop(),
    "more": lambda h, a: h.update(more=1),
}


@pytest.mark.parametrize("what", list(HARMS))
def test_a_result_that_no_run_has_is_malformed(what: str) -> None:
    site, result = made("horizontal")
    with pytest.raises(PartyError) as caught:
        decode_result(harmed(result, HARMS[what]), site.task, "b")
    assert caught.value.problem.error_id == "peer-protocol"


@pytest.mark.parametrize("cut", [0, 5, 40, -1])
def test_a_result_cut_short_is_malformed(cut: int) -> None:
    site, result = made("vertical")
    with pytest.raises(PartyError):
        decode_result(result.encoded[:cut], site.task, "b")


# ---- what is delivered


def delivered(site: Site, result: SyntheticResult) -> dict[str, bytes]:
    files = made_files(render(site.task, result))
    return {**files, SUMS: sums_of(files)}


def again(
    files: dict[str, bytes], report: Callable[[dict[str, Any]], object] = lambda r: None
) -> dict[str, bytes]:
    """With the digests of what the files have become."""
    fields = json.loads(files[REPORT])
    fields["files"] = file_fields({name: files[name] for name in (SYNTHETIC_TABLE, MARGINALS)})
    report(fields)
    files = {**files, REPORT: json.dumps(fields).encode()}
    return {**files, SUMS: sums_of({name: files[name] for name in (SYNTHETIC_TABLE, MARGINALS, REPORT)})}


@pytest.mark.some(2)
@pytest.mark.parametrize(("partition", "with_class"), RUNS)
def test_what_follows_from_the_result_is_accepted(partition: str, with_class: bool) -> None:
    site, result = made(partition, with_class=with_class)
    files = delivered(site, result)
    assert site.task.delivered == (REPORT, SUMS)
    assert checked_release(site.task, result, {REPORT: files[REPORT], SUMS: files[SUMS]}, {}).files == files
    checked_release(site.task, result, again(files), {})


REPORTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "other words": lambda r: r["privacy"].update(guarantees=["Nobody learns anything."]),
    "a delta": lambda r: r["privacy"].update(delta="0"),
    "a reveal less": lambda r: r["reveals"].pop(),
    "repeated": lambda r: r.update(repeated=True),
    "a fit": lambda r: r["fit"][0].update(chi_square="1e6"),
    "no fit": lambda r: r.pop("fit"),
    "more": lambda r: r.update(exact_rows=300),
    "another job": lambda r: r.update(job_sha256="00" * 32),
    "digests": lambda r: r["files"][MARGINALS].update(bytes=1),
}


@pytest.mark.parametrize("what", list(REPORTS))
def test_a_report_that_says_otherwise_is_refused(what: str) -> None:
    site, result = made("horizontal")
    files = again(delivered(site, result), REPORTS[what])
    with pytest.raises(PartyError) as caught:
        checked_release(site.task, result, files, {})
    assert caught.value.problem.error_id == "result-mismatch"


@pytest.mark.parametrize("partition", PARTITIONS)
def test_whoever_has_the_files_follows_the_run_once_more(partition: str) -> None:
    """Reveals and δ follow, too; nothing else tells that the result was given again, and so it is named."""
    site, result = made(partition)
    files = delivered(site, result)

    def undetermined(report: Callable[[dict[str, Any]], object]) -> list[str]:
        changed = again(files, report)
        told = json.loads(changed[REPORT])
        return [*require_verified(site.task, changed[MARGINALS], changed[SYNTHETIC_TABLE], told).undetermined]

    assert undetermined(lambda r: r.update(repeated=True)) == ["repeated", "finished", "versions", "cost"]
    for harm in (
        lambda r: r["reveals"].pop(),
        lambda r: r["privacy"].update(delta="1E-9"),
        lambda r: r["privacy"].update(delta="1E-14"),  # within the bound of every run, but not this one's
        lambda r: r.update(repeated="no"),
        lambda r: r.pop("repeated"),
        lambda r: r.update(exact_rows=300),
    ):
        with pytest.raises(PartyError):
            undetermined(harm)


def test_another_table_or_other_marginals_are_refused() -> None:
    site, result = made("horizontal")
    files = delivered(site, result)
    header, *rows = files[SYNTHETIC_TABLE].splitlines(keepends=True)
    tables = [
        {**files, SYNTHETIC_TABLE: b"".join([header, *rows[:-1]])},
        {**files, SYNTHETIC_TABLE: b"".join([header, *[rows[0]] * len(rows)])},
        {**files, SYNTHETIC_TABLE: b"".join([header, *sorted(rows)])},
        {**files, SYNTHETIC_TABLE: files[SYNTHETIC_TABLE].replace(b"Knee", b"Elbow")},
        {**files, MARGINALS: files[MARGINALS].replace(b",2", b",3", 1)},
    ]
    for changed in tables:
        assert changed != files
        with pytest.raises(PartyError) as caught:
            checked_release(site.task, result, again(changed), {})
        assert caught.value.problem.error_id == "result-mismatch"
    with pytest.raises(PartyError):
        checked_release(site.task, result, {**files, SUMS: files[SUMS][:-3]}, {})


# ---- what cells hold does not show


def sizes(transcript: Transcript) -> list[tuple[str, str, str, int]]:
    return [(m.step, m.sender, m.recipient, len(m.payload)) for m in transcript.messages]


@pytest.mark.parametrize("partition", PARTITIONS)
def test_missing_cells_are_sent_as_others_are(
    tmp_path: Path, partition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With bins that do not follow from noise nothing else decides on sizes: every message is as long as any."""
    halves = lambda number, column, *_: Axis(number, tuple(leaf % 2 for leaf in range(column.n_leaves)))  # noqa: E731
    monkeypatch.setattr(loop, "bins_of", halves)
    bundle = jobs.bundle_of(synthetic_joint(partition))
    well = sample_rows(60)
    strange = [("age", ""), ("age", "old"), ("age", "1e9"), ("job", "?"), ("surgery", "Elbow")]
    odd = [{**row, strange[i % 5][0]: strange[i % 5][1]} for i, row in enumerate(well)]
    seen = []
    for name, rows in (("well", well), ("odd", odd)):
        site = Site(tmp_path / name, bundle, dp_tables(tmp_path / name / "tables", bundle, rows))
        _, transcript = site.run()
        seen.append(sizes(transcript))
    assert seen[0] == seen[1]
