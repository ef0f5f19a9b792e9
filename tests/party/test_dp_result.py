"""The result of a DP run in bytes, its files, and what is accepted as one from others."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonymize.joint.dp_noise import DELTA
from anonymize.release import LabelledColumn, Release
from coordinator.dp_run import dp_files
from party.dp_release import COUNTS, check_dp_delivery, counts_csv, delivered_files, read_counts, with_counts
from party.dp_result import DpResult, decode_dp_result, delta_text, read_amount, read_delta
from party.errors import PartyError
from party.release_file import REPORT, TABLE, csv_bytes
from tests.support import jobs
from tests.support.dp_jobs import N_ROWS, PARTITIONS, Site, dp_joint, dp_site
from tests.support.samples import PARTIES, joint_job


@functools.cache
def made(partition: str, model: tuple[tuple[str, str], ...] = ()) -> tuple[Site, DpResult]:
    with tempfile.TemporaryDirectory() as folder:
        n_rows = 24 if ("engine", "thesis") in model else N_ROWS
        site = dp_site(Path(folder), partition, n_rows, **dict(model))
        results, _ = site.run()
    return site, results[PARTIES[0]]


def parts(encoded: bytes) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(encoded[:8], "little")
    return json.loads(encoded[8 : 8 + size]), encoded[8 + size :]


def encoded(header: dict[str, Any], body: bytes) -> bytes:
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + body


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("model", [(), (("engine", "thesis"), ("max_rows", "30")), (("noise", "each"),)])
def test_what_is_encoded_is_what_is_read(partition: str, model: tuple[tuple[str, str], ...]) -> None:
    """Account and reveals are read anew from job, specializations and counts: so it was in the protocol."""
    site, result = made(partition, model)
    again = decode_dp_result(result.encoded, site.bundle, "leader")
    assert again.encoded == result.encoded
    assert again.outcome == result.outcome
    assert again.table.counts.tolist() == result.table.counts.tolist()
    assert again.account.charges == result.account.charges
    assert sum(charge.epsilon for charge in again.account.charges) == 1
    assert (0 < Fraction(again.delta) <= DELTA) == ("thesis" not in str(model))
    assert (again.delta, again.noise, again.reveals) == (result.delta, result.noise, result.reveals)
    assert encoded(*parts(result.encoded)) == result.encoded


def test_numbers_of_common_records_are_not_in_it() -> None:
    """Only the parties know them: the shape of that reveal is left out."""
    _, result = made("vertical")
    shapes = {reveal["name"]: reveal.get("shape") for reveal in result.reveals}
    assert shapes["common_records"] is None
    assert shapes["candidate"] == []
    assert "61" not in result.encoded[: -8 * len(result.table.counts)].decode()


def charges(change: Callable[[list[Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda header: change(header["charges"])


BAD: dict[str, Callable[[dict[str, Any]], object]] = {
    "no steps": lambda h: h.pop("steps"),
    "a step of no column": lambda h: h["steps"][0].__setitem__(0, 9),
    "a step of no node": lambda h: h["steps"][0].__setitem__(1, 77),
    "a step discarded": lambda h: h["steps"][0].__setitem__(3, False),
    "a step too many": lambda h: h["steps"].append(h["steps"][0]),
    "a step too few": lambda h: h["steps"].pop(),
    "delta too large": lambda h: h.update(delta="1E-9"),
    "delta below zero": lambda h: h.update(delta="-1E-30"),
    "delta is no number": lambda h: h.update(delta="small"),
    "an endless delta": lambda h: h.update(delta="1e99999999"),
    "an endless small delta": lambda h: h.update(delta="1e-99999999"),
    "an endless charge": charges(lambda c: c[0].__setitem__(1, "1e99999999")),
    "delta is a number": lambda h: h.update(delta=0),
    "a charge too few": charges(lambda c: c.pop()),
    "a charge too many": charges(lambda c: c.append(["more", "1/100", 1])),
    "a charge less": charges(lambda c: c[0].__setitem__(1, "1/1000000")),
    "a negative charge": charges(lambda c: (c[0].__setitem__(1, "-1"), c.append(["x", "2", 0]))),
    "no reveals": lambda h: h.pop("reveals"),
    "reveals are text": lambda h: h.update(reveals="all"),
    "a reveal too few": lambda h: h["reveals"].pop(),
    "a reveal too many": lambda h: h["reveals"].append(h["reveals"][-1]),
    "a reveal of another shape": lambda h: h["reveals"][-1].update(shape=[1]),
    "a reveal of something else": lambda h: h["reveals"][0].update(name="counts of hospital-b"),
    "a reveal in another turn": lambda h: h["reveals"][0].update(iteration=2),
    "a turn that is no integer": lambda h: h["reveals"][0].update(iteration=1.0),
    "a charge for something else": charges(lambda c: c[0].__setitem__(0, "7 of 61 rows")),
    "charges in another order": charges(lambda c: c.insert(0, c.pop(1))),
    "a charge moved to the counts": charges(
        lambda c: (c[-1].__setitem__(1, "9/10"), c[0].__setitem__(1, "1/100"))
    ),
    "a score": lambda h: h["steps"][0].__setitem__(4, 61),
    "the other kind of noise": lambda h: h.update(noise="each"),
    "noise of another kind": lambda h: h.update(noise="none"),
    "something more": lambda h: h.update(rows=61),
}


@pytest.mark.parametrize("what", list(BAD))
def test_what_does_not_fit_the_job_is_refused(what: str) -> None:
    site, result = made("horizontal")
    header, body = parts(result.encoded)
    BAD[what](header)
    refused(site, encoded(header, body))


def refused(site: Site, content: bytes) -> None:
    with pytest.raises(PartyError) as caught:
        decode_dp_result(content, site.bundle, "hospital-c")
    assert (caught.value.problem.error_id, caught.value.problem.party) == ("peer-protocol", "hospital-c")


def test_bytes_that_are_no_result_are_refused() -> None:
    site, result = made("horizontal")
    header, body = parts(result.encoded)
    spaced = json.dumps(header).encode()
    for content in (
        b"",
        b"\xff" * 64,
        result.encoded[:-1],
        result.encoded[:-8],
        result.encoded + bytes(8),
        len(spaced).to_bytes(8, "little") + spaced + body,
        encoded(header, body[:-8] + body[-8:] * 2),
    ):
        refused(site, content)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(content: bytes) -> None:
    refused(made("horizontal")[0], content)


@example(Fraction(1, 2**40))
@example(Fraction(1, 10))
@example(Fraction(999, 1000))
@example(Fraction(1, 10**80))
@given(st.fractions(min_value=0, max_value=1))
def test_delta_is_never_rounded_down(delta: Fraction) -> None:
    text = delta_text(delta)
    assert delta <= Fraction(text) <= delta * Fraction(12, 10)
    assert (text == "0") == (delta == 0)
    assert len(text.split("E")[0].replace(".", "").strip("0")) <= 3


@given(st.fractions(min_value=0, max_value=DELTA))
def test_delta_comes_back(delta: Fraction) -> None:
    assert read_delta(delta_text(delta)) == Fraction(delta_text(delta))


@given(st.fractions(min_value=0))
def test_amounts_come_back(amount: Fraction) -> None:
    assert read_amount(str(amount)) == amount


# ---- files


def test_delivered_files() -> None:
    assert delivered_files(jobs.bundle_of(dp_joint("horizontal"))) == (COUNTS, REPORT)
    assert delivered_files(jobs.bundle_of(joint_job())) == (TABLE, REPORT)


def test_counts_come_back(tmp_path: Path) -> None:
    """Signed, in the job's order of columns, from a file or from memory."""
    site, result = made("horizontal")
    names = site.bundle.job.published
    content = counts_csv(result.table, names)
    (tmp_path / COUNTS).write_bytes(content)
    for source in (content, tmp_path / COUNTS):
        cells, counts = read_counts(source, names)
        assert counts.tolist() == result.table.counts.tolist()
        assert list(cells.columns) == list(names)
    assert content.splitlines()[0].decode() == ",".join([*names, "count"])


