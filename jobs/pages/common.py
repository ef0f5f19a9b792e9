"""The sections that reports of all models have: what was asked, who learned what, what it cost, what made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.columns import Column
from jobs.pages.blocks import Block, Rows, Section, Sentences
from jobs.pages.words import number, seconds, size
from jobs.signatures import SIGNATURES
from jobs.task import Task

_ROLES: Mapping[str, str] = {
    "qid": "quasi-identifier: by which persons could be recognized; generalized",
    "sensitive": "sensitive: what nobody may find out of a person",
    "class": "class: what is to be predicted",
    "plain": "published as it was",
    "id": "whose records they are; not published",
    "party": "whose record it is; not published",
    "location": "where somebody was",
    "time": "when somebody was there",
    "items": "what belongs to somebody",
}
_TO: Mapping[str, str] = {
    "all": "all parties and the coordinator",
    "leader": "the leader",
    "pair": "leader and deputy",
    "owner": "the party that has the column",
    "holder": "the party that has the sensitive column",
    "coordinator": "the coordinator",
}
_PHASES: Mapping[str, str] = {
    "read": "reading the table",
    "anonymize": "anonymizing",
    "run": "the joint run",
    "connect": "connecting",
    "admit": "admission by all parties",
    "collect": "collecting the result",
    "release": "making the table",
    "verify": "counting it again",
    "write": "writing",
    "report": "measuring",
    "deliver": "delivering it to the parties",
}


def asked(task: Task) -> Section:
    """What the job asks for, in the words that owners approve it by."""
    model, job = task.model, task.job
    held = [model.requirement_words(task), *model.promise(task)]
    settings = [f"{key}: {value}" for key, value in model.settings(job).items() if value is not None]
    return Section(
        "What was asked",
        [
            Sentences([*held, *settings, *_who(task)], listed=True),
            Rows(
                "The columns and what they are used for",
                ["column", "use", *(["from"] if job.partition == "vertical" else [])],
                [[name, _use(column), *_whose(task, name)] for name, column in job.columns.items()],
            ),
        ],
    )


def _who(task: Task) -> list[str]:
    job = task.job
    if not job.roster:
        return ["One holder anonymized its own table."]
    how = {
        "horizontal": "different records with the same columns",
        "vertical": "different columns about the same people",
    }
    return [f"{len(job.roster)} parties took part, with {how[job.partition]}: {', '.join(job.roster)}."]


def _use(column: Column) -> str:
    return _ROLES[column.role]


def _whose(task: Task, name: str) -> list[str]:
    if task.job.partition != "vertical":
        return []
    return [", ".join(party for party in task.job.roster if name in task.held_by(party))]


def learned(task: Task, report: Mapping[str, Any]) -> Section:
    """Who learned what beyond the release, by the published list; and what the reports of the mode say of it."""
    if not task.job.roster:
        return Section("Who learned what", [Sentences(["One holder had the table; nobody else took part."])])
    times = _times(report.get("reveals", ()))
    rows = [
        [
            _TO.get(each.to, each.to),
            each.meaning,
            number(times.get(each.name, 0)),
            "yes" if each.finer else "",
        ]
        for each in task.reveals
    ]
    told = [str(line) for key in ("protection", "limits") for line in report.get(key, ())]
    table = Rows(
        "What became known on the way, and to whom",
        ["to", "what", "times", "finer than the release"],
        rows,
        frozenset({2}),
    )
    return Section(
        "Who learned what", [*([Sentences(told, listed=True)] if told else []), *([table] if rows else [])]
    )


def _times(reveals: Sequence[Mapping[str, Any]]) -> Mapping[str, int]:
    counted: dict[str, int] = {}
    for each in reveals:
        name = str(each.get("name"))
        counted[name] = counted.get(name, 0) + 1
    return counted


def cost(report: Mapping[str, Any]) -> list[Section]:
    """What the run took; nothing where the report does not say."""
    told = report.get("cost") or {}
    blocks: list[Block] = []
    if phases := told.get("seconds"):
        rows = [[_PHASES.get(name, name), seconds(took)] for name, took in phases.items()]
        blocks.append(Rows("Time by phase", ["phase", "time"], rows, frozenset({1})))
    if parties := told.get("parties"):
        heads = ["party", "seconds", "sent", "received"]
        rows = [[name, *_figures(costs)] for name, costs in parties.items()]
        blocks.append(
            Rows(
                "What it took each party, as far as the mode lets it be told",
                heads,
                rows,
                frozenset({1, 2, 3}),
            )
        )
    return [Section("What it cost", blocks)] if blocks else []


def _figures(costs: Mapping[str, Any]) -> list[str]:
    phases, links = costs["phases"].values(), costs["links"].values()
    took = [each["seconds"] for each in phases if "seconds" in each]
    return [
        seconds(sum(took)) if took else "",
        *(
            size(sum(each.get(key, 0) for each in links)) if links else ""
            for key in ("bytes_sent", "bytes_received")
        ),
    ]


def made(report: Mapping[str, Any]) -> Section:
    """By which software, of which job; and who signed."""
    rows = [
        ["job", str(report["job"])],
        ["job hash", str(report["job_sha256"])],
        ["finished", str(report["finished"])],
    ]
    rows += [[name, str(version)] for name, version in (report.get("versions") or {}).items()]
    rows += [
        [f"SHA-256 of {name}", str(each["sha256"])] for name, each in (report.get("files") or {}).items()
    ]
    return Section("How it was made", [Rows("Job, time and software", ["what", ""], rows), *_signed(report)])


def _signed(report: Mapping[str, Any]) -> list[Block]:
    if SIGNATURES not in report:
        return []
    signed = report[SIGNATURES]
    if signed is None:
        return [Sentences(["Nobody signed it: one process computed for all parties, as a trial."])]
    names = ", ".join(signed["parties"])
    return [
        Sentences(
            [f"Signed by {names}. Whether the signatures hold `coordinator verify` says, not this page."]
        )
    ]


def to_be_known(report: Mapping[str, Any]) -> list[Section]:
    """What the job's settings leave open."""
    notes = [str(note) for note in report.get("notes", ())]
    return [Section("To be known", [Sentences(notes, listed=True)])] if notes else []


def glossary(words: Sequence[tuple[str, str]]) -> Section:
    """What the words of a page mean."""
    return Section("Words", [Rows("What the words on this page mean", ["word", "meaning"], words)])
