"""Guesses about the columns of a job, each with its reason. All functions are pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any

from anonymize.dates import ISO
from anonymize.table import MOST_TAKEN_OUT
from jobs.data.counted import counted
from jobs.drafting import ids, kinds
from jobs.drafting.counting import RARE, Counted, has_rare_spellings
from jobs.plain_columns import names_a_person

MOST_VALUES = 5000
"""Most listed values of a column."""
MOST_CLASSES = 20
_FEW = 20
"""Number of different values up to which no column is taken for an id or a text."""
_MOSTLY_DIFFERENT = 0.9
_MOST_TOLD = 5
_DIGITS_OF_YEAR = "4"
_CONFIDENCES = ("1/2", "3/4", "9/10", "19/20")


@dataclass(frozen=True)
class Guess:
    """A column of a draft.

    keys:    keys of the column in the job; None: the column is left out.
    why:     the guess and its reason, for a comment. No value, no count.
    told:    sentences for the owner's console alone.
    share:   largest share of a sensitive value, 0 for other columns.
    repeats: True for a column of ids that is left out, in which values repeat.
    warnings: what may be wrong, for the owner's console alone.
    """

    name: str
    keys: Mapping[str, Any] | None
    why: str
    told: tuple[str, ...] = field(default=(), repr=False)
    share: float = field(default=0, repr=False)
    repeats: bool = False
    warnings: tuple[str, ...] = field(default=(), repr=False)

    @property
    def role(self) -> str | None:
        return None if self.keys is None else self.keys["role"]


@dataclass(frozen=True)
class Asked:
    """Roles that the owner names.

    dp:       the job is of differential privacy.
    parties:  names of the parties of a joint job with different people at each party; empty for a single holder.
    mode:     `disclosure` of a joint job.
    """

    ids: Sequence[str] = ()
    sensitive: Sequence[str] = ()
    classes: Sequence[str] = ()
    dp: bool = False
    parties: Sequence[str] = ()
    mode: str = "sealed"


def guess(column: Counted, asked: Asked) -> Guess:
    """Return the guess about a column."""
    name = column.name
    if name in asked.ids:
        return Guess(name, {"role": "id"}, "named by --id: never published")
    if name in asked.classes:
        return _class(column, asked)
    is_named = name in asked.sensitive
    reason = _left_out(column)
    against = None if reason is None else reason.words
    if reason is not None and not is_named:
        return Guess(name, None, reason.words, repeats=reason.is_of_ids and _repeats(column))
    why = None if asked.dp else _why_sensitive(column, asked)
    if why is not None:
        return _with_codes(_with_warning(_sensitive(column, why, asked), against), column)
    found = _qid(column, asked.dp)
    found = _with_warning(
        found, against or (_may_be_ids(column) if "numeric" in (found.keys or {}) else None)
    )
    return found if found.keys is None else _with_codes(_with_domain_marks(found, asked), column)


def _why_sensitive(column: Counted, asked: Asked) -> str | None:
    """Return the reason to protect the values of a column, or None."""
    if column.name in asked.sensitive:
        return "named by --sensitive"
    if kinds.sounds_sensitive(column.name):
        return "its name suggests a sensitive column"
    version = kinds.icd_of(column)
    return None if version is None else f"codes of ICD-{version} tell of illnesses"


def _with_warning(found: Guess, reason: str | None) -> Guess:
    """Warn of a column that is in the draft, with the reason against the column, if any."""
    if reason is None or found.keys is None:
        return found
    unchanged = found.role == "sensitive" and "numeric" not in found.keys
    how = "its values are published as they are" if unchanged else "the draft has the column"
    words = f"{found.name}: {reason}; {how}: take the column out unless its values are meant"
    return replace(found, warnings=(*found.warnings, words))


def _may_be_ids(column: Counted) -> str | None:
    """Return the reason to look at a column of whole numbers that are nearly all different."""
    is_different = len(column.counts) > max(_FEW, _MOSTLY_DIFFERENT * column.n)
    if not (is_different and _are_whole(column)):
        return None
    return "nearly all its whole numbers are different, as ids are"


def _repeats(column: Counted) -> bool:
    return any(n > 1 for n in column.counts.values())


@dataclass(frozen=True)
class _Reason:
    """Reason against a column. is_of_ids: the values are ids, so equal values suggest the same person."""

    words: str
    is_of_ids: bool = False


def _left_out(column: Counted) -> _Reason | None:
    """Return the reason against a column, or None."""
    if column.missing > column.n:
        return _Reason("most of its cells are empty")
    if not column.n:
        return _Reason("it has no values")
    distinct = len(column.counts)
    if distinct > 2 and (reason := _of_people(column, distinct)):
        return reason
    if distinct <= _FEW or kinds.days_of(column) is not None:
        return None
    share = distinct / column.n
    word = names_a_person(column.name)
    if column.share_of_numbers >= kinds.MOSTLY:
        return _like_ids(column, word, distinct)
    if word is not None and (distinct > 2 * _FEW or ids.sounds_like_a_surname(column.name)):
        return _Reason(f"{word!r} in its name and many different values suggest single people")
    if kinds.have_a_zone(column):
        return _Reason(
            "its dates have a time zone (Z or +01:00), which no job reads: write local times without a zone"
        )
    if share > 0.5:
        if (post := kinds.post_of(column)) is not None:
            return _Reason(
                f"most of its values are different: {post.name} of few records; write coarser parts of the codes in "
                "the table"
            )
        form = kinds.unread_dates(column.counts)
        is_text = any(" " in value for value in column.counts)
        different = _Reason("most of its values are different: an id or free text", is_of_ids=not is_text)
        return different if form is None else _Reason(form.words)
    if sum(value.count(" ") * n for value, n in column.counts.items()) > 5 * column.n:
        return _Reason("its values are texts of several words")
    return None


def _like_ids(column: Counted, word: str | None, distinct: int) -> _Reason | None:
    """Return the reason against a column of many different numbers, or None. word: of a person, in the name."""
    share = distinct / column.n
    dense = _are_whole(column) and max(column.numbers.values()) - min(column.numbers.values()) < 2 * distinct
    if word is not None and (share > 0.2 or distinct > MOST_VALUES):
        return _Reason(f"{word!r} in its name and many different values suggest an id", is_of_ids=True)
    if share > _MOSTLY_DIFFERENT and dense:
        return _Reason(
            "nearly all its numbers are different and follow each other, like an id", is_of_ids=True
        )
    if share > _MOSTLY_DIFFERENT and ids.are_long_numbers(column.numbers):
        words = "nearly all its numbers are different, long and of one length, like numbers of cards"
        return _Reason(words, is_of_ids=True)
    if ids.follow_each_other(column):
        return _Reason("its numbers follow each other and are equally frequent, like an id", is_of_ids=True)
    return None


def _are_whole(column: Counted) -> bool:
    return all(number == int(number) for number in column.numbers.values())


def _of_people(column: Counted, distinct: int) -> _Reason | None:
    """Return the reason against a column of ids or of parts of names, however often values repeat.

    distinct:  number of different values, 3 or more.
    """
    word = names_a_person(column.name)
    said = "its name suggests" if word is None else f"{word!r} in its name suggests"
    is_number = column.share_of_numbers >= kinds.MOSTLY
    if ids.sounds_like_a_surname(column.name) and not is_number:
        return _Reason(f"{said} a part of people's names")
    if ids.sounds_like_an_id(column.name) and (distinct > _FEW or not is_number):
        return _Reason(f"{said} an id of people", is_of_ids=not ids.is_shared(column.name))
    if ids.is_a_numbering(column.name) and distinct > _FEW and (not is_number or _are_whole(column)):
        return _Reason("its name suggests an id", is_of_ids=True)
    if distinct > _FEW and not is_number and kinds.icd_of(column) is None and ids.are_numbered(column.counts):
        return _Reason("its values are numbered, like ids", is_of_ids=True)
    return None


def _qid(column: Counted, dp: bool) -> Guess:
    """Return the guess about a column without a given role."""
    for kind in (_dates, _icd, _post, _prefix, _numbers):
        if (found := kind(column)) is not None:
            return found
    return _listed(column, dp)


def _dates(column: Counted) -> Guess | None:
    days = kinds.days_of(column)
    if days is None:
        return None
    read = kinds.reader_of(days.form)
    beyond = {text: n for text, n in column.counts.items() if not days.covers(read(text))}
    dates = {"from": str(days.first), "to": str(days.below), "step": days.step}
    form = {} if days.form == ISO else {"form": days.form}
    taken = f"dates written as {days.form}"
    if days.rival:
        taken = f"dates fit {days.form} and {days.rival} equally, and {days.form} was taken: correct `form` if the "
        taken += "month stands elsewhere"
    return Guess(
        column.name,
        {"role": "qid", "dates": {**dates, **form}},
        f"{taken}; {_ends(column)}",
        (
            *_told(column, {t: n for t, n in beyond.items() if not isnan(read(t))}, "beyond the range"),
            *_told(column, {t: n for t, n in beyond.items() if isnan(read(t))}, "no date that exists"),
        ),
    )


def _ends(column: Counted) -> str:
    return f"each end is reached by {RARE} {column.holders} or more: widen the range to keep rarer values"


def _numbers(column: Counted) -> Guess | None:
    if column.share_of_numbers < kinds.MOSTLY or len(column.counts) <= 12:
        return None
    found = _range(column)
    if found is None:
        return None
    grid, beyond = found
    return Guess(
        column.name,
        {"role": "qid", "numeric": _grid(grid)},
        f"numbers in at most 50 cells; {_ends(column)}",
        _told_beyond(column, beyond),
    )


def _range(column: Counted) -> tuple[kinds.Range, dict[str, int]] | None:
    """Return the grid of a column of numbers, and the values outside."""
    grid = kinds.range_of(column)
    if grid is None:
        return None
    return grid, column.others(_inside(column, grid))


def _inside(column: Counted, grid: kinds.Range) -> list[str]:
    return [text for text, number in column.numbers.items() if grid.covers(number)]


def _grid(grid: kinds.Range) -> dict[str, str]:
    return {"min": f"{grid.low:f}", "max": f"{grid.high:f}", "step": f"{grid.step:f}"}


def _icd(column: Counted) -> Guess | None:
    version = kinds.icd_of(column)
    if version is None:
        return None
    return _codes(
        column,
        lambda values: {"icd": {"version": version, "values": values}},
        f"codes of ICD-{version}, grouped by chapter, block and category",
    )


def _post(column: Counted) -> Guess | None:
    post = kinds.post_of(column)
    if post is None:
        return None
    return _codes(
        column,
        lambda values: {
            "taxonomy": kinds.grouped_by_post(post, [v for v in values if post.pattern.fullmatch(v)])
        },
        f"{post.name}, grouped by {post.parts}",
    )


def _prefix(column: Counted) -> Guess | None:
    lengths = kinds.prefixes_of(column)
    if lengths is None:
        return None
    return _codes(
        column,
        lambda values: {"prefix": {"values": values, "lengths": list(map(str, lengths))}},
        "codes like ZIP codes, grouped by their first characters",
    )


def _codes(column: Counted, keys: Callable[[list[str]], dict[str, Any]], why: str) -> Guess | None:
    """Return the guess about codes, None if too few of them may be listed."""
    listed = sorted(column.common)
    if not _is_enough(column, listed):
        return None
    rare = column.others(listed)
    if rare:
        why += (
            f"; codes of fewer than {RARE} {column.holders} are not listed: better list all codes that exist"
        )
    return Guess(column.name, {"role": "qid", **keys(listed)}, why, _told_others(column, rare))


def _listed(column: Counted, dp: bool) -> Guess:
    """Return the guess about values without a hierarchy, or with an obvious order."""
    listed = column.common
    form = kinds.unread_dates(column.counts)
    if not _is_enough(column, listed):
        why = f"most of its values have fewer than {RARE} {column.holders}, or it has one value"
        return Guess(column.name, None, why if form is None else f"{why}; {form.words}")
    told = _told_others(column, column.others(listed))
    if form is not None:
        return _dates_as_texts(column, form, listed, told, dp)
    if not dp and (grid := kinds.small_counts(column)) is not None:
        why = f"small counts, in a cell for each number; {_ends(column)}"
        beyond = _told_beyond(column, column.others(_inside(column, grid)))
        return Guess(column.name, {"role": "qid", "numeric": _grid(grid)}, why, beyond)
    if (in_order := kinds.ordered(listed, column.numbers)) is not None:
        why = f"values with an order ({in_order.scale}), joined in neighbouring groups"
        why += "; correct the order if other values are meant"
        return Guess(column.name, {"role": "qid", "order": {"values": in_order.values}}, why, told)
    why = "values without an order; write groups as a `taxonomy` to keep more detail"
    if len(listed) > MOST_TAKEN_OUT:
        why += f": more than {MOST_TAKEN_OUT} values are published all together or not at all"
    keys: dict[str, Any] = {"taxonomy": {"*": sorted(listed)}} if dp else {"suppress": sorted(listed)}
    return Guess(column.name, {"role": "qid", **keys}, why, told)


def _dates_as_texts(
    column: Counted, form: kinds.Unread, listed: Sequence[str], told: tuple[str, ...], dp: bool
) -> Guess:
    """Return the guess about dates that no job reads: months are grouped by their years, others stay single."""
    if form is kinds.MONTHS:
        keys: dict[str, Any] = {"prefix": {"values": sorted(listed), "lengths": [_DIGITS_OF_YEAR]}}
        return Guess(column.name, {"role": "qid", **keys}, f"{form.words}; here grouped by the year", told)
    keys = {"taxonomy": {"*": sorted(listed)}} if dp else {"suppress": sorted(listed)}
    return Guess(column.name, {"role": "qid", **keys}, f"{form.words}; here single values", told)


def _is_enough(column: Counted, listed: Sequence[str]) -> bool:
    """Return True if some values describe a column well enough."""
    is_constant = len(listed) == 1 and len(column.counts) == 1
    return bool(listed) and not is_constant and len(listed) <= MOST_VALUES and column.share(listed) >= 0.5


def _with_codes(found: Guess, column: Counted) -> Guess:
    """Say which frequent values of a column are taken for missing cells, and which may be codes and are not."""
    for values, key in ((column.codes, "`map`"), (column.marks, "`missing` under `data`")):
        if values:
            taken = f"{', '.join(values)}: taken for a missing cell ({key}), correct if a value is meant"
            found = replace(found, why=f"{found.why}; {taken}")
    warnings = []
    if column.codes:
        rows = counted(column.missing_by_code, "row", "rows")
        is_dated = "dates" in (found.keys or {})
        why = "they are no likely days" if is_dated else "such values are often codes"
        warnings.append(
            f"{', '.join(column.codes)} in {rows} of {column.name} count as missing, since {why}: take them out of "
            "`map` if they are meant"
        )
    if column.doubtful:
        warnings.append(
            f"{', '.join(column.doubtful)} of {column.name} are taken for numbers: if they are codes of missing "
            f'cells, add them under `map: {{{column.name}: {{"{column.doubtful[0]}": ""}}}}`, and change the domain'
        )
    return replace(found, warnings=(*found.warnings, *warnings))


def _with_domain_marks(found: Guess, asked: Asked) -> Guess:
    """Let values outside a drafted domain stop no run, and take no row away; in DP jobs mark the domain.

    A joint LKC job has no key for such values: a run refuses the values.
    """
    assert found.keys is not None
    if asked.dp:
        return replace(found, keys={**found.keys, "from_data": "true"})
    leaf = {"missing": "leaf"} if found.keys.keys() & {"numeric", "dates"} else {}
    return replace(found, keys={**found.keys, **leaf, **_outside(asked)})


def _outside(asked: Asked) -> dict[str, str]:
    return {} if asked.parties else {"outside": "missing"}


def _sensitive(column: Counted, why: str, asked: Asked) -> Guess:
    """Return the guess about a sensitive column of an LKC job. Its values stay out of the job where possible."""
    name = column.name
    told: tuple[str, ...] = ()
    keys: dict[str, Any] = {"role": "sensitive"}
    largest = max(column.counts.values(), default=0)
    is_measure = kinds.icd_of(column) is None
    numbers = (
        _range(column)
        if is_measure and column.share_of_numbers >= kinds.MOSTLY and len(column.counts) > _FEW
        else None
    )
    if numbers is not None:
        grid, beyond = numbers
        keys |= {"numeric": _grid(grid), "missing": "leaf", **_outside(asked)}
        cells: dict[int, int] = {}
        for text, number in column.numbers.items():
            cell = int((number - float(grid.low)) // float(grid.step))
            cells[cell] = cells.get(cell, 0) + column.counts[text]
        largest = max(cells.values())
        told = _told_beyond(column, beyond)
        why += "; numbers are published as cells of this grid"
    elif asked.parties and column.common:
        keys |= {"domain": sorted(column.common), "missing": "leaf"}
        told = _told_others(column, column.others(column.common))
        why += "; all values are protected; list `values` to protect only these"
    elif asked.parties:
        lacks = f"no value has {RARE} {column.holders} or more, and a joint job lists all values in `domain`"
        return Guess(name, None, f"{why}; {lacks}")
    elif has_rare_spellings(column) and column.common:
        keys |= {"domain": sorted(column.common), "missing": "leaf", "outside": "missing"}
        told = _told_others(column, column.others(column.common))
        why += "; rare values count as missing, since some are spelled in two ways"
    else:
        keys |= {"missing": "leaf"}
        why += "; all values are protected; list `values` to protect only these"
    return Guess(name, keys, why, told, largest / max(column.n + column.missing, 1))


def confidence(share: float) -> str:
    """Return a C that a sensitive value of a given share of the table allows."""
    return next((c for c in _CONFIDENCES if share <= 0.8 * _value(c)), "1")


def _value(fraction: str) -> float:
    over, under = fraction.split("/")
    return int(over) / int(under)


def _class(column: Counted, asked: Asked) -> Guess:
    """Return the guess about the class. A class has few values, so no name of a column suggests a person."""
    name, why = column.name, "named by --class: published as it is; rows without a class are left out"
    domain = {"domain": sorted(column.common)}
    told = _told_others(column, column.others(column.common))
    keys = {"role": "class", **({"publish_as_is": "true"} if names_a_person(name) else {})}
    if asked.dp:
        return Guess(name, {**keys, **domain, "from_data": "true"}, why, told)
    if asked.parties:
        return Guess(name, {**keys, **domain, "missing": "drop"}, why, told)
    if has_rare_spellings(column):
        return Guess(name, {**keys, **domain, "missing": "drop", "outside": "missing"}, why, told)
    return Guess(name, {**keys, "missing": "drop"}, why)


def _told_others(column: Counted, others: Mapping[str, int]) -> tuple[str, ...]:
    """Tell the owner the values that are not in a draft: rare values, and texts that no release may have."""
    rare = {value: n for value, n in others.items() if not column.is_frequent(value)}
    return (
        *_told(column, rare, f"fewer than {RARE} {column.holders} each"),
        *_told(column, {v: n for v, n in others.items() if v not in rare}, "no text for a release"),
    )


def _told_beyond(column: Counted, beyond: Mapping[str, int]) -> tuple[str, ...]:
    """Tell the owner the values outside a range of numbers."""
    numbers = {value: n for value, n in beyond.items() if value in column.numbers}
    return (
        *_told(column, numbers, "outside the range"),
        *_told(column, {v: n for v, n in beyond.items() if v not in numbers}, "no number"),
    )


def _told(column: Counted, others: Mapping[str, int], why: str) -> tuple[str, ...]:
    """Tell the owner values, the most frequent first, with a common reason."""
    if not others:
        return ()
    n, rows = len(others), sum(others.values())
    first = sorted(others, key=lambda value: (-others[value], value))[:_MOST_TOLD]
    shown = ", ".join(f"{value!r} ({others[value]})" for value in first)
    more = f", and {n - len(first):,} more" if n > len(first) else ""
    return (f"{column.name}: {counted(rows, 'row', 'rows')} with {shown}{more}: {why}",)
