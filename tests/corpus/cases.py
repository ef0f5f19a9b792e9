"""The jobs of the corpus: each mode, score, option, form of release and partition occurs, on small tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.blocks import COLUMNS as BLOCKS
from tests.support.blocks import job_of, rows_of
from tests.support.clusters import joint_clusters, single_clusters
from tests.support.dp_jobs import dp_joint, dp_single
from tests.support.joint import sample_rows
from tests.support.samples import AS_IT_IS, PARTIES, columns, joint_job, single_job, vertical_job
from tests.support.synthetic_jobs import general, synthetic_joint, synthetic_single
from tests.support.wards import joint_wards_job, sets_job, wards_job

Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Case:
    """A job, and the rows of everybody together.

    more:  options of the command that runs it.
    """

    fields: Mapping[str, Any]
    rows: Rows
    more: tuple[str, ...] = ()

    def tables(self) -> dict[str, Rows]:
        """Return who has which rows: dealt out, or in vertical jobs all of them at everybody."""
        roster = tuple(self.fields.get("parties", ()))
        if self.fields["partition"] == "horizontal":
            return {name: self.rows[i :: len(roster)] for i, name in enumerate(roster)}
        return dict.fromkeys(roster or ("table",), self.rows)


SAMPLE = sample_rows(80)
PEOPLE = [{**row, "patient": str(i // 2)} for i, row in enumerate(SAMPLE)]
ROOMS = rows_of(60, 2)
GENERAL: Mapping[str, Any] = {"goal": "general"}
NO_CLASS = columns(transfused={"role": "sensitive", "domain": ["Y", "N"]})
TAXONOMY = {"Any": {"Blue": ["Janitor", "Mover"], "White": ["Lawyer"]}}
AGE = {"numeric": {"min": "0", "max": "100", "step": "10"}}
TWO = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate(PARTIES[:2], 1)}
THREE = {
    "loan": {"address": "127.0.0.1:7401", "columns": ["job"]},
    "bank": {"address": "127.0.0.1:7402", "columns": ["age"]},
    "clinic": {"address": "127.0.0.1:7403", "columns": ["surgery"]},
}
SURGERIES = {"Any": {"Trunk": ["Heart"], "Limb": {"Leg": ["Knee"], "Other": ["Rare"]}}}


def lkc(**asked: Any) -> dict[str, Any]:
    """Return the settings of an LKC job."""
    return {"lkc": {"L": "2", "K": "2", "C": "0.5", **asked}}


def qid(**changes: Any) -> dict[str, Any]:
    """The sample columns with another job column."""
    return columns(job={"role": "qid", "taxonomy": TAXONOMY, **changes})


def sensitive(**changes: Any) -> dict[str, Any]:
    """The sample columns with another sensitive column."""
    return columns(surgery={"role": "sensitive", "domain": ["Heart", "Knee", "Rare"], **changes})


def rooms(lkc: Mapping[str, str] | None = None, **changes: Any) -> Case:
    """A job about several sensitive columns."""
    return Case(job_of(lkc, **changes), ROOMS)


def joint_rooms(**changes: Any) -> Case:
    """The same of three parties."""
    model = {"lkc": {"L": "all", "K": "4", "C": "0.8"}}
    kd = {"method": "kd", "goal": "general", "disclosure": "sealed", "model": model}
    without = {name: column for name, column in BLOCKS.items() if name != "paid"}
    return Case(joint_job(**{**kd, "columns": without, **changes}), ROOMS)


def readings(n: int = 24) -> Rows:
    """Movements between wards by the hour."""
    wards = ("ER", "ICU", "XR")
    return [
        {
            "tag": str(i // 3),
            "ward": wards[(i * i + i // 5) % 3],
            "at": str((i % 3) * 2 + i % 2),
            "dx": "HIV" if i // 3 % 4 == 0 else "flu",
        }
        for i in range(n)
    ]


SETS = [{"codes": ";".join(sorted(set("abcd"[i % 4] + "abcd"[i // 4 % 4]))), "dx": "flu"} for i in range(24)]


def single(*, rows: Rows = SAMPLE, more: tuple[str, ...] = (), **changes: Any) -> Case:
    """A job of one holder."""
    return Case(single_job(**changes), rows, more)


def joint(*, rows: Rows = SAMPLE, **changes: Any) -> Case:
    """A sealed job of three parties."""
    return Case(joint_job(**{"disclosure": "sealed", **changes}), rows)


def vertical(**changes: Any) -> Case:
    """A job of two holders of columns."""
    return Case(vertical_job(**changes), SAMPLE)


def _lkc_cases() -> dict[str, Case]:
    protected = {"values": ["Rare"]}
    return {
        "classification": single(),
        "infogain": single(score="infogain"),
        "tdr": single(score="tdr"),
        "contexts cells": single(contexts="cells"),
        "general": single(**GENERAL),
        "records": single(**GENERAL, score="records"),
        "refine child": single(score="infogain", columns=qid(refine="child")),
        "suppress": single(columns=columns(job={"role": "qid", "suppress": ["Janitor", "Mover", "Lawyer"]})),
        "missing leaf": single(
            rows=[*SAMPLE, {**SAMPLE[0], "patient": "80", "surgery": ""}],
            columns=sensitive(missing="leaf", **protected),
        ),
        "missing drop": single(
            rows=[*SAMPLE, {**SAMPLE[0], "patient": "80", "job": ""}], columns=qid(missing="drop")
        ),
        "plain": single(columns=columns(patient=AS_IT_IS)),
        "distinct": single(model=lkc(distinct={"surgery": "2"})),
        "diversity": single(model=lkc(diversity="2")),
        "diversity of three": single(model=lkc(diversity="3"), columns=sensitive(values=["Rare", "Heart"])),
        "closeness": single(model=lkc(t="0.3", K="4", C="1")),
        "closeness in order": single(
            model=lkc(t="0.3", K="4", C="1"),
            columns=columns(age={**AGE, "role": "sensitive", "distance": "ordered"}),
        ),
        "ruled out": single(model=lkc(ruled_out="1")),
        "persons": single(model={**lkc(), "unit": "person"}, rows=PEOPLE),
        "colluders": single(
            model=lkc(colluders="1", C="1"),
            columns=columns(holder={"role": "party", "domain": ["a", "b"]}),
            rows=[{**row, "holder": "ab"[i % 2]} for i, row in enumerate(SAMPLE)],
        ),
        "two requirements": single(
            model={
                "requirements": [
                    {"L": "1", "K": "8"},
                    {"L": "2", "K": "2", "C": "0.6", "columns": ["job", "age"]},
                ]
            }
        ),
        "withhold": single(withhold="1/10", model=lkc(K="6")),
        "level": single(
            columns=columns(
                surgery={"role": "sensitive", "taxonomy": SURGERIES, "level": "1", "values": ["Limb"]}
            ),
            model=lkc(C="1"),
        ),
        "category": single(
            columns=columns(
                surgery={
                    "role": "sensitive",
                    "taxonomy": SURGERIES,
                    "level": "1",
                    "publish": "category",
                    "values": ["Limb"],
                }
            ),
            model=lkc(C="1"),
        ),
        "dates": single(
            columns=columns(
                age={"role": "qid", "dates": {"from": "2020-01-01", "to": "2021-01-01", "step": "1mo"}}
            ),
            rows=[{**row, "age": f"2020-{1 + int(row['age']) % 12:02}-05"} for row in SAMPLE],
        ),
        "clusters": Case(single_clusters(), SAMPLE),
        "kd": rooms(),
        "kd median": rooms(split="median"),
        "nothing linked": rooms(
            link="none", columns={name: c for name, c in BLOCKS.items() if name != "paid"}
        ),
        "blocks": rooms({"C": "0.8"}, link=[["disease", "end"]]),
        "top-down blocks": rooms({"C": "0.8"}, method="top-down", link=[["disease", "end"]]),
        "anatomy": rooms({"C": "0.8"}, release="anatomy", link=[["disease", "end"]]),
        "exact anatomy": rooms({"C": "0.8"}, release="anatomy", quasi="exact"),
    }


def _joint_lkc_cases() -> dict[str, Case]:
    return {
        "leader": joint(disclosure="leader"),
        "leader general": joint(disclosure="leader", **GENERAL),
        "sealed": joint(),
        "sealed infogain": joint(score="infogain"),
        "sealed general": joint(**GENERAL, columns=NO_CLASS),
        "sealed records": joint(**GENERAL, score="records"),
        "sealed child": joint(columns=qid(refine="child"), score="infogain"),
        "strict": joint(disclosure="strict", **GENERAL),
        "two parties": joint(parties=TWO, leader=PARTIES[0]),
        "leader ring": joint(disclosure="leader", secure_sum="ring"),
        "joint colluders": joint(model=lkc(colluders="1", C="1", K="3")),
        "joint distinct": joint(model=lkc(distinct={"surgery": "2"})),
        "joint diversity": joint(model=lkc(diversity="2")),
        "joint persons": joint(model={**lkc(), "unit": "person"}, rows=PEOPLE),
        "joint plain": joint(columns=columns(patient=AS_IT_IS)),
        "to the coordinator": joint(deliver="coordinator", columns=columns(patient=AS_IT_IS)),
        "joint clusters": Case(joint_clusters(), SAMPLE),
        "joint kd": joint_rooms(),
        "joint anatomy": joint_rooms(release="anatomy"),
        "joint blocks": joint_rooms(link=[["disease", "end"]]),
        "vertical": vertical(),
        "vertical general": vertical(**GENERAL),
        "vertical insider": vertical(insider="true", model=lkc(C="0.8")),
        "vertical of three": vertical(parties=THREE),
    }


def _dp_cases() -> dict[str, Case]:
    items = columns(job={"role": "qid", "set": {"taxonomy": TAXONOMY}})
    return {
        "dp": Case(dp_single(), SAMPLE),
        "dp as records": Case(dp_single(), SAMPLE, ("--as-records",)),
        "dp infogain": Case(dp_single({"utility": "infogain"}), SAMPLE),
        "dp sets": Case(dp_single(columns=items), SAMPLE),
        "dp horizontal": Case(dp_joint("horizontal"), SAMPLE),
        "dp noise of each": Case(dp_joint("horizontal", {"noise": "each"}), SAMPLE),
        "dp thesis": Case(dp_joint("horizontal", {"engine": "thesis", "max_rows": "30"}), SAMPLE[:30]),
        "dp vertical": Case(dp_joint("vertical"), SAMPLE),
        "synthetic": Case(synthetic_single(), SAMPLE),
        "synthetic of columns": Case(synthetic_single({"edges": "0"}), SAMPLE),
        "synthetic auto": Case(synthetic_single({"edges": "auto"}), SAMPLE),
        "synthetic general": Case(general(), SAMPLE),
        "synthetic horizontal": Case(synthetic_joint("horizontal"), SAMPLE),
        "synthetic vertical": Case(synthetic_joint("vertical"), SAMPLE),
    }


def _sequence_cases() -> dict[str, Case]:
    joint = joint_wards_job
    return {
        "sequences": Case(wards_job(), readings()),
        "sequences global": Case(wards_job({"suppress": "global"}), readings()),
        "sequences frequent": Case(
            wards_job({"suppress": "global", "cost": "frequent", "frequent": "1/4"}), readings()
        ),
        "sequences first": Case(wards_job({"places": "first"}), readings()),
        "sequences arrivals": Case(wards_job({"stays": "arrivals"}), readings()),
        "sequences repaired": Case(wards_job({"exclusion": "repair"}), readings()),
        "sets": Case(sets_job(), SETS),
        "sequences of two": Case(joint(), readings(36)),
    }


_GROUPS: tuple[Callable[[], dict[str, Case]], ...] = (
    _lkc_cases,
    _joint_lkc_cases,
    _dp_cases,
    _sequence_cases,
)
CASES: Mapping[str, Case] = {name: case for group in _GROUPS for name, case in group().items()}
SLOW = frozenset({"dp thesis"})
"""Left to `make test-all`: Paillier of full size."""
