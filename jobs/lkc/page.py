"""Page of an LKC release: the requirement, the risk in the words of the literature, the columns, the groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any
from xml.etree.ElementTree import Element

from anonymize.lkc.metrics import largest_share, partition_sizes
from anonymize.lkc.stopped import Stopped
from anonymize.release import Release
from anonymize.table import Ints
from jobs.data.counted import counted, noun
from jobs.lkc.entries import Entry, entries_of, entries_read, greatest_k
from jobs.lkc.forms.form import form_of
from jobs.lkc.method import method_of
from jobs.lkc.sentences import limits_of, promises_of, weakness_of
from jobs.lkc.stopping import NO_NEED, advice, named
from jobs.lkc.verify import told_apart
from jobs.page.html import tag
from jobs.page.page import promises
from jobs.page.parts import (
    Line,
    Section,
    about_joined,
    bars,
    by_size,
    counts_of,
    facts,
    listing,
    number,
    ordered,
    paragraph,
    percent,
    sentence,
    term,
    warning,
    with_term,
)
from jobs.task import Task


def sections(task: Task, report: Mapping[str, Any], table: Release) -> Iterator[Section]:
    """Yield the sections of an LKC release. table: the rows that readers can make of the release."""
    yield promises(report, promises_of(task), weakness_of(task))
    yield Section("What the table does not promise", [listing(sentence(words) for words in limits_of(task))])
    yield _risk(task, report, table, partition_sizes(table, task.job.names("qid")))
    yield _groups(task, partition_sizes(table, form_of(task.job).groups(task.job)))
    yield Section("Columns", [*_columns(task, report, table)])
    yield from method_of(task.job).sections(task, table)
    yield _worth(report)


def _risk(task: Task, report: Mapping[str, Any], table: Release, sizes: Ints) -> Section:
    """Return the risk of being found, for a reader within the requirement and for a reader who knows everything.

    sizes:  numbers of records that agree on all quasi-identifiers, as published.
    """
    risk, rows = report["risk"], report["rows"]
    plain = risk.get("as_it_is", {})
    least = int(sizes.min())
    required = min(each["smallest_group"] for each in report["requirements"])
    within = form_of(task.job).quasi.among(required, least)
    lines: list[Line] = [
        (
            term("Prosecutor risk", ", within L"),
            percent(1 / within),
            f"The highest chance of a reader with L attributes to find the record of a person known to be in the "
            f"table: 1 in {within:,}.{_UNCOUNTED if plain else ''}",
        ),
        (
            term("Journalist risk", ", within L"),
            f"at most {percent(1 / within)}",
            "The same reader, if the reader does not know that the person is in the table: never higher.",
        ),
        (
            term("Prosecutor risk", ", all attributes"),
            percent(1 / least),
            with_term(
                f"The same chance for a reader who knows every quasi-identifier: 1 in {least:,}.",
                "Quasi-identifier",
                "quasi-identifier",
                "span",
            ),
        ),
        (
            term("Marketer risk"),
            percent(len(sizes) / rows),
            f"The expected share of records that a reader finds who knows all quasi-identifiers of everybody: "
            f"{counted(len(sizes), 'group', 'groups')} among {counted(rows, 'record', 'records')}.",
        ),
        (
            term("Unique records"),
            percent(risk["unique_share"]),
            f"{counted(risk['unique'], 'record has', 'records have')} a combination of all quasi-identifiers that no "
            "other record has.",
        ),
        (
            f"Records below K={greatest_k(entries_of(task.job)):,}",
            percent(risk["below_k_share"]),
            f"{counted(risk['below_k'], 'record is', 'records are')} in groups smaller than K on all "
            "quasi-identifiers.",
        ),
    ]
    small = warning(risk["meaning"]) if risk["below_k"] else None
    return Section(
        "Risk",
        [
            facts(lines, head=("risk", "figure", "meaning")),
            small,
            _of_unprotected(plain),
            *inferences(task, report, table),
        ],
    )


_UNCOUNTED = " A reader who knows a column published unchanged may do better: see below."


def _of_unprotected(found: Mapping[str, Any]) -> Element | None:
    """Return the sentences on columns published unchanged: a warning if a value tells a record, or is a formula."""
    if not found:
        return None
    if found["alone"] or any(of["alone"] or of["few"] or of["formulas"] for of in found["columns"].values()):
        return warning(found["meaning"])
    return paragraph(found["meaning"])


def _groups(task: Task, sizes: Ints) -> Section:
    """Return the sizes of groups, by the share of the records in them."""
    mean, quasi = float(sizes.mean()), form_of(task.job).quasi
    is_term = bool(quasi.generalized(task.job))
    words = (
        f"{counted(len(sizes), 'group', 'groups')} of records {quasi.agree}: on average "
        f"{number(mean)} {'record' if mean == 1 else 'records'}, the smallest {int(sizes.min()):,}. Share of the "
        "records by the size of their group:"
    )
    return Section(
        "Group sizes",
        [
            with_term(words, "Group", noun(len(sizes), "group", "groups")) if is_term else paragraph(words),
            bars(by_size(sizes, greatest_k(entries_of(task.job))), "group sizes"),
        ],
    )


def _columns(task: Task, report: Mapping[str, Any], table: Release) -> Iterator[Any]:
    """Yield each column: its values with their shares, the loss, and why the column is no finer."""
    stopped = {name: [_stopped(each) for each in found] for name, found in report.get("stopped", {}).items()}
    loss = report["metrics"].get("generalization_loss", {})
    for name, column in table.ordered(task.job.published).columns.items():
        role = task.job.columns[name].role if name in task.job.columns else "cluster"
        said = [_said_of_role(report, name, role)]
        if name in loss:
            said.append(f"{percent(loss[name])} of its detail is generalized away.")
        yield tag("h3", name)
        yield paragraph(" ".join(said), "soft")
        yield listing(_why(task, name, each) for each in stopped.get(name, ()) if each.reason not in NO_NEED)
        counts = ordered(counts_of(column, table.counts), report.get("cut", {}).get(name, ()))
        if joined := about_joined(counts):
            yield paragraph(joined)
        yield bars(_without_rare(counts) if role in ("plain", "class") else counts, name)
    frees = [f"{words}." for words in (*advice(task.job, stopped, {}), *_advice_jointly(task, report))]
    if frees:
        yield tag("h3", "To keep more detail")
        yield listing(frees)


def _advice_jointly(task: Task, report: Mapping[str, Any]) -> Sequence[str]:
    """Say what would free detail of a joint table."""
    if not task.job.roster:
        return ()
    from jobs.lkc.joint_stopping import advice_jointly

    return advice_jointly(task, report)


_RARE = 10
"""Records of a value without protection, from which on the page prints the value: below, it may name a person."""


def _without_rare(counts: Mapping[str, int]) -> dict[str, int]:
    """Put all values of few records together, at the end."""
    kept = {value: n for value, n in counts.items() if n >= _RARE}
    rare = [n for n in counts.values() if n < _RARE]
    if not rare:
        return kept
    return {**kept, f"{counted(len(rare), 'value', 'values')} of fewer than {_RARE} records": sum(rare)}


_WHY: Mapping[str, str] = {
    "K": "a finer value would leave groups of fewer than K records",
    "C": "a finer value would let readers infer {sensitive} with more than the allowed confidence",
    **dict.fromkeys(
        ("distinct", "ruled_out", "diversity", "t", "colluders"), "a finer value would break `{reason}`"
    ),
    "one value": "all records have the same finer value",
    "no gain": "a finer value tells nothing more of {target}",
    "adds nothing": "a finer value tells nothing more of {target}",
}
"""Reason of the end of a column, in words."""


def _why(task: Task, name: str, stopped: Stopped) -> str:
    if stopped.reason not in _WHY:
        from jobs.lkc.joint_stopping import why

        return (
            f"{named(task.job, name, stopped.values)}: no finer{why(task, name, {'reason': stopped.reason})}."
        )
    target = next(iter(task.job.names("class")), "the clusters")
    words = _WHY[stopped.reason].format(sensitive=stopped.sensitive, target=target, reason=stopped.reason)
    on = f" on {counted(stopped.columns, 'column', 'columns')}" if stopped.columns else ""
    return f"{named(task.job, name, stopped.values)}: no finer, because {words}{on}."


def _said_of_role(report: Mapping[str, Any], name: str, role: str) -> str:
    """Say what a column is, and for a sensitive column if a C below 1 bounds inferences."""
    bounds = [Fraction(each["C"].get(name, 1)) for each in report["requirements"]]
    if role == "sensitive" and min(bounds, default=Fraction(1)) == 1:
        return "Sensitive: published as it is; no C below 1 bounds inferences."
    return _ROLES.get(role, "")


_ROLES = {
    "qid": "Quasi-identifier: attackers may know it.",
    "sensitive": "Sensitive: inferences are bounded.",
    "class": "Class: published as it is.",
    "plain": "Plain: published as it is, and protected by nothing.",
    "cluster": "Cluster of the record.",
}


def _stopped(fields: Mapping[str, Any]) -> Stopped:
    return Stopped(fields["reason"], fields.get("columns"), fields.get("sensitive"), tuple(fields["values"]))


def _worth(report: Mapping[str, Any]) -> Section:
    """Return what the table is worth."""
    metrics, loss = report["metrics"], report["metrics"].get("generalization_loss", {})
    lines: list[Line] = []
    if loss:
        mean = sum(loss.values()) / len(loss)
        lines.append(
            (
                term("Detail lost (NCP)"),
                percent(mean),
                "Mean over columns and records; 0 %: all detail of the job.",
            )
        )
    if "discernibility_ratio" in metrics:
        meaning = (
            "Share of pairs of records that look alike on all quasi-identifiers; lower keeps more apart."
        )
        lines.append((term("Discernibility"), number(metrics["discernibility_ratio"]), meaning))
    lines.append(("Records", number(report["rows"]), "Records in the table."))
    return Section("Worth of the table", [facts(lines, head=("measure", "figure", "meaning"))])


_MOST_SUBSETS = 100
"""Most sets of columns that are counted for a page. Above, the page has the share for all columns as a bound."""


def inferences(task: Task, report: Mapping[str, Any], table: Release) -> Iterator[Element]:
    """Yield a table of the greatest shares of sensitive values, and a warning for each share that nothing bounds.

    table:  the rows that readers can make of the release.
    """
    told, entries = told_apart(table, task), entries_read(task.job)
    groups = form_of(task.job).groups(task.job)
    lines: list[Line] = []
    warnings = []
    for name in task.job.names("sensitive"):
        if name not in told.columns:
            continue
        values = report["sensitive"][name]["values"]
        of_all = largest_share(told, [groups], name, values)
        what = _value(task, name)
        for entry, found in zip(entries, report["requirements"], strict=True):
            share = _within(task, told, entry, found, name, values, of_all)
            lines.append((f"{name}, {_of_whom(entry)}", share, _of_entry(entry, name, what)))
        lines.append(
            (
                f"{name}, all attributes",
                percent(of_all),
                "The same share for a reader who knows every quasi-identifier.",
            )
        )
        lines += _of_groups(report, name, what)
        warnings += _unbounded(entries, name, what, of_all)
    if lines:
        yield facts(lines, head=(term("Inference", said="inference"), "figure", "meaning"))
    yield from (warning(words) for words in warnings)


def _of_whom(entry: Entry) -> str:
    of = "" if entry.of_all else f" of {', '.join(entry.columns)}"
    return f"L={entry.known} K={entry.said.K:,}{of}"


def _value(task: Task, name: str) -> str:
    column = task.job.columns[name]
    some = "protected " if column.values is not None else ""
    return f"{some}{'value' if column.level is None else 'category'} of {name}"


def _within(
    task: Task,
    told: Release,
    entry: Entry,
    found: Mapping[str, Any],
    name: str,
    values: Sequence[str],
    of_all: float,
) -> str:
    """Return the greatest share for a reader within an entry: from the report, or counted where no C asked for it.

    More columns never make the greatest share smaller: some part of a group has at least the share of the group.
    So sets of exactly L columns suffice, and the share for all columns is a bound.
    """
    if name in found.get("largest_share", {}):
        return percent(found["largest_share"][name])
    form = form_of(task.job)
    columns, most = form.quasi.known(entry, form.groups(task.job))
    most = min(most, len(columns))
    if comb(len(columns), most) > _MOST_SUBSETS:
        return f"at most {percent(of_all)}"
    return percent(largest_share(told, combinations(columns, most), name, values))


def _of_entry(entry: Entry, name: str, what: str) -> str:
    bound = entry.bounds.get(name, Fraction(1))
    allowed = f"The job allows {percent(float(bound))}." if bound < 1 else "No C below 1 bounds the share."
    return f"The largest share of a {what} among the records that a reader within the requirement finds. {allowed}"


def _of_groups(report: Mapping[str, Any], name: str, what: str) -> Iterator[Line]:
    """Yield further figures of the groups of a kd table."""
    found = report["metrics"].get("inference", {}).get(name)
    if found is not None:
        fewest = found["fewest_values"]
        meaning = f"Every group has {counted(fewest, 'value', 'values')} of {name} or more; with 1 a group tells it."
        yield f"{name}, fewest values", f"{fewest:,}", meaning
        yield (
            f"{name}, distance of a group",
            percent(found["greatest_t"]),
            f"The largest share of a group that has other values of {name} than the whole table has.",
        )


def _unbounded(entries: Sequence[Entry], name: str, what: str, of_all: float) -> list[str]:
    """Return a warning where no entry limits inferences, or where a reader with all columns goes beyond C."""
    reader = "a reader who knows every quasi-identifier of a person"
    if not any(entry.speaks_of(name) for entry in entries):
        return [
            f"Nothing bounds inferences of {name}: {reader} infers a {what} with up to {percent(of_all)}."
        ]
    bounds = [entry.bounds[name] for entry in entries if name in entry.bounded]
    if not bounds or of_all <= min(bounds):
        return []
    return [
        f"C of {name} allows {percent(float(min(bounds)))}, and holds for readers within the requirement alone: "
        f"{reader} infers a {what} with up to {percent(of_all)}."
    ]
