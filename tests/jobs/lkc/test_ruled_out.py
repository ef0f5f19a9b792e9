"""`ruled_out`, `diversity` and `at_most` in jobs: refused, covered, run, told, verified, and asked for by owners."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import SchemaError
from anonymize.verification.tables import Finding
from jobs.errors import PolicyError
from jobs.lkc.entries import covering, entries_of
from jobs.lkc.linked_columns import blocks_of, ruled_together
from jobs.lkc.sentences import links_are_unread, notes_on, verified_words
from jobs.lkc.verify import verify_release
from jobs.loading import check_task, load_task, parse_job
from jobs.owner.objections import allowance, check_policy
from jobs.owner.policy import Policy
from jobs.release.csv import REPORT, TABLE
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.refusals import refused
from tests.support.ruled_out import Sensitive, is_diverse, tells_at_most
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job, release_of, single_job, vertical_job

Said = dict[str, Any]
SURGERY: Said = {"role": "sensitive", "domain": ["Heart", "Knee", "Rare"], "values": ["Rare"], "C": "0.5"}


def lkc(partition: str = "single", surgery: Said | None = None, **asked: str) -> Said:
    model = {"lkc": {"L": "2", "K": "2", "C": "0.5", **asked}}
    of_surgery = {"columns": columns(surgery={**SURGERY, **surgery})} if surgery is not None else {}
    if partition == "vertical":
        return vertical_job(model=model)
    if partition == "single":
        return single_job(model=model, **of_surgery)
    return joint_job(disclosure="sealed", model=model, **of_surgery)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (lkc("vertical", diversity="4"), "`diversity` is at most 3"),
        (lkc("horizontal", diversity="4"), "`diversity` is at most 3"),
        (
            lkc("horizontal", diversity="3", colluders="1"),
            "`colluders` is for K, C, `distinct` and `diversity: 2`",
        ),
        (lkc(surgery={"at_most": "1"}), "columns.surgery.at_most is for `ruled_out` and `diversity`"),
        (lkc(surgery={"at_most": "2"}, ruled_out="1"), "columns.surgery.at_most: 2 limits nothing"),
        (lkc(surgery={"at_most": "1"}, diversity="2"), "columns.surgery.at_most: 1 limits nothing"),
        (lkc(surgery={"at_most": "3"}, ruled_out="1", diversity="4"), "look at 3 values together at most"),
        (
            lkc(ruled_out="2"),
            "`model.lkc.ruled_out` is 2: write `ruled_out: 1`, or `diversity` for readers who rule out",
        ),
        (
            single_job(model={"lkc": {"requirements": [{"K": "2", "C": "0.5", "ruled_out": "2"}]}}),
            "`model.lkc.requirements.0.ruled_out` is 2: write `ruled_out: 1`",
        ),
        (lkc(diversity="1"), "`model.lkc.diversity`"),
        (lkc(diversity="7"), "`model.lkc.diversity`"),
    ],
)
def test_what_cannot_be_tested_is_refused(fields: Said, said: str) -> None:
    assert said in refused(fields).message


@pytest.mark.parametrize(
    ("asked", "domain"),
    [({"diversity": "4"}, ["Heart", "Knee", "Rare"]), ({"ruled_out": "1"}, ["Knee", "Rare"])],
)
def test_a_column_of_few_values_needs_a_limit(asked: dict[str, str], domain: list[str]) -> None:
    limit = len(domain) - 1
    task = jobs.task_of(lkc(surgery={"domain": domain}, **asked))
    with pytest.raises(SchemaError, match="a reader who rules out all but one value") as caught:
        check_task(task)
    assert caught.value.remedy == f"set `at_most: {limit}` in columns.surgery"
    check_task(jobs.task_of(lkc(surgery={"domain": domain, "at_most": str(limit)}, **asked)))


def in_two_hands(model: Said, insider: bool = False, **sensitive: tuple[str, Said]) -> Said:
    """A vertical job with sensitive columns at holders, by name: the holder, and what the column says."""
    held = {"loan": ["job"], "bank": ["age"]}
    for name, (holder, _) in sensitive.items():
        held[holder].append(name)
    parties = {
        name: {"address": f"127.0.0.1:740{i}", "columns": of_party}
        for i, (name, of_party) in enumerate(held.items(), 1)
    }
    said = {name: {"role": "sensitive", **column} for name, (_, column) in sensitive.items()}
    return vertical_job(
        model=model, columns=columns(surgery=None, **said), parties=parties, insider=str(insider).lower()
    )


def of_values(n: int, **said: Any) -> Said:
    return {"domain": [f"v{i}" for i in range(n)], "values": ["v0"], **said}


@pytest.mark.parametrize("asked", [{"C": "0.5", "ruled_out": "1"}, {"C": "1", "diversity": "3"}])
def test_what_a_vertical_holder_can_have_together_is_limited(asked: Said) -> None:
    """Each holder's columns by themselves: 256 combinations of those that values may be ruled out of."""
    model = {"lkc": {"L": "2", "K": "2", **asked}}

    def check(s: tuple[str, Said], t: tuple[str, Said]) -> None:
        check_task(jobs.task_of(in_two_hands(model, s=s, t=t)))

    check(("bank", of_values(16)), ("bank", of_values(16)))
    check(("bank", of_values(200)), ("loan", of_values(200)))
    check(("bank", of_values(17, at_most="0")), ("bank", of_values(16)))
    with pytest.raises(
        SchemaError, match=r"there are 272 combinations of values of s, t, but .* at most 256"
    ):
        check(("bank", of_values(17)), ("bank", of_values(16)))
    many = {"domain": [f"v{i}" for i in range(142)]}
    with pytest.raises(SchemaError, match="are 20164, and a joint run tests at most 20000"):
        check(("bank", many), ("loan", of_values(3)))


