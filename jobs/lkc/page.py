"""What the page of an LKC report shows: the cut of every column, groups, risk in the literature's words, worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonymize.table import QidColumn
from jobs.data.counted import counted, noun
from jobs.lkc.entries import entries_of, greatest_k
from jobs.pages.blocks import Block, Fact, Facts, Opening, Part, Rows, Section, Sentences, Told
from jobs.pages.pictures import of_counts, of_cut, of_sizes
from jobs.pages.words import number, share
from jobs.task import Task

_REASONS: Mapping[str, str] = {
    "leaf": "is as fine as the job's values are",
    "empty": "has no record",
    "one child": "has one value below it, and splitting it would tell nothing",
    "one value": "has records of one finer value only, so splitting it would tell nothing",
    "no gain": "would tell nothing about the class if it were split",
    "adds nothing": "would tell no more about the class than chance does, beside what the table tells already",
}
_BROKEN: Mapping[str, str] = {
    "K": "would leave fewer than K records in a group",
    "C": "would let somebody be more certain than C of a value of {sensitive}",
    "distinct": "would leave a group with too few different values of {sensitive}",
    "diversity": "would let values of {sensitive} be told for certain, or ruled out too far",
    "ruled_out": "would let somebody who rules values out be more certain than C",
    "t": "would move the shares of {sensitive} in a group too far from the table's",
    "colluders": "would break the requirement for what colluding parties are left with",
}
_FREED: Mapping[str, str] = {
    "K": "a smaller K, fewer columns that somebody knows (L), or fewer quasi-identifiers",
    "C": "a greater C, a smaller L, or fewer protected values",
    "distinct": "a smaller `distinct`, or a smaller L",
    "diversity": "a smaller `diversity`, or a smaller L",
    "ruled_out": "a smaller `ruled_out`, a greater C, or a smaller L",
    "t": "a greater t, or a smaller L",
    "colluders": "fewer `colluders`, a smaller K, or a smaller L",
}
_MOST_NAMED = 8
"""Values that a sentence names."""


def told(task: Task, report: Mapping[str, Any]) -> Told:
    """What the page says of an LKC report."""
    sections = [_columns(task, report), _groups(report), _risk(task, report), _worth(task, report)]
    return Told(_opening(task, report), sections, _GLOSSARY)


def _opening(task: Task, report: Mapping[str, Any]) -> Opening:
    rows, alone, lost = report["rows"], report["risk"]["unique"], _mean_loss(report)
    whose = counted(len(task.job.roster), "party", "parties") if task.job.roster else "one holder"
    smallest = min(each["smallest_group"] for each in report["requirements"])
    away = "of what quasi-identifiers said, on average"
    worth = [] if lost is None else [Fact("Generalized away", share(lost), away)]
    figures = [
        Fact("Records", number(rows), "rows of the published table"),
        Fact("Smallest group", number(smallest), f"records or more are found by who knows {_known(report)}"),
        *worth,
        Fact("Unique", number(alone), "records unlike any other in all quasi-identifiers", alone > 0),
    ]
    return Opening(
        f"{counted(rows, 'record', 'records')} of {whose}, generalized so that a few known facts do not tell a "
        "person from others, nor a protected value of anybody.",
        figures,
        [f"Checked: {report['verified']}."],
    )


def _known(report: Mapping[str, Any]) -> str:
    requirements = report["requirements"]
    most = max(each["L"] for each in requirements)
    least = min(len(each["columns"]) for each in requirements)
    if len(requirements) > 1:
        return "what one of the requirements allows"
    return "all quasi-identifiers" if most >= least else f"at most {most} of the {least} quasi-identifiers"


def _columns(task: Task, report: Mapping[str, Any]) -> Section:
    """A part for each column of the table that is not as it was."""
    published, losses = report["published"], report["metrics"].get("generalization_loss", {})
    qid = {column.name: column for column in task.qid}
    return Section(
        "What the table tells of each column",
        [
            Sentences(
                [
                    "How fine a column is published, and how many records have each value, counted in the table."
                ]
            ),
        ],
        [Part(name, _of_column(report, qid.get(name), name, losses.get(name))) for name in published],
    )


def _of_column(
    report: Mapping[str, Any], column: QidColumn | None, name: str, loss: float | None
) -> list[Block]:
    found, rows = report["published"][name], report["rows"]
    stopped = [_stopped_words(each) for each in report.get("stopped", {}).get(name, ())]
    why = [Sentences(stopped, listed=True)] if stopped else []
    if found["values"] == 1:
        return [Sentences([f"Every record has the same value: {next(iter(found['most_frequent']))}."]), *why]
    cut = report.get("cut", {}).get(name)
    picture = of_counts(found, rows) if column is None or cut is None else of_cut(column, cut, found, rows)
    return [*([] if loss is None else [Sentences([_loss_words(loss)])]), picture, *why]


def _loss_words(loss: float) -> str:
    if loss == 0:
        return "Published as fine as the job's values are."
    return f"{share(loss)} of what it said is generalized away (0 %: raw values; 100 %: one value for all)."


def _stopped_words(stopped: Mapping[str, Any]) -> str:
    """Why some values are not finer, and what would free them."""
    values, reason = stopped["values"], stopped["reason"]
    names = _first(values)
    which = f"Any of {names}" if len(values) > 1 else names
    if reason not in _BROKEN:
        return f"{names}: {noun(len(values), 'it', 'each')} {_REASONS[reason]}."
    broken = _BROKEN[reason].format(sensitive=stopped.get("sensitive", "sensitive columns"))
    n = stopped["columns"]
    whom = f"for somebody who knows {counted(n, 'column', 'columns')} of a person"
    return f"{which}: splitting it {broken}, {whom}. What would free it: {_FREED[reason]}."


def _groups(report: Mapping[str, Any]) -> Section:
    return Section(
        "Groups",
        [
            of_sizes(report["risk"]["sizes"], report["rows"]),
            Sentences([report["risk"]["meaning"]]),
        ],
    )


def _risk(task: Task, report: Mapping[str, Any]) -> Section:
    """The attackers of the literature (El Emam), who know all quasi-identifiers; and the one whom the job assumes."""
    k = greatest_k(entries_of(task.job))
    chance = max(1 / each["smallest_group"] for each in report["requirements"])
    assumed = Fact(
        "Who knows what the job assumes",
        share(chance),
        f"the greatest chance to pick a person's record for who knows {_known(report)}; K={k} allows {share(1 / k)}",
    )
    return Section("Risk", [Facts([assumed, *_attackers(report, k)]), *_inference(report)])


def _attackers(report: Mapping[str, Any], k: int) -> list[Fact]:
    risk, smallest = report["risk"], report["risk"]["smallest"]
    matched = sum(each["groups"] for each in risk["sizes"]) / report["rows"]
    return [
        Fact(
            "Prosecutor, highest",
            share(1 / smallest),
            "the chance to pick, by all quasi-identifiers, the record of somebody who is known to be in the table "
            "and is in the smallest group",
            smallest < k,
        ),
        Fact(
            "Prosecutor, above 1/K",
            share(risk["below_k_share"]),
            f"of the records are in groups of fewer than {k} on all quasi-identifiers",
            risk["below_k"] > 0,
        ),
        Fact(
            "Journalist",
            f"at most {share(1 / smallest)}",
            "the same where it is not known who is in the table: less, by as many people outside it as look alike, "
            "of whom this report knows nothing",
        ),
        Fact(
            "Marketer",
            share(matched),
            "of all records would be matched rightly, on average, by who matches everybody by all quasi-identifiers",
        ),
        Fact(
            "Unique",
            f"{number(risk['unique'])} ({share(risk['unique_share'])})",
            "records that are alone on all quasi-identifiers",
            risk["unique"] > 0,
        ),
    ]


def _inference(report: Mapping[str, Any]) -> list[Block]:
    """How certain somebody becomes of a protected value, by sensitive column."""
    rows = []
    for name, asked in report["sensitive"].items():
        found = [each.get("largest_share", {}).get(name) for each in report["requirements"]]
        largest = max((each for each in found if each is not None), default=None)
        values = _first(asked["values"])
        rows.append([name, values, asked["C"], "not bounded" if largest is None else share(largest)])
    if not rows:
        return []
    heads = ["sensitive column", "protected values", "C allows", "most certain anybody is"]
    return [
        Rows(
            "How certain somebody becomes of a protected value, who knows what the job assumes",
            heads,
            rows,
            frozenset({2, 3}),
        )
    ]


def _worth(task: Task, report: Mapping[str, Any]) -> Section:
    """What the table is worth to who works with it."""
    blocks: list[Block] = [Facts(_figures(report)), *_specializations(report)]
    if task.job.names("class"):
        blocks.append(
            Sentences(
                [
                    "How well the class is predicted from the table, beside raw rows, `coordinator evaluate` shows "
                    "to the owner of the rows."
                ]
            )
        )
    return Section("What the table is worth", blocks)


def _figures(report: Mapping[str, Any]) -> list[Fact]:
    metrics, lost = report["metrics"], _mean_loss(report)
    found = [
        (
            "Loss (NCP)",
            lost,
            share,
            "of its domain that a value covers, on average; 0 % raw, 100 % nothing left",
        ),
        (
            "Discernibility",
            metrics.get("discernibility_ratio"),
            share,
            "of all pairs of records are alike on all quasi-identifiers; lower keeps more apart",
        ),
        ("Average group", metrics.get("average_group"), number, "records in the group of an average record"),
        (
            "Groups",
            sum(each["groups"] for each in report["risk"]["sizes"]),
            number,
            "different combinations of quasi-identifiers in the table",
        ),
    ]
    return [Fact(name, said(value), meaning) for name, value, said, meaning in found if value is not None]


def _specializations(report: Mapping[str, Any]) -> list[Block]:
    made = report.get("specializations", ())
    rows = [[each["attribute"], each["value"], _first(each["children"])] for each in made]
    heads = ["column", "value", "became"]
    return [Rows("Specializations, in the order they were made", heads, rows)] if rows else []


def _first(values: Sequence[str]) -> str:
    """The first of some values, and how many more there are."""
    more = len(values) - _MOST_NAMED
    return ", ".join(values[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _mean_loss(report: Mapping[str, Any]) -> float | None:
    losses = report["metrics"].get("generalization_loss", {})
    return sum(losses.values()) / len(losses) if losses else None


_GLOSSARY: Sequence[tuple[str, str]] = (
    ("quasi-identifier", "a column that somebody may know of a person from elsewhere, such as age or place"),
    ("sensitive", "a column whose values nobody may find out of a person"),
    ("L", "how many quasi-identifiers somebody may know of a person"),
    ("K", "how many records somebody finds at least who knows so many"),
    ("C", "how certain somebody may become at most of a protected value"),
    ("group", "records that are alike in the quasi-identifiers that somebody knows"),
    ("cut", "the values that a column is published with: of every branch of its hierarchy one level"),
    ("prosecutor", "an attacker who knows that a person is in the table"),
    ("journalist", "an attacker who does not know who is in the table, and wants to find anybody"),
    ("marketer", "an attacker who matches everybody, and counts how many matches are right"),
    ("NCP", "normalized certainty penalty: the share of its domain that a value covers, averaged"),
)
