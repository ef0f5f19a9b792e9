"""Fit of a party's table to a given job: the party's names and values for the names and values of the job.

All functions are pure. Results hold the owner's values, and are for the owner alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

import numpy as np

from anonymize.dates import DateGrid
from jobs.data.coders import BAD, EMPTY, Categorical, Coder, Numeric, near
from jobs.data.table_file import as_read
from jobs.data.texts import folded
from jobs.data.wording import Wording
from jobs.drafting.counting import MARKS
from jobs.drafting.kinds import DATE_FORMS, MOSTLY, reader_of, unread_dates, words_of

ENOUGH = 0.8
"""Share of the records that have to fit, for a column with another name to be taken for the job's column."""
_TRUE = frozenset({"true", "t", "yes", "y", "1", "ja", "j", "oui", "si", "sí", "sim", "positive", "pos", "+"})
_FALSE = frozenset({"false", "f", "no", "n", "0", "nein", "non", "não", "negative", "neg", "-"})
_LIKELY = 0.3
"""Least share of fitting records, below ``ENOUGH``, of a column that is asked about."""
_ALIKE = 0.75
"""Least likeness of two texts of which the owner is asked about."""
_MOST_NEAR = 5
_MOST_COMPARED = 1000
"""Largest number of listed values with which a value is compared."""
_MOST_READ = 64
_MOST_INITIALS = 50
"""Largest number of listed values for which beginnings of values are compared."""


@dataclass(frozen=True)
class Wanted:
    """Column that a job expects. coder: its rule; None: the job takes every value."""

    name: str
    coder: Coder | None = None

    @property
    def listed(self) -> frozenset[str]:
        """Values in the job's list, without the values of a missing cell."""
        return frozenset(self.coder.index) - EMPTY if isinstance(self.coder, Categorical) else frozenset()

    @property
    def grid(self) -> DateGrid | None:
        """Grid of a column of dates."""
        grid = self.coder.grid if isinstance(self.coder, Numeric) else None
        return grid if isinstance(grid, DateGrid) else None


@dataclass(frozen=True)
class Near:
    """Near miss. meant: what may be meant. share: part of the records that fit, or likeness of two texts; 0 to 1.

    why:  the share in words.
    """

    meant: str = field(repr=False)
    share: float
    why: str


@dataclass(frozen=True)
class Fitted:
    """Column of the job against the table.

    own:      the column's name in the table; None: no column of the table can be meant.
    why:      the reason for a guess about the name; empty for the same name.
    hints:    reasons for the guesses about values.
    words:    the job's value, by value in the table; an empty text is a missing cell.
    form:     form of the dates in the table, where the job has another form; else empty.
    others:   number of records of each value that fits in no way.
    n:        number of records with a value.
    near:     nearest misses, which nobody but the owner can decide: another column, or a listed value by value.
    """

    name: str
    own: str | None
    why: str = ""
    hints: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict, repr=False)
    form: str = ""
    others: Mapping[str, int] = field(default_factory=dict, repr=False)
    n: int = field(default=0, repr=False)
    near: Mapping[str, Near] = field(default_factory=dict, repr=False)

    @property
    def share(self) -> float:
        """Share of the records with a value whose value fits, as written or by ``words``."""
        return 1 - sum(self.others.values()) / self.n if self.n else 0.0


@dataclass(frozen=True)
class Own:
    """Column of the party's table.

    name:    as in the file.
    shown:   the name in the party's present configuration.
    texts:   number of records of each text, as in the file.
    """

    name: str
    shown: str
    texts: Mapping[str, int] = field(repr=False)