COLUMN = {"a": LabelledColumn(("x", "y"), np.array([0, 1, 0]))}


@given(st.lists(st.integers(-(10**17), 10**17), min_size=3, max_size=3))
def test_any_count_comes_back(counts: list[int]) -> None:
    content = csv_bytes(with_counts(Release(COLUMN), np.array(counts)))
    assert read_counts(content, ["a"])[1].tolist() == counts


@pytest.mark.parametrize("count", ["", "1.0", "+1", "01", "-0x1", "1e3", "NaN", "9" * 30, " 1", "-"])
def test_counts_that_are_no_integers(count: str) -> None:
    with pytest.raises(PartyError) as caught:
        read_counts(f"a,count\nx,{count}\n".encode(), ["a"])
    assert caught.value.problem.error_id == "verification-failed"


def test_a_delivery_is_compared_with_what_was_computed() -> None:
    site, result = made("horizontal")
    content = counts_csv(result.table, site.bundle.job.published)
    report = dp_files(site.bundle, result, {PARTIES[1]: {"phases": {}}})[REPORT]
    check_dp_delivery(site.bundle, result, {COUNTS: content, REPORT: report})
    other = json.dumps({"job_sha256": "00" * 32}).encode()
    for files in (
        {COUNTS: content + b"\n", REPORT: report},
        {COUNTS: content.replace(b",Y,", b",N,", 1), REPORT: report},
        {COUNTS: content, REPORT: other},
        {COUNTS: content, REPORT: b"{"},
    ):
        mismatched(site, result, files)


