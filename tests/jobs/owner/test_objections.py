"""The policy: nothing is allowed but what is listed, and every objection is named."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonymize.taxonomy import from_nested
from jobs.errors import Exit, PolicyError
from jobs.owner.charge import check_releases
from jobs.owner.ledger import ChargedJob, ChargedRun, PrivacyLedger
from jobs.owner.objections import allowance, check_policy
from jobs.owner.policy import Policy
from tests.support import jobs
from tests.support.clusters import joint_clusters
from tests.support.dp_jobs import dp_joint
from tests.support.samples import PARTIES, columns, joint_job, vertical_job

ME = PARTIES[0]
MIXING = {"disclosure": "leader", "columns": columns(job={"role": "plain"})}
ALLOWING: dict[str, Any] = {
    "coordinators": ("coordinator",),
    "parties": PARTIES[1:],
    "columns": {
        "patient": ("id",),
        "job": ("qid", "plain"),
        "age": ("qid",),
        "transfused": ("class",),
        "surgery": ("sensitive",),
    },
    "min_l": 2,
    "min_k": 2,
    "max_c": Fraction(1, 2),
    "disclosure": ("leader",),
}


def objections(me: str = ME, coordinator: str = "coordinator", job: Any = None, **changes: Any) -> list[str]:
    """Return the objections of a policy that allows the sample job, with some of its keys changed; a default
    for None.
    """
    fields = {key: value for key, value in {**ALLOWING, **changes}.items() if value is not None}
    task = jobs.task_of(job or joint_job())
    try:
        check_policy(Policy(**fields), task, me, coordinator)
        return []
    except PolicyError as error:
        problem = error.problem
    assert (problem.error_id, problem.exit_code, problem.party) == ("policy-refused", Exit.REFUSED, me)
    return problem.message.split("; ")


def test_what_is_listed_is_allowed() -> None:
    assert objections() == []
    assert objections(min_k=1, min_l=1, max_c=Fraction(1)) == []


@pytest.mark.parametrize(
    ("allowed", "asked", "says"),
    [
        (("sealed",), "strict", []),
        (("strict",), "strict", []),
        (("strict",), "sealed", ["disclosure sealed is not allowed, only strict (`policy.disclosure`)"]),
        (("leader",), "strict", ["disclosure strict is not allowed, only leader (`policy.disclosure`)"]),
    ],
)
def test_whoever_allows_sealed_runs_allows_strict_ones(allowed: Any, asked: str, says: list[str]) -> None:
    assert objections(job=joint_job(disclosure=asked), disclosure=allowed) == says


def test_an_empty_policy_refuses_everything() -> None:
    with pytest.raises(PolicyError) as caught:
        check_policy(Policy(), jobs.task_of(joint_job()), ME, "coordinator")
    said = caught.value.problem.message
    for part in ("coordinator may not start", "hospital-b may", "hospital-c may", "no LKC job is allowed"):
        assert part in said
    for name in columns():
        assert f"column {name} may not" in said
    assert "no C is allowed" in said
    assert "disclosure leader is not allowed" in said


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"coordinators": ("somebody",)}, "coordinator may not start jobs here (`policy.coordinators`)"),
        ({"parties": PARTIES[1:2]}, "hospital-c may not take part in a job with us (`policy.parties`)"),
        (
            {"columns": {**ALLOWING["columns"], "age": ("plain",)}},
            "column age may not be used as qid, only plain (`policy.columns`)",
        ),
        (
            {"columns": {**ALLOWING["columns"], "patient": ()}},
            "column patient may not be used as id (`policy.columns`)",
        ),
        ({"min_k": 3}, "K must be at least 3, not 2 (`policy.min_k`)"),
        ({"min_k": None}, "no LKC job is allowed (`policy.min_k` is unset)"),
        ({"min_l": 3}, "L must be at least 3, not 2 (`policy.min_l`)"),
        (
            {"max_c": Fraction(49, 100)},
            "sensitive column surgery: C must be at most 49/100, not 1/2 (`policy.max_c`)",
        ),
        ({"max_c": None}, "sensitive column surgery: no C is allowed (`policy.max_c` is unset)"),
        ({"disclosure": ("sealed",)}, "disclosure leader is not allowed, only sealed (`policy.disclosure`)"),
        ({"me": "hospital-z", "parties": PARTIES}, "hospital-z is not a party of the job"),
        ({"coordinator": "stranger"}, "stranger may not start jobs here (`policy.coordinators`)"),
    ],
)
def test_each_objection_alone(changes: dict[str, Any], says: str) -> None:
    assert objections(**changes) == [says]


def test_a_columns_own_c_is_what_counts() -> None:
    surgery = {"role": "sensitive", "domain": ["a", "b"], "C": "0.6"}
    job = joint_job(columns=columns(surgery=surgery), model={"lkc": {"L": "2", "K": "2", "C": "0.1"}})
    assert objections(job=job) == [
        "sensitive column surgery: C must be at most 1/2, not 3/5 (`policy.max_c`)"
    ]
    assert objections(job=job, max_c=Fraction(3, 5)) == []


@pytest.mark.parametrize(
    ("protected", "met"),
    [(["Rare"], True), (["Rare", "Knee"], False), (["Knee"], False), ([], True), (["no such value"], False)],
)
def test_values_that_a_job_must_protect(protected: list[str], met: bool) -> None:
    """The sample job protects `Rare` and leaves the others free."""
    said = objections(protected={"surgery": tuple(protected)})
    refused = "sensitive column surgery: values that must be protected are not (`policy.protected`)"
    assert said == ([] if met else [refused])


def test_the_owner_alone_reads_which_values_are_not_protected() -> None:
    policy = Policy(**{**ALLOWING, "protected": {"surgery": ("Rare", "Raer")}})
    with pytest.raises(PolicyError) as refused:
        check_policy(policy, jobs.task_of(joint_job()), ME, "coordinator")
    problem = refused.value.problem
    assert "Raer" not in problem.message
    assert problem.private == "not protected: surgery = 'Raer'; a value must be spelled as in the job"


def test_a_job_that_protects_all_values_protects_each() -> None:
    surgery = {"role": "sensitive", "domain": ["Heart", "Knee", "Rare"]}
    assert objections(job=joint_job(columns=columns(surgery=surgery)), protected={"surgery": ("Knee",)}) == []


@pytest.mark.parametrize(
    ("group", "value"),
    [("HIV", "HIV"), ("HIV", "HIV*"), ("Gefa\u0308\u00df", "Gef\u00e4\u00df")],
)
def test_a_protected_group_with_the_name_of_a_value_does_not_protect_the_value(
    group: str, value: str
) -> None:
    tree = {"Any": {group: ["Flu", "Cold"], "Rest": [*dict.fromkeys(["HIV", value])]}}
    printed = from_nested(tree, "surgery", missing_leaf=False).printed[1]
    surgery = {"role": "sensitive", "taxonomy": tree, "level": "1", "values": [printed]}
    job = joint_job(columns=columns(surgery=surgery))
    assert objections(job=job, protected={"surgery": (value,)}) == [
        "sensitive column surgery: values that must be protected are not (`policy.protected`)"
    ]


def test_a_policy_names_values_in_any_unicode_form() -> None:
    forms = [unicodedata.normalize("NFC", "Gefäß"), unicodedata.normalize("NFD", "Gefäß")]
    for in_job, in_policy in zip(forms, reversed(forms), strict=True):
        surgery = {"role": "sensitive", "domain": ["Heart", in_job], "values": [in_job]}
        job = joint_job(columns=columns(surgery=surgery))
        assert objections(job=job, protected={"surgery": (in_policy,)}) == []


SHARED = columns(transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "bank"})


@pytest.mark.parametrize(
    ("fields", "me"),
    [
        (joint_job(), ME),
        (joint_job(), PARTIES[1]),
        (joint_job(disclosure="sealed"), PARTIES[2]),
        (joint_job(secure_sum="ring"), ME),
        (joint_clusters(), ME),
        (dp_joint("horizontal"), ME),
        (dp_joint("horizontal", {"noise": "each"}), ME),
        (dp_joint("vertical"), ME),
        (vertical_job(), "loan"),
        (vertical_job(), "bank"),
        (vertical_job(columns=SHARED), "bank"),
    ],
)
def test_the_policy_that_allows_just_this_job(fields: dict[str, Any], me: str) -> None:
    """With it nothing is objected to; each of its settings is needed, but a bound that asks for nothing."""
    task = jobs.task_of(fields)
    settings = allowance(task, me, "coordinator")
    check_policy(Policy(**settings), task, me, "coordinator")
    needless = {
        "min_l",
        "min_common",
        "max_peer_ids",
        *(key for key, value in settings.items() if value == []),
    }
    for key in set(settings) - needless:
        with pytest.raises(PolicyError):
            check_policy(Policy(**{k: v for k, v in settings.items() if k != key}), task, me, "coordinator")


def test_every_objection_is_named_at_once() -> None:
    assert len(objections(min_k=99, min_l=99, disclosure=(), coordinators=())) == 4


@pytest.mark.parametrize(
    ("job", "changes", "says"),
    [
        ({"disclosure": "sealed", "leader": "hospital-b", "deputy": "hospital-c"}, {}, "compute pair"),
        (
            {"disclosure": "sealed", "leader": "hospital-b", "deputy": "hospital-c"},
            {"pairs": [PARTIES[:2]]},
            "pair",
        ),
        (
            {"disclosure": "sealed", "leader": "hospital-b", "deputy": "hospital-c"},
            {"pairs": [PARTIES[1:]]},
            "",
        ),
        (
            {"disclosure": "sealed", "leader": "hospital-b", "deputy": "hospital-c"},
            {"pairs": [PARTIES[:0:-1]]},
            "",
        ),
        ({"disclosure": "sealed", "leader": "hospital-b", "deputy": ME}, {}, ""),
        (
            {"disclosure": "sealed", "leader": "hospital-b", "deputy": ME},
            {"leaders": []},
            "hospital-b may not lead",
        ),
        ({**MIXING, "leader": "hospital-b", "deputy": "hospital-c"}, {"leaders": ["hospital-b"]}, "pair"),
        ({**MIXING, "leader": "hospital-b", "deputy": ME}, {"leaders": ["hospital-b"]}, ""),
        ({"disclosure": "leader", "leader": "hospital-b"}, {"leaders": ["hospital-b"]}, ""),
        ({"disclosure": "leader", "leader": "hospital-c"}, {}, "hospital-c may not lead"),
        ({"disclosure": "leader", "leader": "hospital-c"}, {"leaders": ["hospital-c"]}, ""),
        ({"disclosure": "leader"}, {"leaders": []}, ""),
        ({"disclosure": "leader", "secure_sum": "ring"}, {}, "counts may not be summed by secure_sum ring"),
        ({"disclosure": "leader", "secure_sum": "ring"}, {"secure_sum": ["masked", "ring"]}, ""),
        ({"disclosure": "leader"}, {"secure_sum": ["ring"]}, "counts may not be summed by secure_sum masked"),
    ],
)
def test_who_computes_and_how(job: dict[str, Any], changes: dict[str, Any], says: str) -> None:
    said = objections(job=joint_job(**job), disclosure=("sealed", "leader"), **changes)
    assert len(said) == bool(says)
    assert says in "".join(said)


def test_a_policy_may_pin_jobs() -> None:
    task = jobs.task_of(joint_job())
    assert objections(jobs=[task.digest.hex()]) == []
    for pinned in ([], ["0" * 64]):
        assert objections(jobs=pinned) == []  # the job waits for the owner
        assert objections(jobs=pinned, approval="automatic") == [
            f"job {task.digest.hex()} is not among the pinned jobs (`policy.jobs`)"
        ]
    assert objections(jobs=[task.digest.hex()], min_k=3) == ["K must be at least 3, not 2 (`policy.min_k`)"]
    with pytest.raises(ValueError, match="jobs"):
        Policy(jobs=("not a digest",))


DP: dict[str, Any] = {"disclosure": ("sealed",), "max_epsilon": Fraction(1), "max_rows": 1000}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, []),
        ({"min_k": None, "max_c": None, "min_l": 9}, []),  # what is said of LKC jobs does not matter
        ({"max_epsilon": None}, ["no DP job is allowed (`policy.max_epsilon` is unset)"]),
        (
            {"max_epsilon": Fraction(99, 100)},
            ["epsilon must be at most 99/100, not 1 (`policy.max_epsilon`)"],
        ),
        ({"disclosure": ()}, ["disclosure sealed is not allowed (`policy.disclosure`)"]),
        ({"max_rows": 1001}, ["max_rows must be at least 1001, our own bound, not 1000 (`policy.max_rows`)"]),
        ({"max_rows": 1}, []),
        ({"noise": ("each",)}, ["counts may not get noise of kind joint, only each (`policy.noise`)"]),
        ({"noise": ("joint", "each")}, []),
    ],
)
def test_dp_jobs(changes: dict[str, Any], says: list[str]) -> None:
    assert objections(job=dp_joint("horizontal"), **{**DP, **changes}) == says


def test_noise_of_each_wherever_a_job_may_come_to_it() -> None:
    for job in (dp_joint("horizontal", {"noise": "each"}), dp_joint("vertical", {"engine": "thesis"})):
        said = objections(job=job, **DP, match_ids=True)
        assert said == ["counts may not get noise of kind each, only joint (`policy.noise`)"]


def test_a_policy_for_lkc_allows_no_dp_job() -> None:
    assert "no DP job is allowed (`policy.max_epsilon` is unset)" in objections(job=dp_joint("horizontal"))


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_lkc_releases_are_counted_with_the_data_set(tmp_path: Path, limit: int) -> None:
    ledger, policy = PrivacyLedger(tmp_path / "ledger", "patients"), Policy(max_lkc_releases=limit)
    for done in range(3):
        if done < limit:
            check_releases(ledger.entries(), policy.max_lkc_releases)
        else:
            with pytest.raises(PolicyError) as caught:
                check_releases(ledger.entries(), policy.max_lkc_releases)
            assert caught.value.problem.exit_code == Exit.REFUSED
            assert str(done) not in caught.value.problem.message
        run = ChargedRun(ChargedJob("lkc", f"job-{done}", bytes(32)), bytes([done] * 16), bytes([done] * 32))
        ledger.charge_run(run, lambda history: None)


@pytest.mark.parametrize(
    "job",
    [
        joint_job(disclosure="leader", secure_sum="ring"),
        joint_job(**MIXING, leader="hospital-b", deputy="hospital-c"),
        dp_joint("horizontal"),
        dp_joint("vertical", {"engine": "thesis"}),
    ],
)
def test_each_objection_names_its_key(job: dict[str, Any]) -> None:
    """So that an owner finds what refused a job."""
    changes = {
        "approval": "automatic",
        "coordinators": (),
        "jobs": (),
        "columns": {},
        "leaders": (),
        "require_insider": True,
    }
    named = set()
    for each in objections(me=PARTIES[0], job=job, **changes, parties=(), min_l=9, min_k=9, disclosure=()):
        key = re.search(r"\(`policy\.(\w+)`[^()]*\)$", each)
        assert key is not None, each
        named.add(key[1])
    assert {"coordinators", "jobs", "columns", "disclosure"} < named <= set(Policy.model_fields)
