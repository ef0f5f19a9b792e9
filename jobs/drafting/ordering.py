"""Order of columns of dates, from the rows of a table: admitted, discharged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import numpy as np

from anonymize.dates import ISO
from jobs.data.counted import counted
from jobs.data.row_order import Numbers, OrderedPair, count_pairs
from jobs.data.sources import FileSource
from jobs.data.table_file import as_read
from jobs.drafting.counting import RARE, Counted
from jobs.drafting.guessing import Guess
from jobs.drafting.kinds import reader_of

_MOST_COLUMNS = 8
"""Most columns of dates that are compared."""


def order_of_dates(
    source: FileSource, guesses: Sequence[Guess], columns: Mapping[str, Counted]
) -> tuple[list[str], list[Guess]]:
    """Return the drafted date columns of which one is hardly ever before another, in their order.

    The second list has the guesses with the rows that break the order, for the owner alone. Raises DataError.
    """
    dates = {each.name: each.keys["dates"] for each in guesses if each.keys and "dates" in each.keys}
    chosen = list(dates)[:_MOST_COLUMNS]
    read = {name: reader_of(dates[name].get("form", ISO)) for name in chosen}

    def numbers(name: str, texts: Sequence[str]) -> Numbers:
        codes = {*columns[name].codes, *columns[name].marks}
        return np.array([np.nan if as_read(text) in codes else read[name](as_read(text)) for text in texts])

    comparable = [pair for pair in permutations(chosen, 2) if _overlap(*(dates[name] for name in pair))]
    found = {(each.earlier, each.later): each for each in count_pairs(source, comparable, numbers)}
    order = _longest(chosen, {pair for pair, rows in found.items() if _is_rule(rows)})
    pairs = list(pairwise(order))
    told = {pair[1]: _told(found[pair]) for pair in pairs if found[pair].below}
    return order, [
        replace(each, told=(*each.told, told[each.name])) if each.name in told else each for each in guesses
    ]


def _is_rule(rows: OrderedPair) -> bool:
    """Return True if few rows break an order, and enough rows have two different values in this order."""
    return rows.below < RARE <= rows.above


def _overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if two domains of dates have a day in common, in the same form."""
    is_same_form = one.get("form") == other.get("form")
    return is_same_form and max(one["from"], other["from"]) < min(one["to"], other["to"])


def _longest(names: Sequence[str], rules: set[tuple[str, str]]) -> list[str]:
    """Return the most columns that have a rule between each two, from the earliest; of equals the first columns."""
    best: list[str] = []
    found: list[list[str]] = [[]]
    for name in names:
        for chain in list(found):
            before = [each for each in chain if (each, name) in rules]
            behind = [each for each in chain if (name, each) in rules]
            if [*before, *behind] == chain:
                found.append([*before, name, *behind])
    for chain in found:
        best = chain if len(chain) > max(len(best), 1) else best
    return best


def _told(rows: OrderedPair) -> str:
    below = counted(rows.below, "row has", "rows have")
    return f"{rows.later}: {below} {rows.later} before {rows.earlier}, against `order`"