def mismatched(site: Site, result: DpResult, files: dict[str, bytes]) -> str:
    with pytest.raises(PartyError) as caught:
        check_dp_delivery(site.bundle, result, files)
    assert caught.value.problem.error_id == "result-mismatch"
    return caught.value.problem.message


TOLD: dict[str, Callable[[dict[str, Any]], object]] = {
    "privacy": lambda r: r["privacy"].update(delta="0"),
    "privacy ": lambda r: r["privacy"].update(epsilon="1/2"),
    "privacy  ": lambda r: r["privacy"]["account"].pop(),
    "privacy   ": lambda r: r["privacy"]["guarantees"].append("Nobody learns anything."),
    "privacy    ": lambda r: r["privacy"].pop("not_covered"),
    "cut": lambda r: r["cut"].update(job=["Blue"]),
    "specializations": lambda r: r["specializations"].reverse(),
    "rows": lambda r: r.update(rows=61),
    "cells": lambda r: r.update(cells=float(r["cells"])),
    "reveals": lambda r: r["reveals"].pop(),
    "revealed_by_design": lambda r: r["revealed_by_design"].clear(),
    "repeated": lambda r: r.update(repeated=True),
    "leader": lambda r: r.pop("leader"),
    "model": lambda r: r["model"]["dp"].update(epsilon="2"),
    "more than": lambda r: r.update(n_records=61),
}


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("what", list(TOLD))
def test_a_delivered_report_says_what_follows_from_the_release(partition: str, what: str) -> None:
    site, result = made(partition)
    files = dict(dp_files(site.bundle, result, {}))
    check_dp_delivery(site.bundle, result, files)
    report = json.loads(files[REPORT])
    TOLD[what](report)
    files[REPORT] = json.dumps(report).encode()
    assert what.strip() in mismatched(site, result, files)


def test_time_versions_and_costs_are_the_coordinators() -> None:
    site, result = made("horizontal")
    files = dict(dp_files(site.bundle, result, {}))
    files[REPORT] = json.dumps(
        json.loads(files[REPORT]) | {"finished": "", "versions": {}, "cost": 1}
    ).encode()
    check_dp_delivery(site.bundle, result, files)