def test_a_block_of_which_nothing_is_protected_has_no_limit() -> None:
    model = {"lkc": {"L": "2", "K": "2", "C": "0.5", "ruled_out": "1"}}
    free = of_values(300, C="1")
    check_task(jobs.task_of(in_two_hands(model, s=("bank", free), t=("loan", of_values(3)))))
    check_task(
        jobs.task_of(in_two_hands({"lkc": {"L": "2", "K": "2", "C": "0.5"}}, s=("bank", of_values(300))))
    )


def test_holders_of_a_vertical_job_are_its_blocks() -> None:
    model = {"lkc": {"L": "2", "K": "2", "C": "0.5", "ruled_out": "1", "diversity": "3"}}
    columns = {"s": ("bank", of_values(4)), "t": ("loan", of_values(4)), "u": ("bank", of_values(4))}
    task = jobs.task_of(in_two_hands(model, **columns))
    assert ruled_together(task.job) == blocks_of(task.job) == (("s", "u"), ("t",))
    (words,) = (entry.words for entry in entries_of(task.job))
    assert words == "L=2 K=2 C=1/2 ruled_out=1 (block by block) diversity=3 (block by block)"
    assert not links_are_unread(task.job)
    notes = notes_on(task)
    assert [note for note in notes if "of different holders are not linked (s with u; t)" in note]
    assert not [note for note in notes if "`link`" in note]


HEART = [("heart", "drug"), ("heart", "surgery"), ("flu", "IV"), ("asthma", "IV")]
"""[MSA] Fig. 2, its first group: whoever rules out heart disease knows that the treatment is IV."""


@pytest.mark.parametrize(("holder", "found"), [("bank", "diversity"), ("loan", None)])
def test_a_vertical_table_is_verified_holder_by_holder(holder: str, found: str | None) -> None:
    """As readers do, and the holders before their columns leave them."""
    model = {"lkc": {"L": "2", "K": "2", "C": "1", "diversity": "3"}}
    disease, treatment = {"domain": ["heart", "flu", "asthma"]}, {"domain": ["drug", "surgery", "IV"]}
    task = jobs.task_of(in_two_hands(model, s=("bank", disease), t=(holder, treatment)))
    check_task(task)
    rows = [("[0,10)", "Janitor", "Y", *values) for values in HEART]
    release = release_of(["age", "job", "transfused", "s", "t"], rows)
    assert _threshold(verify_release(release, task)) == found
    held = {name: [c for c in ("s", "t") if c in task.job.contributed_by(name)] for name in task.job.roster}
    assert _threshold(verify_release(release, task, held["bank"])) == found
    assert verify_release(release, task, held["loan"]) is None