def fitted(
    wanted: Sequence[Wanted],
    table: Sequence[Own],
    wording: Wording,
    numerals: Callable[[Sequence[str]], Sequence[str]],
) -> list[Fitted]:
    """Return the fit of every wanted column, in order.

    Columns of the same name come first, then another spelling of the name, then the only column whose values fit.

    wording:   the present configuration.
    numerals:  turns texts of a column of numbers into numbers with a decimal point.
    """
    found: dict[str, Fitted] = {}
    left = list(table)

    def take(column: Wanted, own: Own, why: str) -> None:
        found[column.name] = replace(_values(column, own, wording, numerals), why=why)
        left.remove(own)

    for choose in (_same_name, _same_words):
        for column in wanted:
            chosen = [] if column.name in found else choose(column, left)
            if len(chosen) == 1:
                take(column, chosen[0], "" if choose is _same_name else "another spelling of the name")
    is_taken = True
    while is_taken:  # a column that is taken may leave a single column to another
        is_taken = False
        unclear: dict[str, list[Own]] = {}
        for column in wanted:
            if column.name not in found:
                chosen, why = _by_values(column, left, wording, numerals)
                if len(chosen) == 1:
                    take(column, chosen[0], why)
                    is_taken = True
                else:
                    unclear[column.name] = chosen
    for column in wanted:
        if column.name in unclear:
            rivals = unclear[column.name]
            near = {} if rivals else _near_columns(column, left, wording, numerals)
            found[column.name] = Fitted(column.name, None, _unclear(column.name, rivals, near), near=near)
    return [_with_near_values(found[column.name], column.listed) for column in wanted]


def worded(
    fits: Sequence[Fitted], wanted: Sequence[Wanted], table: Sequence[Own], wording: Wording
) -> Wording:
    """Return the party's wording with the guessed names, values and forms of dates.

    A mark of missing cells goes to `missing`, unless the mark is a value of a column.
    """
    listed = frozenset[str]().union(*(column.listed for column in wanted))
    shown = {own.name: own.shown for own in table}
    names = {fit.own: fit.name for fit in fits if fit.own is not None and fit.own != fit.name}
    kept = {own: name for own, name in wording.rename.items() if own not in names}
    values = {name: dict(words) for name, words in wording.values.items()}
    marks: set[str] = set()
    for fit in fits:
        if fit.own is not None:
            own = {text for text, value in fit.words.items() if value == "" and text not in listed}
            words = {text: value for text, value in fit.words.items() if text not in own}
            if words := {**values.pop(shown[fit.own], {}), **words}:
                values[fit.name] = words
            marks |= own
    return replace(
        wording,
        missing=tuple(dict.fromkeys([*wording.missing, *sorted(marks)])),
        rename={**kept, **names},
        values=values,
        dates={**wording.dates, **{fit.name: fit.form for fit in fits if fit.form}},
    )


# Names


def _same_name(column: Wanted, left: Sequence[Own]) -> list[Own]:
    return [own for own in left if own.shown == column.name]


def _same_words(column: Wanted, left: Sequence[Own]) -> list[Own]:
    form = _joined(column.name)
    return [own for own in left if _joined(own.shown) == form]


def _joined(name: str) -> str:
    """Return a name without case, blanks and signs."""
    return "".join(filter(str.isalnum, folded(name)))


def _by_values(
    column: Wanted,
    left: Sequence[Own],
    wording: Wording,
    numerals: Callable[[Sequence[str]], Sequence[str]],
) -> tuple[list[Own], str]:
    """Return the columns that may be meant, with the reason: a word of the name, or values of a listed domain."""
    fits = {own.name: _values(column, own, wording, numerals).share for own in left}
    fitting = [own for own in left if column.coder is None or fits[own.name] >= ENOUGH]
    named = [own for own in fitting if _share_a_word(column.name, own.shown)]
    if named:
        return named, "a word of the name, and the values fit"
    if not (column.listed or column.grid):
        return [], ""
    return fitting, "the values fit"


def _near_columns(
    column: Wanted,
    left: Sequence[Own],
    wording: Wording,
    numerals: Callable[[Sequence[str]], Sequence[str]],
) -> dict[str, Near]:
    """Return the column left over that is most like a wanted column, by values or by name; empty without likeness."""
    shares = {own.name: _values(column, own, wording, numerals).share for own in left}
    by_name = {own.name: _likeness(_joined(column.name), _joined(own.shown)) for own in left}
    least = _LIKELY if column.listed or column.grid else MOSTLY  # numbers of any kind may lie in a range
    by_value = [own.name for own in left if column.coder and shares[own.name] >= least]
    likely = [own.name for own in left if own.name in by_value or by_name[own.name] >= _ALIKE]
    if not likely:
        return {}
    best = max(likely, key=lambda name: (shares[name] if column.coder else 0, by_name[name]))
    if column.coder is None:
        return {column.name: Near(best, by_name[best], f"the names are alike by {by_name[best]:.0%}")}
    why = f"{shares[best]:.0%} of the column's records fit"
    rivals = [name for name in by_value if name != best and shares[name] >= shares[best]]
    also = f", as for {', '.join(rivals)}" if rivals else ""
    return {column.name: Near(best, shares[best], why + also)}


