"""The sentences of an LKC report: each job is told what holds for it, and nothing that does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from anonymize.scores.names import OF_GOAL
from jobs.lkc.entries import entries_of
from jobs.lkc.sentences import notes_on, promises_of, verified_words
from tests.support import jobs
from tests.support.samples import AS_IT_IS, PARTIES, columns, joint_job, single_job, vertical_job

A, B, C = PARTIES


def protection(fields: Mapping[str, Any]) -> str:
    task = jobs.task_of(fields)
    return " ".join(task.mode.words(task, None)["protection"])


def test_under_a_leader_its_knowledge_is_told() -> None:
    said = protection(joint_job(leader=C, score="infogain"))
    assert f"The leader, {C}, learned the global counts of every candidate" in said
    assert "All parties learned" not in said
    said = protection(joint_job(leader=C))
    assert (
        f"The leader, {C}, learned class counts of a candidate's children in every context of its node, "
        in said
    )
    assert (
        "All parties learned of each node that appeared whether it was a candidate, and its split point"
        in said
    )
    assert "garbled" not in said
    assert "ring" not in said
    ring = protection(joint_job(secure_sum="ring"))
    assert "the two neighbours of a party together learn the party's counts" in ring


def test_sealed_the_pair_is_named() -> None:
    said = protection(joint_job(disclosure="sealed", leader=B, deputy=C))
    assert f"at {B} and at {C} (the compute pair)" in said
    assert "learned the global counts" not in said


def test_what_values_never_taken_tell_depends_on_the_score() -> None:
    tells = {
        score: protection(joint_job(disclosure="sealed", goal=goal, score=score))
        for goal in ("classification", "general")
        for score in OF_GOAL[goal]
    }
    assert "tells the classes apart" in tells["infogain"]
    assert "lie in a single cell of its grid" in tells["groups"]
    assert "adds to what the table tells about the class" in tells["added"]
    assert "tells the classes apart, or some child has too few records" in tells["tdr"]
    for score, said in tells.items():
        assert ("lie in a single cell of its grid" in said) == (score in ("groups", "records"))
        assert ("of each node that appeared whether it was a candidate" in said) == (
            score in ("added", "tdr")
        )
        assert ("the order of the candidates before their turns" in said) == (score == "infogain")


def test_who_can_subtract_what_depends_on_their_number() -> None:
    assert "Any 2 parties together know the contribution of the remaining party" in protection(joint_job())
    two = {name: {"address": "127.0.0.1:7401"} for name in (A, B)}
    said = protection(joint_job(disclosure="sealed", parties=two))
    assert "With two parties, each party learns the generalized table of its peer" in said
    assert "together know" not in said


def test_rows_with_plain_columns_are_mixed() -> None:
    counted = protection(joint_job())
    assert "No party sent a row or an uncombined count" in counted
    assert "the sum of all parties' counts: no row carries its origin" in counted
    for deliver, to in (("all", "every party"), ("coordinator", "the coordinator")):
        said = protection(joint_job(columns=columns(patient=AS_IT_IS), deliver=deliver))
        assert "No party sent an uncombined count" in said
        assert f"{to} received the generalized rows themselves" in said
        assert f"to {B}, masked, in slots that {A} drew" in said
        assert ("sealed to its key" in said) == (deliver == "coordinator")
        assert f"no row carries its origin, as long as {A} and {B} do not collude" in said
        assert f"{A} learned how many rows each party has" in said


@pytest.mark.parametrize("insider", [True, False])
def test_insiders(insider: bool) -> None:
    said = protection(vertical_job(**({"insider": "true"} if insider else {})))
    assert ("in every cell no protected value is above its C." in said) == insider
    assert ("would hold every cell to C" in said) == (not insider)


def test_why_candidates_fail_follows_from_what_is_asked() -> None:
    distinct = {"requirements": [{"K": "2", "distinct": {"surgery": "2"}}]}
    said = protection(vertical_job(model=distinct))
    assert "above its C" not in said
    assert "smaller than K, or in some finer group too few values of a sensitive column are different" in said
    assert "would hold every cell to `distinct`." in said
    said = protection(vertical_job(model=distinct, insider="true"))
    assert "in every cell sensitive values are as many as `distinct` asks." in said
    both = {"requirements": [{"K": "2", "C": "0.5", "distinct": {"surgery": "2"}}]}
    said = protection(vertical_job(model=both))
    assert "in some finer group a protected value is above its C or too few values" in said
    assert "would hold every cell to C and `distinct`." in said
    ruled = {"requirements": [{"K": "2", "C": "0.5", "ruled_out": "1", "diversity": "3"}]}
    said = protection(vertical_job(model=ruled))
    assert (
        "after a second value is ruled out (`ruled_out`) or a protected value is certain (`diversity`)."
        in said
    )
    assert "would hold every cell to C and `ruled_out` and `diversity`." in said
    said = protection(vertical_job(model=ruled, insider="true"))
    assert (
        "above its C and no protected value is above its C after a second value is ruled out and no protected "
        "value is certain" in said
    )
    assert "each holder separately" not in said
    both = columns(arrears={"role": "sensitive", "domain": ["a", "b", "c"], "values": ["a"]})
    held = {"loan": {"columns": ["job", "arrears"]}, "bank": {"columns": ["age", "surgery"]}}
    said = protection(vertical_job(model=ruled, columns=both, parties=held))
    assert "columns of each holder separately (surgery; arrears)" in said
    none = protection(vertical_job(model=lkc(C="1")))
    assert "Only the owner of a discarded candidate knows it:" in none
    assert "No requirement bounds inferences about sensitive columns." in none


def test_many_covered_requirements_are_told_in_a_line() -> None:
    entries = [{"K": str(k), "C": "0.5"} for k in range(10, 1, -1)]
    (note,) = [
        each
        for each in notes_on(jobs.task_of(single_job(model={"requirements": entries})))
        if "follow" in each
    ]
    assert note.startswith("8 of 9 requirements follow from stricter requirements")
    few = [
        each
        for each in notes_on(jobs.task_of(single_job(model={"requirements": entries[:3]})))
        if "follow" in each
    ]
    assert len(few) == 2


def test_k_of_people_is_told_of_each_requirement() -> None:
    model = {"requirements": [{"K": "5", "C": "0.5"}, {"columns": ["age"], "K": "9"}], "unit": "person"}
    said = verified_words(jobs.task_of(single_job(model=model, columns=columns(patient={"role": "id"}))))
    assert "at least K=5 for any of the quasi-identifiers; K=9 for any of age different people" in said


def test_who_tells_the_class() -> None:
    assert "All parties hold the class (transfused)" in protection(vertical_job())
    given = {"role": "class", "domain": ["Y", "N"], "shared_by": "loan"}
    said = protection(vertical_job(columns=columns(transfused=given)))
    assert "loan gave the class (transfused) of every matched person" in said
    none = protection(vertical_job(goal="general", columns=columns(transfused=None)))
    assert "The job has no class." in none


def test_how_scores_were_compared() -> None:
    sealed, told = protection(vertical_job()), protection(vertical_job(disclosure="leader"))
    assert "Scores were compared inside a garbled circuit of loan and bank" in sealed
    assert "told all parties its best score" not in sealed
    assert "told all parties its best score in every iteration" in told
    assert "garbled" not in told


def effective_l(fields: Mapping[str, Any]) -> int:
    (entry,) = entries_of(jobs.task_of(fields).job)
    return entry.known


def lkc(**changes: str) -> dict[str, Any]:
    return {"lkc": {"L": "2", "K": "2", "C": "0.5", **changes}}


def test_a_job_without_surprises_needs_no_notes() -> None:
    assert notes_on(jobs.task_of(single_job())) == []
    assert effective_l(single_job(model=lkc(L="1"))) == 1


def test_an_l_above_the_number_of_columns_is_told() -> None:
    assert effective_l(single_job(model=lkc(L="3"))) == 2
    (note,) = notes_on(jobs.task_of(single_job(model=lkc(L="3"))))
    assert note.startswith("L=3 is more than the 2 quasi-identifiers")


def test_a_c_that_bounds_nothing_is_told() -> None:
    bare = columns(surgery=None)
    (note,) = notes_on(jobs.task_of(single_job(columns=bare)))
    assert "bounds nothing: no column has `role: sensitive`" in note
    assert notes_on(jobs.task_of(single_job(columns=bare, model=lkc(C="1")))) == []


ANATOMY = {"release": "anatomy", "quasi": "exact"}
TWO = columns(outcome={"role": "sensitive", "domain": ["Home", "Died"], "C": "1/3"})
LIST = [{"columns": ["age"], "K": "9"}, {"C": "0.5", "distinct": {"surgery": "2"}}]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            single_job(model=lkc(L="1", K="20", C="0.105")),
            [
                "no reader who knows 1 of the 2 quasi-identifiers of a person in the table finds fewer than 20 "
                "matching records, or infers surgery = Rare with confidence above 10.5 %"
            ],
        ),
        (
            single_job(model=lkc(L="all", C="1"), columns=columns(surgery=None)),
            [
                "no reader who knows all 2 quasi-identifiers of a person in the table finds fewer than 2 matching "
                "records"
            ],
        ),
        (
            single_job(model=lkc(K="1"), columns=TWO),
            [
                "no reader who knows all 2 quasi-identifiers of a person in the table infers surgery = Rare with "
                "confidence above 50 %, or infers any single value of outcome with confidence above 1/3"
            ],
        ),
        (
            single_job(model={"requirements": LIST}),
            [
                "no reader who knows age of a person in the table finds fewer than 9 matching records",
                "no reader who knows all 2 quasi-identifiers of a person in the table infers surgery = Rare with "
                "confidence above 50 %; every group of records that match has at least 2 different values of surgery",
            ],
        ),
        (
            single_job(model={"requirements": [{"distinct": {"surgery": "2"}}]}),
            ["every group of records that match has at least 2 different values of surgery"],
        ),
        (
            single_job(**ANATOMY, goal="general", model=lkc(L="all"), columns=columns(transfused=None)),
            [
                "no reader who knows all 2 quasi-identifiers of a person in the table finds a group of fewer than 2 "
                "records, or infers surgery = Rare with confidence above 50 %"
            ],
        ),
    ],
)
def test_what_readers_cannot_do(fields: Mapping[str, Any], said: list[str]) -> None:
    assert promises_of(jobs.task_of(fields)) == said


def test_holders_of_a_joint_table_are_left_out() -> None:
    for fields in (joint_job(), vertical_job()):
        (said,) = promises_of(jobs.task_of(fields))
        assert said.startswith("no reader outside the holders who knows ")


def test_a_bound_is_never_rounded() -> None:
    (said,) = promises_of(jobs.task_of(single_job(model=lkc(C="0.33333"))))
    assert said.endswith("confidence above 33333/100000")


def test_many_protected_values_are_not_listed() -> None:
    many = columns(surgery={"role": "sensitive", "domain": list("abcde"), "values": list("abcd")})
    (said,) = promises_of(jobs.task_of(single_job(columns=many)))
    assert "infers a single protected value of surgery with" in said
    few = columns(surgery={"role": "sensitive", "domain": list("abcde"), "values": ["a", "b"]})
    (said,) = promises_of(jobs.task_of(single_job(columns=few)))
    assert "infers a single protected value of surgery (a, b) with" in said
