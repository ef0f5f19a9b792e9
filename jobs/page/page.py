"""The page of a release: the parts that every model has, around the parts of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.data.counted import counted
from jobs.data.rows_read import RowsRead
from jobs.page.html import Content, document, tag
from jobs.page.parts import (
    Section,
    checked,
    facts,
    listing,
    number,
    paragraph,
    sentence,
    size,
    warning,
    with_words,
)
from jobs.release.checking import read_report
from jobs.release.csv import REPORT
from jobs.release.sums import SUMS, release_digest
from jobs.task import Task

PAGE = "report.html"


def write_page(task: Task, folder: Path, seen: Any = None) -> None:
    """Write the page of the release in a folder beside its report. ``seen``: as in :class:`Rendered`."""
    place_page(page_of_folder(task, folder, seen), folder)


def place_page(page: str, folder: Path) -> None:
    (folder / PAGE).write_text(page, encoding="utf-8")


def page_of_folder(task: Task, folder: Path, seen: Any = None) -> str:
    """Return the page of the release in a folder with all files but the page. Raises PartyError.

    seen:  as in :class:`Rendered`.
    """
    seen = task.model.seen(task, folder) if seen is None else seen
    report = read_report((folder / REPORT).read_bytes())
    release = release_digest((folder / SUMS).read_bytes())
    return page_of(task, report, tuple(task.model.sections(task, report, seen)), release)


def page_of(task: Task, report: Mapping[str, Any], sections: Sequence[Section], release: bytes) -> str:
    """Return the page of a release.

    sections:  of the model, from the requirement to the worth of the table.
    release:   digest of the release.
    """
    job = task.job
    parties = list(report.get("parties", []))
    of_whom = (
        f"{counted(len(parties), 'holder', 'holders')}: {', '.join(parties)}" if parties else "one holder"
    )
    return document(
        f"Release {job.name}",
        tag("h1", f"Release {job.name}"),
        tag(
            "p",
            f"Made {report['finished']} by {of_whom}. Job ",
            tag("code", report["job_sha256"]),
            class_="soft",
        ),
        _warned(sections),
        paragraph(purpose(task)),
        paragraph(_earlier(task, report)),
        *with_words((*sections, *_after(task, report, release))),
    )


def _warned(sections: Sequence[Section]) -> Content:
    """Return the places of all warnings, for readers who see the beginning of a page alone; None without one."""
    found = [(section, n) for section in sections if (n := section.n_warnings)]
    if not found:
        return None
    links: list[Content] = []
    for each, _ in found:
        links += [", " if links else "", tag("a", each.title, href=f"#{each.anchor}")]
    total = counted(sum(n for _, n in found), "warning", "warnings")
    return tag("div", tag("p", f"This page has {total}, in: ", *links, "."), class_="warning")


def purpose(task: Task) -> str:
    """Say what the table is for, who gets the release, and what nothing bounds."""
    job = task.job
    target = next(iter(job.names("class")), "")
    goals = {
        "classification": f"to predict {target}",
        "clusters": "to find clusters",
        "general": "for general use",
        None: "to study sequences" if task.model.name == "sequences" else "for general use",
    }
    said = [f"The table is made {goals[job.goal]}."]
    if job.roster:
        said.append(
            "The coordinator alone gets the release."
            if job.deliver == "coordinator"
            else "The parties and the coordinator get the release."
        )
    if not job.names("sensitive") and task.model.name in ("lkc", "sequences"):
        said.append("No column is sensitive, so nothing bounds inferences.")
    return " ".join(said)


def _earlier(task: Task, report: Mapping[str, Any]) -> str:
    """Say if an earlier release of the same data counts against this release, and where to look.

    The release has no part of a ledger, because ledgers are for their owners.
    """
    job = task.job
    ledger = (
        "each party's ledger (`party budget`)" if job.roster else "the holder's ledger (`coordinator budget`)"
    )
    if report.get("repeated"):
        return "This is the release of an earlier run, given again: nothing more was charged."
    if task.model.name in ("dp", "synthetic"):
        return f"Earlier releases of the same data count: the ε of all adds up. The sum stands in {ledger}."
    alone = "Earlier releases of the same data do not count: the promises hold for this table alone."
    if task.model.name == "lkc" and job.partition == "horizontal":
        alone = (
            "Earlier releases of the same data count only for a party whose policy sets a least number of its own "
            "records in a group (`own_k`): for all other readers the promises hold for this table alone."
        )
    listed = ledger if job.roster else "the holder's ledger, if there is a ledger (`coordinator budget`)"
    return f"{alone} Releases are listed in {listed}."


def promises(report: Mapping[str, Any], sentences: Sequence[str], weak: Sequence[str]) -> Section:
    """Return the section on the requirement.

    sentences:  what no reader can do, from the job.
    weak:       what the job asks too little of.
    """
    return Section(
        "What the table promises",
        [
            listing(sentence(each) for each in sentences),
            *(warning(sentence(each)) for each in weak),
            checked(report["verified"]),
        ],
    )


def _after(task: Task, report: Mapping[str, Any], release: bytes) -> Iterator[Section]:
    """Yield the sections behind the sections of a model."""
    if notes := list(report.get("notes", [])):
        yield Section("Notes on the job", [listing(sentence(note) for note in notes)])
    if "data" in report:
        yield Section("Rows", [listing(_rows(report))])
    yield _learned(task)
    yield _files(report, release)


def _rows(report: Mapping[str, Any]) -> list[str]:
    withheld = [report["withheld"]["meaning"]] if "withheld" in report else []
    return [*(sentence(words) for words in RowsRead.of_report(report["data"]).words()), *withheld]


def _learned(task: Task) -> Section:
    """Return the section on what each participant learned during the run."""
    title = "What each participant learned"
    if not task.job.roster:
        return Section(title, [paragraph("One holder made the table. Nobody else took part.")])
    from jobs.page.learned import learned

    found = [(tag("h3", audience), listing(words)) for audience, words in learned(task)]
    if not found:
        return Section(title, [paragraph("Parties and coordinator learned the release, and nothing else.")])
    return Section(title, [paragraph(_BESIDE), *(part for of_audience in found for part in of_audience)])


_BESIDE = (
    'Beside the release, and at most the following. A step makes a value finer. "Finer than the table" means that '
    "readers of the table alone cannot know as much."
)


def _costs(cost: Mapping[str, Any]) -> Iterator[Content]:
    """Yield the time of a run, and the costs of each party over the phases that the report tells."""
    seconds, parties = cost.get("seconds", {}), cost.get("parties", {})
    if seconds:
        yield paragraph(f"The run took {sum(seconds.values()):.1f} s.")
    else:
        yield paragraph("The report does not tell how long the run took: the time may depend on the data.")
    if parties:
        lines = [(name, *_summed(list(of["phases"].values()))) for name, of in sorted(parties.items())]
        yield facts(lines, head=("party", "run", "data", "gates"))


def _summed(phases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the sums of the costs of phases, by column. A sum without a phase is left out."""
    for costs in _COSTS:
        told = ((cost, [phase[cost] for phase in phases if cost in phase]) for cost in costs)
        yield ", ".join(costs[cost](sum(found)) for cost, found in told if found) or "not told"


_COSTS: Sequence[Mapping[str, Callable[[Any], str]]] = (
    {"seconds": "{:.1f}\u00a0s".format, "rounds": "{:,} rounds".format},
    {
        "bytes_sent": lambda n_bytes: f"{size(n_bytes)} sent",
        "bytes_received": lambda n_bytes: f"{size(n_bytes)} received",
    },
    {"gates": "{:,}".format},
)
"""Costs in each column, with their words. A mode may keep the seconds of a phase back."""


def _files(report: Mapping[str, Any], release: bytes) -> Section:
    """Return the section on files and costs."""
    files = [
        (name, f"{number(of['bytes'])} bytes", tag("code", of["sha256"]))
        for name, of in report.get("files", {}).items()
    ]
    made = ", ".join(f"{name} {version}" for name, version in report.get("versions", {}).items())
    return Section(
        "Files and costs",
        [
            facts(files, head=("file", "size", "SHA-256")) if files else None,
            tag("p", "Digest of the release: ", tag("code", release.hex())),
            *_costs(report.get("cost", {})),
            paragraph(f"Made with {made}." if made else "", "soft"),
            paragraph("coordinator verify counts the table again, and makes this page again.", "soft"),
        ],
    )