def _threshold(finding: Finding | None) -> str | None:
    return None if finding is None else finding.threshold


def test_insiders_know_all_quasi_identifiers_once_values_are_ruled_out() -> None:
    whole, part = {"K": "2", "C": "0.5"}, {"columns": ["age"], "K": "2", "C": "0.5", "ruled_out": "1"}
    fields = in_two_hands({"requirements": [whole, part]}, insider=True, s=("bank", of_values(4)))
    assert "among requirements with `ruled_out`, the smallest C" in refused(fields).message
    asked = {"requirements": [{**whole, "ruled_out": "1"}, part]}
    parse_job(in_two_hands(asked, insider=True, s=("bank", of_values(4))), "job")


def test_jobs_without_them_have_the_form_they_had() -> None:
    plain, none = parse_job(lkc(), "job"), parse_job(lkc(ruled_out="0"), "job")
    assert plain.canonical() == none.canonical()
    assert "ruled_out" not in str(plain.canonical())
    assert "at_most" not in str(plain.canonical())


def test_more_of_it_covers_less() -> None:
    entries = [{"K": "2", "C": "0.5"}, {"K": "2", "C": "0.5", "ruled_out": "1"}, {"K": "2", "diversity": "2"}]
    entries.append({"K": "2", "diversity": "3"})
    task = jobs.task_of(single_job(model={"requirements": entries}))
    assert covering(entries_of(task.job)) == {0: 1, 2: 3}


def test_a_table_from_end_to_end(tmp_path: Path) -> None:
    job = write_job(tmp_path, lkc(surgery={"C": "0.4"}, ruled_out="1", diversity="3"))
    jobs.write_csv(tmp_path / "table.csv", sample_rows(80), COLUMNS)
    done = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    report = json.loads((tmp_path / "out" / REPORT).read_text())
    (asked,) = report["requirements"]
    assert (asked["ruled_out"], asked["diversity"]) == (1, 3)
    assert "the same for whoever rules out one value" in report["verified"]
    groups: dict[Any, list[tuple[str]]] = {}
    for row in csv.DictReader((tmp_path / "out" / TABLE).read_text().splitlines()):
        groups.setdefault((row["age"], row["job"]), []).append((row["surgery"],))
    column = [Sensitive(["Heart", "Knee", "Rare"], ["Rare"], Fraction(2, 5))]
    assert all(tells_at_most(group, column, 1) and is_diverse(group, column, 3) for group in groups.values())
    again = invoke("coordinator", "verify", job, tmp_path / "out")
    assert again.code == 0, again.err


def test_a_table_that_tells_too_much_is_found() -> None:
    """Ruling out Knee leaves Rare; nobody finds it without."""
    table = [("0-9", "a", surgery, "N") for surgery in ("Knee", "Knee", "Rare", "Rare")]
    release = release_of(["age", "job", "surgery", "income"], table)
    told = jobs.task_of(lkc(surgery={}, ruled_out="1"))
    finding = verify_release(release, told)
    assert finding is not None
    assert finding.threshold == "ruled_out"
    assert verify_release(release, jobs.task_of(lkc(surgery={}))) is None
    diverse = verify_release(release, jobs.task_of(lkc(surgery={}, diversity="3")))
    assert diverse is not None
    assert diverse.threshold == "diversity"
    assert verify_release(release, jobs.task_of(lkc(surgery={"at_most": "1"}, diversity="3"))) is None
    assert "rules out one value" in verified_words(told)


def against(fields: Said, **changes: Any) -> str:
    task, me = jobs.task_of(fields), PARTIES[1]
    allowed = {**allowance(task, me, "coordinator"), **changes}
    try:
        check_policy(Policy.model_validate(allowed), task, me, "coordinator")
    except PolicyError as error:
        return error.problem.message
    return ""