def _with_near_values(fit: Fitted, listed: Collection[str]) -> Fitted:
    """Name the most similar listed value of each value that fits in no way, the most frequent values first."""
    if len(listed) > _MOST_COMPARED:
        return fit
    first = sorted(fit.others, key=lambda text: (-fit.others[text], text))[:_MOST_NEAR]
    spelled = {value: folded(value) for value in sorted(listed)}
    near = {}
    for text in first:
        likeness = {value: _likeness(folded(text), each) for value, each in spelled.items()}
        best = max(likeness, key=likeness.__getitem__, default="")
        if likeness.get(best, 0) >= _ALIKE:
            near[text] = Near(best, likeness[best], f"the texts are alike by {likeness[best]:.0%}")
    return replace(fit, near={**fit.near, **near})


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one[:_MOST_READ], other[:_MOST_READ], autojunk=False).ratio()


def _share_a_word(one: str, other: str) -> bool:
    if words_of(one) & words_of(other):
        return True
    short, long = sorted((_joined(one), _joined(other)), key=len)
    return len(short) > 2 and long.startswith(short)


def _unclear(name: str, chosen: Sequence[Own], near: Mapping[str, Near]) -> str:
    cure = f"write `rename: {{OUR COLUMN: {name}}}` for the right column"
    if near:
        return f"no column of the table has the name, and the values alone do not decide; {cure}"
    if not chosen:
        return f"no column of the table can be meant by name and values; {cure}"
    return f"several columns of the table can be meant: {', '.join(own.name for own in chosen)}; {cure}"


# Values


def _values(
    column: Wanted, own: Own, wording: Wording, numerals: Callable[[Sequence[str]], Sequence[str]]
) -> Fitted:
    """Return the fit of the values of a column of the table."""
    read = wording.reader(own.shown) or str
    texts = {text: as_read(read(text)) for text in own.texts}
    full = {text: n for text, n in own.texts.items() if texts[text] not in EMPTY}
    fit = Fitted(column.name, own.name, n=sum(full.values()))
    if column.coder is None or not full:
        return fit
    inside = _fits(column.coder, [texts[text] for text in full], numerals)
    unfit = {text: full[text] for text, fits in zip(full, inside, strict=True) if not fits}
    marks = {text: "" for text in unfit if text.casefold() in MARKS}
    others = {text: n for text, n in unfit.items() if text not in marks}
    fit = replace(fit, words=marks, others=others, n=fit.n - sum(full[text] for text in marks))
    fit = replace(fit, hints=("marks of missing cells",) if marks else ())
    if column.grid is not None:
        return _dated(fit, column.grid, [texts[text] for text in full if text not in unfit])
    return _mapped(fit, column.listed)


def _fits(
    coder: Coder, texts: Sequence[str], numerals: Callable[[Sequence[str]], Sequence[str]]
) -> Sequence[bool]:
    """Return True for each text inside the column's domain."""
    read = list(numerals(texts)) if coder.of_numbers else list(texts)
    reader = coder.begin()
    inside: Sequence[bool] = (~reader.outside(read) & (np.asarray(reader.codes(read)) != BAD)).tolist()
    return inside


def _mapped(fit: Fitted, listed: frozenset[str]) -> Fitted:
    """Map values that are no value of a list: other spellings first, then truth values or beginnings of values."""
    respelled = {text: value for text in fit.others if (value := _respelled(text, listed)) is not None}
    rest = [text for text in fit.others if text not in respelled]
    left = listed - frozenset(respelled.values())
    truths = _truths(rest, left)
    meant = truths or _initials(rest, left)
    respelled, meant = _apart(respelled), truths or _apart(meant)
    hint = f"{'truth values' if truths else 'beginnings of values'}: check the words"
    spelled = "other spellings: check the words"
    hints = [text for text, there in ((spelled, respelled), (hint, meant)) if there]
    words = respelled | meant
    others = {text: n for text, n in fit.others.items() if text not in words}
    return replace(fit, words={**fit.words, **words}, others=others, hints=(*hints, *fit.hints))


