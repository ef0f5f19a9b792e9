"""Differences between jobs are few lines, and the worst comes first, whatever a coordinator adds."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from party.owner.differences import MOST_FILES, MOST_KEYS, MOST_LINES, Differences, differences
from tests.support import jobs
from tests.support.samples import joint_job

_Change = Callable[[dict[str, Any]], object]


def job_of(change: _Change = lambda job: None) -> dict[str, Any]:
    """Return the job of a bundle, changed."""
    job: dict[str, Any] = json.loads(jobs.bundle_of(joint_job()).encoded)["job"]
    job["columns"]["surgery"] |= {"domain": ["Heart", "Trauma", "Transgender"], "values": ["Transgender"]}
    change(job)
    return job


def bundle(job: dict[str, Any], files: dict[str, str] | None = None) -> bytes:
    return json.dumps({"bundle": 1, "job": job, "files": files or {}}).encode()


def changed(change: _Change, before: _Change = lambda job: None) -> Differences:
    old = job_of(before)
    new = copy.deepcopy(old)
    change(new)
    return differences(bundle(old), bundle(new))


def lkc(**keys: Any) -> _Change:
    return lambda job: job["model"]["lkc"].update(keys)


def column(name: str, **keys: Any) -> _Change:
    return lambda job: job["columns"].setdefault(name, {}).update(keys)


def values(*protected: str) -> _Change:
    return column("surgery", values=list(protected))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (values("Trauma"), "surgery: Transgender is no longer protected; Trauma is protected now"),
        (values("Transgender", "Trauma", "Heart"), "surgery: Trauma and Heart are protected now"),
        (lkc(K=1), "K: 2 before, 1 now"),
        (lkc(L=1), "L: 2 before, 1 now"),
        (lkc(C={"surgery": "1/2"}), "C: 1/2 before, not there now"),
        (lkc(method="kd"), "model: lkc top-down before, lkc kd now"),
        (column("surgery", C="1"), "C of surgery: not there before, 1 now"),
        (column("surgery", role="plain"), "surgery: `role: sensitive` before, `role: plain` now"),
        (column("ward", role="plain"), "ward: a new column, `role: plain`"),
        (lambda job: job["columns"].pop("age"), "age: no longer a column; was `role: qid`"),
        (
            lambda job: job.update(deliver="coordinator"),
            "receivers of the release: all before, coordinator now",
        ),
        (lambda job: job.update(disclosure="sealed"), "disclosure: leader before, sealed now"),
        (lambda job: job.update(leader="hospital-b"), "leader: hospital-a before, hospital-b now"),
        (lambda job: job["parties"].update({"hospital-d": {}}), "parties: new: hospital-d"),
        (lambda job: job["parties"].pop("hospital-c"), "parties: no longer there: hospital-c"),
        (
            lambda job: job.update(parties=dict(reversed(job["parties"].items()))),
            "parties: the same in another",
        ),
        (
            lambda job: job.update(columns=dict(reversed(job["columns"].items()))),
            "`columns`: the same columns",
        ),
        (lambda job: job.update(goal="general"), '`goal`: "classification" -> "general"'),
    ],
)
def test_a_change_is_said_in_words(change: _Change, words: str) -> None:
    found = changed(change)
    assert found.lines[0].startswith(words)
    assert not found.stricter


def test_a_change_of_a_dp_job() -> None:
    def dp(epsilon: str) -> _Change:
        return lambda job: job.update(model={"dp": {"method": "synthetic", "epsilon": epsilon}})

    assert changed(dp("2"), dp("1")) == Differences(["ε: 1 before, 2 now"], stricter=False)
    assert changed(dp("1/2"), dp("1")) == Differences(["ε: 1 before, 1/2 now"], stricter=True)


@pytest.mark.parametrize(
    ("change", "stricter"),
    [
        (lkc(K=3), True),
        (lkc(L="all"), True),
        (lkc(C="1/3", K=3), True),
        (lkc(C="2/3"), False),
        (lkc(C="1/3", K=1), False),
        (lkc(K=3, score="groups"), False),
        (lkc(t={"K": "1/2"}), False),
        (lkc(distinct={"L": 1}), False),
    ],
)
def test_a_stricter_requirement_is_told_apart(change: _Change, stricter: bool) -> None:
    """A column may have the name of a key."""
    assert changed(change, lkc(t={"K": "1/5"}, distinct={"L": 2})).stricter == stricter


def test_entries_of_a_requirement_are_compared_one_by_one() -> None:
    def entries(*each: dict[str, Any]) -> _Change:
        return lkc(requirements=list(each))

    before = entries({"L": 1, "K": 5}, {"K": 9})
    assert changed(entries({"L": 1, "K": 6}, {"K": 9}), before).lines == ["requirement 1, K: 5 before, 6 now"]
    assert changed(entries({"L": 1, "K": 6}, {"K": 9}), before).stricter
    gone = changed(entries({"L": 1, "K": 6}), before)
    assert gone.lines == ["requirement 2, K: 9 before, not there now", "requirement 1, K: 5 before, 6 now"]
    assert not gone.stricter


def test_a_trap_comes_first_whatever_is_added() -> None:
    def trap(job: dict[str, Any]) -> None:
        for k in range(900):
            job["columns"][f"a{k}"] = {"role": "sensitive", "domain": ["x" * 10_000], "C": "1/2"}
        job["columns"] = {**dict(reversed(job["columns"].items()))}
        job["model"]["lkc"].update(K=1, distinct={f"a{k}": 2 for k in range(900)})
        job["columns"]["surgery"]["values"] = ["Trauma"]

    lines = changed(trap).lines
    assert lines[:2] == [
        "K: 2 before, 1 now",
        "surgery: Transgender is no longer protected; Trauma is protected now",
    ]
    assert len(lines) == MOST_KEYS + 1
    assert lines[-1].endswith("more changed keys")
    assert max(len(line) for line in lines) < 1000


def test_long_values_are_told_where_they_differ() -> None:
    domain = [f"Value {k:04}" for k in range(2000)]
    found = changed(column("age", taxonomy=[*domain[:-1], "Changed"]), column("age", taxonomy=domain))
    (line,) = found.lines
    assert "Changed" in line
    assert "Value 1999" in line
    assert len(line) < 200


def test_many_lines_of_a_file_are_counted() -> None:
    old, new = job_of(), [f"Value {k}" for k in range(20_000)]
    files = {"age": "\n".join(["kept", *new]), **{f"b{k}": f"{k}" for k in range(9)}}
    lines = differences(bundle(old, {"age": "kept\ngone"}), bundle(old, files)).lines
    assert lines[0] == "file of age: -gone"
    assert lines[1] == "file of age: +Value 0"
    assert lines[MOST_LINES] == "file of age: and 19,991 more: 20,000 lines added, 1 removed"
    assert lines[-1] == "and 5 more changed files: of b4, b5, b6, b7, b8"
    assert len(lines) == MOST_LINES + 1 + (MOST_FILES - 1) + 1


def test_the_same_lines_in_another_order() -> None:
    old = job_of()
    lines = differences(bundle(old, {"age": "a\nb"}), bundle(old, {"age": "b\na"})).lines
    assert lines == ["file of age: the same lines in another order"]


def test_a_new_name_is_no_difference_of_weight() -> None:
    found = differences(bundle(job_of(), {}), bundle({**job_of(), "name": "another"}, {}))
    assert found == Differences(["the name alone"], stricter=True)


def test_an_order_that_no_key_tells_is_a_difference() -> None:
    tree = {"Any": {"A": ["x"], "B": ["y"]}}
    other = {"Any": {"B": ["y"], "A": ["x"]}}
    found = changed(column("job", taxonomy=other), column("job", taxonomy=tree))
    assert found == Differences(["the same values in another order"], stricter=False)