def test_diversity_counts_as_two_where_a_joint_job_does_not_link_columns() -> None:
    """Attackers who rule out a value of another block, and know which are one person's, are not considered."""
    said: Said = {"columns": columns(surgery=SURGERY, loan={**SURGERY, "values": None})}
    how: Said = {
        "model": {"lkc": {"L": "all", "K": "2", "C": "0.5", "diversity": "3"}},
        "disclosure": "sealed",
    }
    linked, apart = (joint_job(**how, **said, link=link) for link in ("all", "none"))
    assert against(linked, min_diversity=3) == ""
    assert against(apart, min_diversity=2) == ""
    assert against(apart, min_diversity=3) == (
        "diversity must be at least 3, not 2 (`policy.min_diversity`): with `link` in a joint job values of one "
        "block alone are ruled out, so more than 2 counts as 2"
    )
    kinds = [allowance(jobs.task_of(fields), PARTIES[1], "coordinator") for fields in (linked, apart)]
    assert [kind["min_diversity"] for kind in kinds] == [3, 2]


def test_owners_ask_for_diversity() -> None:
    asked = lkc("horizontal", diversity="3")
    assert against(asked) == ""
    assert allowance(jobs.task_of(asked), PARTIES[1], "coordinator")["min_diversity"] == 3
    assert against(asked, min_diversity=4) == "diversity must be at least 4, not 3 (`policy.min_diversity`)"
    assert (
        against(lkc("horizontal"), min_diversity=3)
        == "diversity must be at least 3, not 2 (`policy.min_diversity`)"
    )


@pytest.mark.parametrize(
    ("column", "at", "says"),
    [
        (
            {"taxonomy": {"Any": {"Limb": ["Knee"], "Trunk": ["Heart"]}}, "values": ["Hip"]},
            "values:",
            "columns.surgery.values names 'Hip', which is not a category of the column; the categories are "
            "'Knee', 'Heart'",
        ),
        (
            {"domain": ["Heart", "Knee", "Rare"]},
            "lkc:",
            "model.lkc: surgery has 3 values ('Heart', 'Knee', 'Rare'), and a reader who rules out all but one value",
        ),
        (
            {"numeric": {"min": "0", "max": "20", "step": "1"}, "values": ["Hip"]},
            "values:",
            "'[10,11)', '[11,12)' and 8 more",
        ),
    ],
)
def test_what_is_wrong_with_values_is_told_with_file_line_and_values(
    column: Said, at: str, says: str, tmp_path: Path
) -> None:
    fields = single_job(
        model={"lkc": {"L": "2", "K": "2", "C": "0.5", "diversity": "4"}},
        columns=columns(surgery={"role": "sensitive", **column}),
    )
    path = write_job(tmp_path, fields)
    with pytest.raises(SchemaError) as caught:
        load_task(path)
    text = path.read_text().splitlines()
    above = "model:" if at == "lkc:" else "surgery:"
    start = next(i for i, line in enumerate(text) if line.strip() == above)
    line = next(i for i, line in enumerate(text[start:], start + 1) if line.strip() == at)
    assert str(caught.value).startswith(f"{path}: line {line}: ")
    assert says in str(caught.value)
    assert (caught.value.column, bool(caught.value.remedy)) == ("surgery", True)


@pytest.mark.parametrize(("method", "where"), [("top-down", "group and child"), ("kd", "side of a cut")])
def test_whoever_approves_a_sealed_job_is_told_what_tests_take(method: str, where: str) -> None:
    how: Said = {"disclosure": "sealed", "method": method, "goal": "general"}
    asked = {"L": "all", "K": "2", "C": "0.5"}
    several, plain = (
        jobs.task_of(joint_job(**how, model={"lkc": {**asked, **more}})) for more in ({"diversity": "3"}, {})
    )
    assert plain.mode.costs(plain) == []
    # Of six values of two columns each is ruled out for each of three that are protected.
    assert several.mode.costs(several) == [f"tests take about 10^2 AND gates of 32 bytes for each {where}"]