def _respelled(text: str, listed: frozenset[str]) -> str | None:
    """Return the listed value that a text spells in another way, or None."""
    if (found := near(text, listed).value) is not None:
        return found
    alike = [value for value in listed if _spelled(value) == _spelled(text) != ""]
    return alike[0] if len(alike) == 1 else None


def _spelled(text: str) -> str:
    """Return a text of words without case and separators; nothing for a text with a sign that may mean something.

    A hyphen means something before a number or at an end: `-1`, `A-`.
    """
    plain = folded(text)
    if not re.fullmatch(r"[^\W_]+(?:[-_ /][^\W_]+)*", text.strip()) or not any(map(str.isalpha, plain)):
        return ""
    return "".join(filter(str.isalnum, plain))


def _apart(words: Mapping[str, str]) -> dict[str, str]:
    """Return words without two texts for one value, unless both spell the value: nobody can tell which is meant."""
    texts: dict[str, set[str]] = {}
    for text, value in words.items():
        texts.setdefault(value, set()).add(_spelled(text) or text.strip())
    return {text: value for text, value in words.items() if len(texts[value]) == 1}


def _truths(texts: Sequence[str], listed: frozenset[str]) -> dict[str, str]:
    true, false = ([v for v in listed if v.casefold() in words] for words in (_TRUE, _FALSE))
    if len(true) != 1 or len(false) != 1:
        return {}
    words = dict.fromkeys(_TRUE, true[0]) | dict.fromkeys(_FALSE, false[0])
    return {text: words[text.casefold()] for text in texts if text.casefold() in words}


def _initials(texts: Sequence[str], listed: frozenset[str]) -> dict[str, str]:
    """Return the only listed value that begins with each text, or that each text begins with."""
    if not texts or len(listed) > _MOST_INITIALS:
        return {}
    found = {}
    for text in texts:
        plain = text.casefold()
        fitting = [v for v in listed if v.casefold().startswith(plain) or plain.startswith(v.casefold())]
        if len(fitting) == 1:
            found[text] = fitting[0]
    return found if len({*found.values()}) == len({*map(str.casefold, found)}) else {}


def _dated(fit: Fitted, grid: DateGrid, texts: Collection[str]) -> Fitted:
    """Name the form of dates that nearly all unfit texts have."""
    total = sum(fit.others.values())
    if not total:
        rival = _rival(texts, grid)
        doubt = f"every date fits {rival}, too: if that is meant, write `dates: {{{fit.name}: {rival}}}`"
        return replace(fit, hints=(doubt, *fit.hints)) if rival else fit
    days = {form: _days(fit.others, form) for form in DATE_FORMS if form != grid.form}
    shares = {form: sum(fit.others[text] for text in found) for form, found in days.items()}
    form = max(shares, key=shares.__getitem__)
    if shares[form] < MOSTLY * total:
        unread = unread_dates(fit.others)
        return fit if unread is None else replace(fit, hints=(unread.words, *fit.hints))
    rivals = [other for other, share in shares.items() if other != form and share == shares[form]]
    unsure = f"; {rivals[0]} is possible, too: check the dates" if rivals else ""
    first, below = (float(edge) / grid.per_day for edge in (grid.edges[0], grid.edges[-1]))
    inside = {text for text, day in days[form].items() if first <= day < below}
    others = {text: n for text, n in fit.others.items() if text not in inside}
    return replace(fit, form=form, others=others, hints=(f"dates written as {form}{unsure}", *fit.hints))


def _rival(texts: Collection[str], grid: DateGrid) -> str:
    """Return a form in which all dates of the job's form are days of its domain, and other days; or an empty text."""
    first, below = (float(edge) / grid.per_day for edge in (grid.edges[0], grid.edges[-1]))
    meant = _days(texts, grid.form)
    for form in DATE_FORMS:
        days = _days(texts, form)
        if len(days) == len(meant) and days != meant and all(first <= day < below for day in days.values()):
            return form
    return ""


def _days(texts: Iterable[str], form: str) -> dict[str, float]:
    """Return the number of the day of each text that is a date of a form."""
    read = reader_of(form)
    return {text: day for text in texts if not math.isnan(day := read(text))}
