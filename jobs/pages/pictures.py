"""Pictures of published columns: a bar for each value, or the hierarchy down to what is published of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from anonymize.table import QidColumn
from anonymize.taxonomy import Node
from jobs.data.counted import counted
from jobs.pages.blocks import Bar, Bars, Block, Branch, Sentences, Tree
from jobs.pages.words import number, share

MOST_BRANCHES = 60
"""Of a tree that is drawn; a larger one is a list of bars."""
MOST_BARS = 30
_RECORDS = ("value", "records")


def of_counts(found: Mapping[str, Any], n_records: int, order: Sequence[str] = ()) -> Bars:
    """A bar for each value of a column, as long as its share of the records.

    found:  as `published` of a report has it. order: of values; those that are not in it come by frequency.
    """
    known = dict(found["most_frequent"])
    names = [label for label in order if label in known] + [label for label in known if label not in order]
    shown = names if len(names) <= MOST_BARS else list(known)[:MOST_BARS]
    n_left = found["values"] - len(shown)
    others = n_records - sum(known[label] for label in shown)
    bars = [Bar(label, known[label] / n_records, _figure(known[label], n_records)) for label in shown]
    if n_left:
        bars.append(Bar(f"{number(n_left)} other values", others / n_records, _figure(others, n_records)))
    return Bars("Share of the records by value", _RECORDS, bars)


def of_cut(column: QidColumn, cut: Collection[str], found: Mapping[str, Any], n_records: int) -> Block:
    """The hierarchy of a column from its root down to the values of the cut; of numbers, or a large one, bars."""
    order = list(cut)
    if not _is_drawn(column, order):
        return of_counts(found, n_records, order)
    known = found["most_frequent"]

    def bar(label: str) -> Bar:
        n = known.get(label, 0)
        return Bar(label, n / n_records, _figure(n, n_records))

    return _tree(column, order, bar)


def of_values(column: QidColumn, cut: Collection[str]) -> Block:
    """The same where nothing is counted: of numbers, or of a large hierarchy, the values alone."""
    order = list(cut)
    if len(order) == 1:
        return Sentences([f"Published with one value for all: {order[0]}."])
    if _is_drawn(column, order):
        return _tree(column, order, lambda _: None)
    more = f" and {number(len(order) - MOST_BARS)} more" if len(order) > MOST_BARS else ""
    return Sentences([f"Published as {', '.join(order[:MOST_BARS])}{more}."])


def _is_drawn(column: QidColumn, cut: Sequence[str]) -> bool:
    return not (column.is_numeric or column.by_child or len(cut) > MOST_BRANCHES)


def _tree(column: QidColumn, cut: Collection[str], bar: Callable[[str], Bar | None]) -> Tree:
    published = set(cut)

    def branch(node: Node) -> Branch:
        label = column.label(node)
        if label in published or not column.children(node):
            return Branch(label, bar(label))
        return Branch(label, None, [branch(child) for child in column.children(node)])

    return Tree("What is published, below what it was split from", branch(column.root))


def of_sizes(sizes: Sequence[Mapping[str, Any]], n_records: int) -> Bars:
    """How large the groups of records are that are alike in all quasi-identifiers."""
    bars = [
        Bar(
            _sizes(each["first"], each["last"]),
            each["records"] / n_records,
            f"{counted(each['groups'], 'group', 'groups')} with {_figure(each['records'], n_records)}",
        )
        for each in sizes
    ]
    return Bars(
        "Groups of records that are alike in all quasi-identifiers: share of the records by the size of their group",
        ("records in the group", "records"),
        bars,
    )


def _sizes(first: int, last: int | None) -> str:
    if last is None:
        return f"{number(first)} or more"
    return number(first) if first == last else f"{number(first)} to {number(last)}"


def _figure(n: int, n_records: int) -> str:
    return f"{number(n)} ({share(n / n_records)})"
