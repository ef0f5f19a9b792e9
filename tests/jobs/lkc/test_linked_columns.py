"""`link`: which sensitive columns a release links, and what is asked of those that it does not."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.lkc.linked_columns import shuffled_apart
from anonymize.release import Release
from jobs.errors import PartyError
from jobs.lkc.checked import verify_table
from jobs.lkc.forms.form import form_of
from jobs.lkc.linked_columns import blocks_of, ruled_together
from jobs.lkc.report import risk_fields
from jobs.lkc.requirement import requirement
from jobs.lkc.sentences import notes_on
from jobs.lkc.verify import require_linked, verify_release
from jobs.loading import parse_job
from jobs.release.csv import REPORT, TABLE, read_csv
from tests.support import jobs
from tests.support.blocks import (
    COLUMNS,
    SENSITIVE,
    block_by_block,
    counts_of,
    job_of,
    read,
    released,
    rows_of,
)
from tests.support.examples import examples
from tests.support.refusals import refused
from tests.support.releases import release_of
from tests.support.rng import SeededRng
from tests.support.ruled_out import Sensitive, is_diverse, tells_at_most
from tests.support.samples import AS_IT_IS, columns, vertical_job

QID = ["age", "job"]
PAIR = [["treatment", "disease"]]
LIMITED = {**COLUMNS, "end": {**COLUMNS["end"], "at_most": "1", "values": ["ward"]}}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            job_of(link=[["disease", "dose"]]),
            "`link` names 'dose', which is not a column with `role: sensitive`",
        ),
        (
            job_of(link=[["disease", "age"]]),
            "`link` names 'age', which is not a column with `role: sensitive`",
        ),
        (job_of(link=[["disease"], ["end", "disease"]]), "`link` names 'disease' twice"),
        (job_of(link=[["disease", "disease"]]), "`link` names 'disease' twice"),
        (job_of(link=[]), "`model.lkc.link`"),
        (job_of(link=[[]]), "`model.lkc.link`"),
        (job_of(link="some"), "`model.lkc.link`"),
        (job_of(link="none", columns={"age": COLUMNS["age"]}), "`link` is for sensitive columns"),
        (vertical_job(link="none"), "`link` is not for vertical jobs"),
        (
            job_of(method=None, goal="classification", link="none", contexts="cells"),
            "`contexts: cells` needs class and sensitive values",
        ),
    ],
)
def test_what_cannot_be_said_is_refused(fields: dict[str, Any], says: str) -> None:
    assert says in refused(fields).message


def test_blocks_have_one_order() -> None:
    def blocks(**said: Any) -> Any:
        return blocks_of(parse_job(job_of(**said), "job"))

    assert blocks() == blocks(link="all") == (("disease", "treatment", "end"),)
    assert blocks(link="none") == (("disease",), ("treatment",), ("end",))
    assert (
        blocks(link=PAIR)
        == blocks(link=[["end"], ["disease", "treatment"]])
        == (("disease", "treatment"), ("end",))
    )
    assert blocks(link=[["end", "disease"]]) == (("disease", "end"), ("treatment",))
    job = parse_job(job_of(link="none"), "job")
    assert ruled_together(job) == (("disease", "treatment", "end"),)


def test_jobs_that_link_all_have_the_form_they_had() -> None:
    plain = parse_job(job_of(), "job").canonical()
    assert plain == parse_job(job_of(link="all"), "job").canonical()
    assert "link" not in plain
    assert jobs.bundle_of(job_of(link="none")).digest != jobs.bundle_of(job_of()).digest


def test_scores_count_nothing_that_the_release_does_not_link() -> None:
    top_down = {"method": None, "goal": "classification"}
    assert parse_job(job_of(**top_down), "job").lkc.contexts == "cells"
    assert parse_job(job_of(**top_down, link="all"), "job").lkc.contexts == "cells"
    assert parse_job(job_of(**top_down, link=PAIR), "job").lkc.contexts == "partitions"


@pytest.mark.parametrize("method", ["kd", "top-down"])
@pytest.mark.parametrize("link", ["none", PAIR])
def test_every_group_has_the_blocks_that_it_has_when_linked(tmp_path: Path, method: str, link: Any) -> None:
    """The class stays with the quasi-identifiers."""
    rows, parts = rows_of(150), {}
    for name, said in (("all", "all"), ("parted", link)):
        (tmp_path / name).mkdir()
        task, out = released(tmp_path / name, job_of(method=method, link=said), rows)
        verify_table(task, out)
        parts[name] = read(task, out, TABLE)
    blocks = [list(block) for block in blocks_of(parse_job(job_of(link=link), "job"))]
    for block in [*blocks, ["paid"]]:
        assert counts_of(parts["all"], QID, block) == counts_of(parts["parted"], QID, block)
    assert len(counts_of(parts["all"], QID, [])) > 4
    others = [block for block in blocks if len(block) == 1]
    assert counts_of(parts["all"], QID, ["disease", *others[-1]]) != counts_of(
        parts["parted"], QID, ["disease", *others[-1]]
    )
    assert counts_of(parts["all"], QID, ["paid", "disease"]) != counts_of(
        parts["parted"], QID, ["paid", "disease"]
    )


def test_every_order_inside_a_group_is_as_likely() -> None:
    rows = [("1", "a", "x"), ("1", "b", "y"), ("1", "c", "z"), ("2", "d", "w")]
    table = release_of(["g", "s", "t"], rows)
    seen: Counter[Any] = Counter()
    for seed in range(1200):
        apart = shuffled_apart(table, np.array([0, 0, 0, 1]), [["s"], ["t"]], SeededRng(seed))
        labels = [[apart.columns[name].labels[code] for code in apart.columns[name].codes] for name in "gst"]
        found = list(zip(*labels, strict=True))
        assert [row[0] for row in found] == ["1", "1", "1", "2"]
        assert found[3] == rows[3]
        seen[tuple(row[1:] for row in found[:3])] += 1
    assert len(seen) == 36
    # Of 1,200 draws of 36 kinds: a fair one stays below 70 but once in 10^16.
    assert sum((n - 1200 / 36) ** 2 / (1200 / 36) for n in seen.values()) < 120


# ---- what is asked

HEART = [("heart", "drug"), ("heart", "surgery"), ("flu", "IV"), ("asthma", "IV")]
"""[MSA] Fig. 2, its first group: whoever rules out heart disease knows that the treatment is IV."""
DIVERSE = {"diversity": "3", "K": "1"}
TWO = {name: COLUMNS[name] for name in ("age", "disease", "treatment")}


def first_group(**said: Any) -> tuple[Any, Any]:
    task = jobs.task_of(job_of(DIVERSE, columns=TWO, **said))
    return task, release_of(["age", "disease", "treatment"], [("[0,80)", *row) for row in HEART])


def test_an_attack_does_not_fit_a_release_that_links_nothing() -> None:
    """[MSA]'s table of this group links nothing: ruled out heart disease leaves the treatments as they are.

    So nothing is wrong with it as readers see it; linked it is, and one holder's job asks for more than it tells.
    """
    linked, rows = first_group()
    finding = verify_release(rows, linked)
    assert finding is not None
    assert finding.threshold == "diversity"
    task, _ = first_group(link="none")
    (tables,) = [
        shuffled_apart(rows, np.zeros(4, dtype=np.int64), [["disease"], ["treatment"]], SeededRng(0))
    ]
    assert counts_of(_rows(tables), [], ["treatment"]) == Counter({("IV",): 2, ("drug",): 1, ("surgery",): 1})
    assert verify_release(tables, task) is None
    with pytest.raises(PartyError, match="violates diversity"):
        require_linked(rows, task)


def _rows(release: Any) -> list[dict[str, str]]:
    columns = [[c.labels[code] for code in c.codes] for c in release.columns.values()]
    return [dict(zip(release.columns, row, strict=True)) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("method", ["kd", "top-down"])
def test_one_holder_s_table_holds_for_whoever_links_the_blocks(tmp_path: Path, method: str) -> None:
    """Groups are those of the job that links all, and each block holds."""
    asked, rows = {"C": "0.8", "ruled_out": "1", "diversity": "3"}, rows_of(300, 1)
    columns, groups = LIMITED, {}
    for name, said in (("linked", {}), ("blocks", {"link": "none"})):
        (tmp_path / name).mkdir()
        task, out = released(tmp_path / name, job_of(asked, method=method, columns=columns, **said), rows)
        checked, report = verify_table(task, out), json.loads((out / REPORT).read_text())
        table = read(task, out, TABLE)
        groups[name] = counts_of(table, QID, [])
        unread = name == "blocks"
        assert ("relinking" in checked.fields.get("not_verified", [])) is unread
        assert ("a reader who links the blocks again" in checked.text) is unread
        assert ("a reader who links the blocks again" in report["verified"]) is unread
        assert ("of one block of columns" in report["verified"]) is (name != "linked")
        for group in groups[name]:
            members = [row for row in table if tuple(row[q] for q in QID) == group]
            for block in blocks_of(task.job):
                sensitive = [
                    Sensitive(
                        SENSITIVE[c],
                        columns[c].get("values", SENSITIVE[c]),
                        Fraction(4, 5),
                        int(columns[c]["at_most"]) if "at_most" in columns[c] else None,
                    )
                    for c in block
                ]
                values = [tuple(row[c] for c in block) for row in members]
                assert tells_at_most(values, sensitive, 1)
                assert is_diverse(values, sensitive, 3)
    assert groups["linked"] == groups["blocks"]


def test_a_whole_table_that_only_links_fail(tmp_path: Path) -> None:
    """It is refused, since the rule does not hold for a reader who links the blocks again."""
    rows = [{"age": str(i), "disease": d, "treatment": t} for i, (d, t) in enumerate(HEART)]
    with pytest.raises(PrivacyError, match="already violates diversity"):
        released(tmp_path, job_of(DIVERSE, columns=TWO, link="none"), rows)


@pytest.mark.parametrize("release", ["rows", "anatomy"])
def test_what_links_break_is_found_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    """Groups that were made for less: the blocks meet what is asked, and linked rows do not."""
    with block_by_block():
        for_less = requirement(jobs.task_of(job_of(DIVERSE, columns=TWO, link="none")))
    monkeypatch.setattr("jobs.lkc.kd.single.requirement", lambda _: for_less)
    rows = [{"age": str(i), "disease": d, "treatment": t} for i, (d, t) in enumerate(HEART)]
    with pytest.raises(PartyError, match="violates diversity"):
        released(tmp_path, job_of(DIVERSE, columns=TWO, link="none", release=release), rows)
    assert not (tmp_path / "out").exists()


def test_metrics_of_links_are_of_what_is_linked(tmp_path: Path) -> None:
    exposed = {}
    for name, link in (("all", "all"), ("pair", PAIR), ("none", "none")):
        (tmp_path / name).mkdir()
        _, out = released(tmp_path / name, job_of({"C": "0.6"}, link=link), rows_of(150))
        exposed[name] = json.loads((out / REPORT).read_text())["metrics"].get("linked_exposure")
    assert 0 < exposed["pair"] < exposed["all"]
    assert exposed["none"] is None


def test_reports_and_descriptions_say_it(tmp_path: Path) -> None:
    asked = {"diversity": "3"}
    task, out = released(tmp_path, job_of(asked, link=PAIR, columns=LIMITED), rows_of(150))
    report = json.loads((out / REPORT).read_text())
    assert report["model"]["lkc"]["link"] == [["treatment", "disease"]]
    assert any("not linked are disease with treatment; end" in note for note in report["notes"])
    assert task.model.described(task).requirement == "L=all K=4 diversity=3 at_most(end)=1"
    report["model"]["lkc"]["link"] = "none"
    (out / REPORT).write_text(json.dumps(report))
    with pytest.raises(PartyError, match=r"`model\.lkc\.link` is not as job and table say"):
        verify_table(task, out)


@pytest.mark.parametrize(
    ("method", "asked", "form", "n"),
    [(None, {"L": "1"}, None, 150), (None, {"L": "1"}, "anatomy", 150), ("kd", {"K": "2"}, None, 60)],
)
def test_records_that_no_order_hides_are_counted(
    tmp_path: Path, method: str | None, asked: dict[str, str], form: str | None, n: int
) -> None:
    """L = 1 leaves single records; K = 2 groups of one value."""
    fields = job_of({"C": "1", **asked}, method=method, link="none", release=form)
    task, out = released(tmp_path, fields, rows_of(n))
    report = json.loads((out / REPORT).read_text())
    sizes: Counter[tuple[str, ...]] = Counter()
    kinds: dict[tuple[str, ...], list[set[str]]] = {}
    rows = form_of(task.job).rows(
        task.job,
        {
            name: read_csv(out / name, columns)
            for name, columns in form_of(task.job).columns(task.job).items()
        },
        n,
    )
    if rows.counts is not None:
        rows = rows.in_rows()
    printed = [
        [rows.columns[name].labels[c] for c in rows.columns[name].codes]
        for name in (*QID, *SENSITIVE, "paid")
    ]
    for row in zip(*printed, strict=True):
        group = row[: len(QID)]
        sizes[group] += 1
        for seen, value in zip(
            kinds.setdefault(group, [set() for _ in row[len(QID) :]]), row[len(QID) :], strict=True
        ):
            seen.add(value)
    expected = sum(sizes[group] for group, seen in kinds.items() if any(len(values) == 1 for values in seen))
    assert 0 < expected == report["risk"]["linked"] < n
    says = [line for line in task.model.shown(task, report).lines if "shuffling hides nothing" in line]
    assert len(says) == 1
    assert f"of {expected} record" in says[0]
    assert any("with L below" in note for note in report["notes"]) is (method is None)
    verify_table(task, out)
    report["risk"]["linked"] -= 1
    (out / REPORT).write_text(json.dumps(report))
    with pytest.raises(PartyError, match=r"`risk\.linked` is not as job and table say"):
        verify_table(task, out)


def in_groups(*groups: str) -> Any:
    """A table of a job of :data:`COLUMNS`, ages by decade: in every group records as "disease treatment end paid"."""
    rows = [
        (f"[{10 * i},{10 * i + 10})", "Any", *record.split())
        for i, group in enumerate(groups)
        for record in group.split(", ")
    ]
    return release_of([*QID, *SENSITIVE, "paid"], rows)


OF_ONE_CLASS = in_groups(
    "asthma drug home Y, cold IV ward Y, flu surgery home Y",
    "asthma drug home N, cold IV ward Y, flu surgery home Y",
    "asthma drug home N, asthma IV ward Y",
    "heart drug home N, cold IV ward N",
)
"""Groups of three, three, two and two: the first and the last have one class each, and the third has one disease."""


@pytest.mark.parametrize(
    ("said", "linked"),
    [
        ({"link": "none"}, 7),
        ({"link": PAIR}, 5),
        ({"link": PAIR, "release": "anatomy"}, 5),
        ({"release": "anatomy"}, 5),
        ({"release": "anatomy", "quasi": "exact"}, 5),
        ({"link": "none", "columns": {n: c for n, c in COLUMNS.items() if n != "paid"}}, 2),
    ],
)
def test_the_class_of_a_group_that_has_one_is_each_record_s(said: dict[str, Any], linked: int) -> None:
    """The class is a block of its own: where all have one, it is told beside the values."""
    release = OF_ONE_CLASS
    if "quasi" in said:
        release = Release({"group": release.columns["age"], **release.columns})
    risk = risk_fields(jobs.task_of(job_of(**said)), release)["risk"]
    assert risk["linked"] == linked
    assert ("some block's values or its paid with the rest" in risk["meaning"]) is ("columns" not in said)
    assert ("`link`: of" in risk["meaning"]) is ("link" in said)


def test_where_all_is_linked_nothing_is_counted() -> None:
    for said in ({}, {"link": [list(SENSITIVE)]}):
        assert "linked" not in risk_fields(jobs.task_of(job_of(**said)), OF_ONE_CLASS)["risk"]
    without = {name: column for name, column in COLUMNS.items() if name != "paid"}
    task = jobs.task_of(job_of(release="anatomy", columns=without))
    assert "linked" not in risk_fields(task, OF_ONE_CLASS)["risk"]


HELD = {
    "loan": {"columns": ["job", "arrears", "code"]},
    "bank": {"columns": ["age", "surgery"]},
    "post": {"columns": ["street"]},
}
"""By holder what it has: the post has nothing that is sensitive."""


def held_apart(*left_out: str, **said: Any) -> Any:
    """The task of a vertical job of these holders, without some columns."""
    further = {
        "arrears": {"role": "sensitive", "domain": ["none", "high"]},
        "code": {"role": "plain"},
        "street": AS_IT_IS,
    }
    given = {**columns(), **further, "street": AS_IT_IS}
    parties = {
        name: {"address": f"127.0.0.1:740{i}", "columns": [c for c in holder["columns"] if c not in left_out]}
        for i, (name, holder) in enumerate(HELD.items(), 1)
    }
    given = {name: column for name, column in given.items() if name not in left_out}
    return jobs.task_of(
        vertical_job(columns=given, parties={n: p for n, p in parties.items() if p["columns"]}, **said)
    )


def test_vertical_tables_link_where_all_records_of_a_cell_are_alike() -> None:
    """A holder sends a block: its sensitive columns, or else its plain ones; a cell has one class."""
    cells = {
        "alone": [("White", "Y", "Knee", "none", "1", "a")],
        "one surgery": [("Any", "Y", "Knee", "none", "1", "a"), ("Any", "Y", "Knee", "high", "1", "b")],
        "one street": [("Blue", "Y", "Knee", "none", "1", "a"), ("Blue", "Y", "Rare", "high", "2", "a")],
        "one code": [("Any", "N", "Knee", "none", "1", "a"), ("Any", "N", "Rare", "high", "1", "b")],
        "none alike": [("White", "N", "Knee", "none", "1", "a"), ("White", "N", "Rare", "high", "2", "b")]
        * 3,
    }
    names = ["job", "transfused", "surgery", "arrears", "code", "street"]
    rows = [("[0,100)", *row) for cell in cells.values() for row in cell]
    release = release_of(["age", *names], rows)
    risk = risk_fields(held_apart(), release)["risk"]
    assert risk["linked"] == sum(len(cells[name]) for name in ("alone", "one surgery", "one street"))
    assert (
        f"Columns of different holders: of 5 records ({5 / len(rows):.1%}) the table links" in risk["meaning"]
    )
    assert (
        "all records with the same published values of all quasi-identifiers and the class have the same values"
        in risk["meaning"]
    )
    without = risk_fields(held_apart("street"), release)["risk"]
    assert without["linked"] == sum(len(cells[name]) for name in ("alone", "one surgery"))
    # Without other holders' values there is nothing to link.
    assert "linked" not in risk_fields(held_apart("street", "arrears", "code"), release)["risk"]


def test_vertical_jobs_say_what_their_tables_link() -> None:
    def notes(*left_out: str, **said: Any) -> str:
        return " ".join(notes_on(held_apart(*left_out, **said)))

    assert "of different holders are not linked (surgery; arrears; street)" in notes()
    assert "records have the same published values of all quasi-identifiers and the class" in notes()
    of_all = {"goal": "general", "model": {"lkc": {"L": "all", "K": "2", "C": "0.5"}}}
    assert (
        "with the same published values of all quasi-identifiers, the values of each holder are shuffled"
        in notes("transfused", **of_all)
    )
    assert "K does not bound" not in notes("transfused", **of_all)
    assert "are not linked" not in notes("street", "arrears", "code")
    task = held_apart()
    said = " ".join(task.mode.words(task, None)["protection"])
    assert (
        "or values of different holders (`risk.linked`), unless all records of the cell have the same values"
        in said
    )


def test_what_has_no_effect_is_said() -> None:
    def notes(**said: Any) -> str:
        task = jobs.task_of(job_of(**said))
        return " ".join(task.model.described(task).notes)

    assert "`link` has no effect" in notes(link=[["end", "disease", "treatment"]])


# ---- read by others

VALUES = {"disease": "abc", "treatment": "xyz", "end": "uv"}
SMALL: dict[str, Any] = {
    "age": COLUMNS["age"],
    **{
        name: {"role": "sensitive", "domain": list(values), "at_most": "1"} for name, values in VALUES.items()
    },
}


@given(
    st.lists(st.tuples(*(st.sampled_from(values) for values in VALUES.values())), min_size=1, max_size=7),
    st.sampled_from([PAIR, "none", [["disease", "end"]]]),
)
@settings(max_examples=examples(60))
def test_readers_find_what_the_definition_finds_block_by_block(
    rows: list[tuple[str, ...]], link: Any
) -> None:
    """And the holder what the definition finds of all columns together."""
    asked = {"K": "1", "C": "0.7", "ruled_out": "1", "diversity": "3"}
    task = jobs.task_of(job_of(asked, columns=SMALL, link=link))
    release = release_of(["age", *VALUES], [("[0,80)", *row) for row in rows])

    def met(blocks: Any) -> bool:
        names = list(VALUES)
        for block in blocks:
            columns = [Sensitive(VALUES[name], VALUES[name], Fraction(7, 10), 1) for name in block]
            own = [tuple(row[names.index(name)] for name in block) for row in rows]
            if not (tells_at_most(own, columns, 1) and is_diverse(own, columns, 3)):
                return False
        return True

    as_read = verify_release(release, task) is None
    assert as_read == met(blocks_of(task.job))
    try:
        require_linked(release, task)
        as_linked = as_read
    except PartyError:
        as_linked = False
    assert (as_linked and as_read) == met([list(VALUES)])
