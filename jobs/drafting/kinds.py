"""Kinds of values, recognized from values and names of columns. All functions are pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from anonymize.dates import ISO, DateGrid, without_zone
from jobs.drafting.counting import RARE, Counted
from jobs.file.makers import category_9, category_10

MOSTLY = 0.95
"""Share of the records that have to be of a kind."""
MOST_CELLS = 50
"""Most cells of a drafted grid."""
SMALL = "a-zß-öø-ÿ"
"""Small letters of names, for a pattern."""
_WORDS = re.compile(rf"[A-ZÀ-ÖØ-Þ]+s?(?![{SMALL}])|[A-ZÀ-ÖØ-Þ]?[{SMALL}]+|[0-9]+")
POST = frozenset({"zip", "zipcode", "postal", "postcode", "plz", "cap", "pincode", "codepostal"})
_ILLNESS = frozenset(
    {"icd", "diag", "diagnosis", "diagnoses", "dx", "disease", "diseases", "cause", "icdcode"}
    | {"cancer", "tumor", "tumour"}
)
_GERMAN_ILLNESS = re.compile(rf"[{SMALL}]*(?:diagnosen?|(?:krank|erkrank)(?:heit|ung)(?:en)?|krebs)")
"""German words and compounds, such as hauptdiagnose."""
_SENSITIVE = frozenset(
    {"illness", "condition", "hiv", "medication", "drug", "religion", "religious", "denomination"}
    | {"salary", "wage", "wages", "income", "earnings", "sexual", "sexuality"}
)
_GERMAN_SENSITIVE = re.compile(
    rf"[{SMALL}]*(?:einkommen|konfession|religion)|(?:konfessions|religions)[{SMALL}]+"
    "|(?:monats|jahres|brutto|netto|grund)*gehalt"
)
_COUNTS = frozenset({"number", "num", "count", "n", "no", "anzahl", "date", "time", "datum"})


def words_of(name: str) -> frozenset[str]:
    """Return the words of a column's name."""
    return frozenset(words_in_order(name))


def words_in_order(name: str) -> list[str]:
    """Return the words of a column's name, as they follow each other."""
    return [word.lower() for word in _WORDS.findall(name)]


def sounds_sensitive(name: str) -> bool:
    """Return True if a column's name suggests sensitive values, and not their number or their time."""
    words = words_of(name)
    is_sensitive = bool(words & _SENSITIVE) or any(map(_GERMAN_SENSITIVE.fullmatch, words))
    return (is_sensitive or _name_an_illness(words)) and not words & _COUNTS


def _name_an_illness(words: frozenset[str]) -> bool:
    return bool(words & _ILLNESS) or any(map(_GERMAN_ILLNESS.fullmatch, words))


# Numbers


@dataclass(frozen=True)
class Range:
    """Grid of numbers: ``low`` to below ``high``."""

    low: Decimal
    high: Decimal
    step: Decimal

    def covers(self, number: float) -> bool:
        return float(self.low) <= number < float(self.high)


def range_of(column: Counted) -> Range | None:
    """Return a grid with bounds rounded outward, or None without ends of at least ``RARE`` records.

    Bounds are multiples of ten steps; a step is 1, 2 or 5 times a power of ten. The fewer than ``RARE`` records, or
    records of fewer people, beyond an end do not decide.
    """
    ends = _frequent_ends(column, column.numbers)
    if ends is None or ends[0] == ends[1]:
        return None
    low, high = Decimal(repr(ends[0])), Decimal(repr(ends[1]))
    whole = all(number == int(number) for number in column.numbers.values())
    for step in _steps(high - low, least=Decimal(1) if whole else None):
        coarse = 10 * step
        below, above = math.floor(low / coarse) * coarse, (math.floor(high / coarse) + 1) * coarse
        if (above - below) / step <= MOST_CELLS:
            return Range(below, above, step)
    return None


_LEAST_COUNTS = 4
"""Least number of values of a column of small counts."""


def small_counts(column: Counted) -> Range | None:
    """Return a grid with a cell for each number from 0 to a frequent end; None for other columns.

    The frequent values are 0, 1, 2 and so on without a gap: children, visits. Codes of categories begin with 1.
    """
    numbers = sorted(column.numbers[value] for value in column.common if value in column.numbers)
    ends = _frequent_ends(column, column.numbers)
    if ends is None or len(numbers) < _LEAST_COUNTS or numbers != list(range(len(numbers))):
        return None
    return Range(Decimal(0), Decimal(int(ends[1]) + 1), Decimal(1))


def _frequent_ends(column: Counted, numbers: Mapping[str, float]) -> tuple[float, float] | None:
    """Return the ends of a range, each with at least ``RARE`` holders at or beyond it. numbers: by value."""
    ordered = sorted(numbers, key=numbers.__getitem__)
    low, high = column.reached(ordered), column.reached(reversed(ordered))
    if low is None or high is None or numbers[low] > numbers[high]:
        return None
    return numbers[low], numbers[high]


def _steps(width: Decimal, least: Decimal | None) -> Sequence[Decimal]:
    """Return candidates for a step, ascending."""
    exponent = width.adjusted() - 3
    steps = [Decimal(n).scaleb(e) for e in range(exponent, exponent + 6) for n in (1, 2, 5)]
    return [step for step in steps if least is None or step >= least]


# Dates

DATE_FORMS = (
    *(ISO, "DD.MM.YYYY", "MM/DD/YYYY", "DD/MM/YYYY", "YYYY/MM/DD", "DD-MM-YYYY", "MM-DD-YYYY"),
    "YYYYMMDD",
)
"""Forms that are looked for; of equally good forms the first."""
_PACKED = "YYYYMMDD"
_YEARS = range(1850, 2101)
_HALF = 0.5
"""Share of dates from which a frequent other value counts as a code."""


@dataclass(frozen=True)
class Days:
    """Domain of days: ``first`` to below ``below``. rival: another form that fits as many dates; else empty."""

    first: date
    below: date
    step: str
    form: str
    rival: str = ""

    def covers(self, day: float) -> bool:
        return self.first.toordinal() <= day < self.below.toordinal()


def reader_of(form: str) -> Callable[[str], float]:
    """Return the function from a text to the number of its day, NaN for other texts."""
    return DateGrid((Decimal(1), Decimal(2)), form).number


def no_days(column: Counted) -> list[str]:
    """Return frequent values of a column of dates that are no likely days: 00.00.0000, 9999-12-31, 2023-02-30."""
    if column.share_of_numbers >= MOSTLY and not _sounds_dated(column.name):
        return []  # numbers are dates by their column's name alone
    shares = _shares_of_dates(column)
    form = max(DATE_FORMS, key=shares.__getitem__)
    read = reader_of(form)
    is_dated = shares[form] >= _HALF
    return [text for text in column.common if not _is_plausible(read(text))] if is_dated else []


def _shares_of_dates(column: Counted) -> dict[str, float]:
    return {form: _share_of_dates(column, form) for form in DATE_FORMS}


def days_of(column: Counted) -> Days | None:
    """Return the domain of a column of dates, None for other columns."""
    shares = _shares_of_dates(column)
    form = max(DATE_FORMS, key=shares.__getitem__)
    if shares[form] < MOSTLY:
        return None
    read = reader_of(form)
    days = {text: day for text in column.counts if not math.isnan(day := read(text))}
    ends = _frequent_ends(column, days)
    if ends is None:
        return None
    rivals = [other for other, share in shares.items() if share == shares[form]]
    rival = next((other for other in rivals if _differ(column, form, other)), "")
    return _domain(date.fromordinal(int(ends[0])), date.fromordinal(int(ends[1])), form, rival)


def _differ(column: Counted, form: str, other: str) -> bool:
    """Return True if some text is a date of two forms, and not the same day. Every form reads ISO dates alike."""
    days = ((reader_of(form)(text), reader_of(other)(text)) for text in column.counts)
    return any(one != two for one, two in days if _is_plausible(one) and _is_plausible(two))


def have_a_zone(column: Counted) -> bool:
    """Return True if nearly all values are dates with a time and a zone."""
    read = reader_of(ISO)
    zoned = (text for text in column.counts if (local := without_zone(text)) and _is_plausible(read(local)))
    return column.share([*zoned]) >= MOSTLY


@dataclass(frozen=True)
class Unread:
    """Form of dates that no job reads. name: the form in words. cure: what to write instead."""

    name: str
    pattern: re.Pattern[str] = field(repr=False)
    cure: str

    @property
    def words(self) -> str:
        return f"its values look like {self.name}, which no job reads as dates: {self.cure}"


_MONTH_WORDS = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez)[a-zé]{0,6}"
_CLOCK = r"(?:[ T,]+[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?)?"
_YEAR = "(?:18[5-9][0-9]|19[0-9]{2}|20[0-9]{2})"
MONTHS = Unread(
    "months such as 2023-05",
    re.compile(rf"{_YEAR}[-/](?:0[1-9]|1[0-2])"),
    "write the first day, such as 2023-05-01, in the table, and `dates` with `levels: [year, month]`",
)
_UNREAD = (
    MONTHS,
    Unread(
        "months such as 05/2023",
        re.compile(rf"(?:0?[1-9]|1[0-2])[./-]{_YEAR}"),
        "write the first day, such as 01/05/2023 with `form: DD/MM/YYYY`, in the table",
    ),
    Unread(
        "dates with two-digit years",
        re.compile(rf"[0-9]{{1,2}}([./-])[0-9]{{1,2}}\1[0-9]{{2}}{_CLOCK}"),
        "write four digits in the table, and then `dates` with the `form`, such as DD.MM.YYYY or MM/DD/YYYY",
    ),
    Unread(
        "dates with the name of a month",
        re.compile(
            rf"{_MONTH_WORDS}\.?[ -][0-9]{{1,2}}(?:st|nd|rd|th)?,?[ -][0-9]{{2,4}}{_CLOCK}"
            rf"|[0-9]{{1,2}}\.?[ -]?{_MONTH_WORDS}\.?,?[ -]?[0-9]{{2,4}}{_CLOCK}",
            re.IGNORECASE,
        ),
        "write numbers in the table, such as 2023-01-31",
    ),
    Unread(
        "dates with AM and PM",
        re.compile(rf"[0-9]{{1,4}}[./-][0-9]{{1,2}}[./-][0-9]{{1,4}}{_CLOCK} ?[AP]\.?M\.?", re.IGNORECASE),
        "write hours from 0 to 23 in the table, or leave the time out",
    ),
)


def unread_dates(counts: Mapping[str, int]) -> Unread | None:
    """Return the form of nearly all values if the form is one of dates that no job reads.

    counts:  number of records of each value.
    """
    total = sum(counts.values())
    for form in _UNREAD:
        fitting = sum(n for text, n in counts.items() if form.pattern.fullmatch(text))
        if total and fitting >= MOSTLY * total:
            return form
    return None


def _share_of_dates(column: Counted, form: str) -> float:
    read = reader_of(form)
    if form == _PACKED and not _sounds_dated(column.name):
        return 0.0
    fitting = [text for text in column.counts if _is_plausible(read(text))]
    return column.share(fitting)


def _sounds_dated(name: str) -> bool:
    return bool(words_of(name) & {"date", "day", "datum", "dt"})


def _is_plausible(day: float) -> bool:
    return not math.isnan(day) and date.fromordinal(int(day)).year in _YEARS


def _domain(first: date, last: date, form: str, rival: str) -> Days:
    """Round days outward: to months for cells of days, to years for cells of months, else to decades."""
    width = (last - first).days
    if width <= 7 * MOST_CELLS:
        step = "1d" if width <= MOST_CELLS else "7d"
        below = date(last.year + last.month // 12, last.month % 12 + 1, 1)
        return Days(first.replace(day=1), below, step, form, rival)
    if width <= 31 * 3 * MOST_CELLS:
        step = "1mo" if width <= 31 * (MOST_CELLS - 12) else "3mo"
        return Days(date(first.year, 1, 1), date(last.year + 1, 1, 1), step, form, rival)
    step = "1y" if width <= 366 * (MOST_CELLS - 20) else "5y"
    return Days(date(first.year // 10 * 10, 1, 1), date(last.year // 10 * 10 + 10, 1, 1), step, form, rival)


# Codes


def icd_of(column: Counted) -> str | None:
    """Return the ICD version of a column's codes, or None."""
    named = _name_an_illness(words_of(column.name))
    if column.share([v for v in column.counts if category_10(v)]) >= MOSTLY:
        dotted = column.share([v for v in column.counts if "." in v])
        return "10" if named or dotted >= 0.5 else None
    fits_9 = column.share([v for v in column.counts if category_9(v)]) >= MOSTLY
    return "9" if fits_9 and named and len(column.counts) > 2 * RARE else None


def prefixes_of(column: Counted) -> list[int] | None:
    """Return lengths of prefixes for ZIP-like codes, None for other columns.

    ZIP-like: the name says so, or digits of one length from 4 to 6 begin with a zero in some values.
    """
    lengths = {len(value) for value in column.common}
    if not lengths or not all(re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z -]*", value) for value in column.common):
        return None
    named = bool(words_of(column.name) & POST)
    zeros = any(value.startswith("0") for value in column.common)
    digits = all(value.isdigit() for value in column.common)
    if not named and not (digits and zeros and lengths in ({4}, {5}, {6})):
        return None
    longest = max(lengths)
    return sorted({1, max(1, (longest + 1) // 2)}) if longest > 1 else None


@dataclass(frozen=True)
class Post:
    """Form of postal codes of letters and digits.

    name:    the codes, in words. parts: the levels from coarse to fine, in words.
    pattern: a code, with a group for each part; a part includes the parts before.
    """

    name: str
    parts: str
    pattern: re.Pattern[str] = field(repr=False)

    def levels(self, code: str) -> list[str]:
        """Return the groups of a code, from coarse to fine, without the blank at the end of a group."""
        found = self.pattern.fullmatch(code)
        assert found is not None, "a code of the form"
        return [code[: found.end(number)] for number in range(1, self.pattern.groups + 1)]


_POSTS = tuple(
    Post(name, parts, re.compile(pattern, re.IGNORECASE))
    for name, parts, pattern in (
        (
            "UK postcodes",
            "area (SW), district (SW1A) and sector (SW1A 1)",
            "([A-Z]{1,2})([0-9][0-9A-Z]?)( ?[0-9])[A-Z]{2}",
        ),
        ("outward codes of UK postcodes", "area (SW)", "([A-Z]{1,2})[0-9][0-9A-Z]?"),
        (
            "Canadian postal codes",
            "province (K), area (K1A) and block (K1A 0)",
            "([A-Z])([0-9][A-Z])( ?[0-9])[A-Z][0-9]",
        ),
        ("Dutch postcodes", "region (12) and district (1234)", "([1-9][0-9])([0-9]{2}) ?[A-Z]{2}"),
    )
)


def post_of(column: Counted) -> Post | None:
    """Return the form of nearly all values, postal codes of letters and digits; None for other columns.

    Codes without a blank are postal codes by the name of their column alone.
    """
    is_named = bool(words_of(column.name) & POST)
    for post in _POSTS:
        fitting = [value for value in column.counts if post.pattern.fullmatch(value)]
        if fitting and column.share(fitting) >= MOSTLY:
            blanks = column.share([value for value in fitting if " " in value])
            return post if is_named or blanks >= MOSTLY else None
    return None


def grouped_by_post(post: Post, codes: Sequence[str]) -> dict[str, Any]:
    """Return a tree of postal codes below `*`."""
    tree: dict[str, Any] = {}
    for code in codes:
        inside = tree
        for label in post.levels(code):
            inside = inside.setdefault(label, {})
        inside[code] = {}
    return {"*": _with_lists(tree)}


def _with_lists(tree: Mapping[str, Any]) -> Any:
    """Return a tree with lists of codes in the place of the groups that have no group below."""
    if not any(tree.values()):
        return list(tree)
    return {label: _with_lists(below) for label, below in tree.items()}


# Order

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SCALES: Sequence[tuple[str, Sequence[str]]] = (
    ("months", _MONTHS),
    ("months", [month[:3] for month in _MONTHS]),
    ("days of the week", _DAYS),
    ("days of the week", [day[:3] for day in _DAYS]),
    ("a scale from very low to very high", ("very low", "low", "medium", "high", "very high")),
    ("a scale from low to high", ("low", "moderate", "high")),
    ("a scale from none to very severe", ("none", "mild", "moderate", "severe", "very severe")),
    ("a scale from never to always", ("never", "rarely", "sometimes", "often", "always")),
    ("a scale from very poor to excellent", ("very poor", "poor", "fair", "good", "very good", "excellent")),
    (
        "a scale of agreement",
        (
            *("strongly disagree", "disagree", "somewhat disagree", "slightly disagree"),
            *("neither agree nor disagree", "neutral", "undecided"),
            *("slightly agree", "somewhat agree", "agree", "strongly agree"),
        ),
    ),
    (
        "a scale of agreement",
        (
            *("stimme überhaupt nicht zu", "stimme gar nicht zu", "stimme nicht zu", "stimme eher nicht zu"),
            *("teils/teils", "teils teils", "teils, teils", "neutral", "unentschieden"),
            *("stimme eher zu", "stimme zu", "stimme voll zu", "stimme voll und ganz zu"),
        ),
    ),
    (
        "a scale of agreement",
        (
            *("trifft überhaupt nicht zu", "trifft gar nicht zu", "trifft nicht zu", "trifft eher nicht zu"),
            *("teils/teils", "teils teils", "teils, teils", "neutral", "unentschieden"),
            *("trifft eher zu", "trifft zu", "trifft voll zu", "trifft voll und ganz zu"),
        ),
    ),
    (
        "a scale of satisfaction",
        (
            *("very dissatisfied", "dissatisfied", "somewhat dissatisfied"),
            *("neither satisfied nor dissatisfied", "neutral"),
            *("somewhat satisfied", "satisfied", "very satisfied"),
        ),
    ),
    ("sizes from XS to XXL", ("xs", "s", "m", "l", "xl", "xxl")),
    ("sizes from small to large", ("small", "medium", "large")),
    ("Roman numerals", ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")),
)
"""Usual scales, each with its name for the comment in a draft."""
_FIRST = "the first number in each value"
_ONE_NUMBER = r"[0-9]{1,9}(?:\.[0-9]+)?"
_NUMBERED = re.compile(
    rf"[^0-9.,+\-\u2212]{{0,3}}({_ONE_NUMBER})"
    rf"(?:[^0-9]*|[^0-9]{{0,6}}(?:[-\u2010-\u2015]|to|bis|until|\.\.)[^0-9.,+\-]{{0,3}}({_ONE_NUMBER})[^0-9]*)"
)
"""Text of one number without a sign and with words around, or of a range of two numbers."""
_LESS = ("<", "under", "bis ")
_RANKED = re.compile(
    rf"((?:grade|stage|level|class|step|phase|tier|year|quartile|quintile|decile|score"
    rf"|[{SMALL}]*(?:stufe|stadium|grad|klasse|jahrgang))[ _-]?)([0-9IVXivx].*)",
    re.IGNORECASE,
)
"""Text of a word for a rank, and of the rank."""


@dataclass(frozen=True)
class Ordered:
    """Values in their order. scale: the scale that was assumed, in words."""

    values: Sequence[str] = field(repr=False)
    scale: str


def ordered(values: Sequence[str], numbers: Mapping[str, float]) -> Ordered | None:
    """Return values in their order if the order is obvious: numbers, ranges, ordinals and usual scales.

    numbers:  the value as a number, for values that are numbers.
    """
    if len(values) < 3:
        return None
    if (ranks := _ranks(values)) is not None:
        found = ordered(list(ranks), numbers)
        return found and Ordered([ranks[rank] for rank in found.values], found.scale)
    if all(value in numbers for value in values):
        return Ordered(sorted(values, key=lambda value: (numbers[value], value)), "numbers")
    words = {value: " ".join(re.split(r"[\s_-]+", value.casefold())) for value in values}
    for name, scale in _SCALES:
        places = {word: place for place, word in enumerate(scale)}
        if all(word in places for word in words.values()):
            return Ordered(sorted(values, key=lambda value: places[words[value]]), name)
    read = {value: _NUMBERED.fullmatch(value) for value in values}
    if any(m and m[2] and float(m[2]) < float(m[1]) for m in read.values()):
        return None
    keys = {value: (float(m[1]), not value.startswith(_LESS)) for value, m in read.items() if m}
    patterns = {re.sub(r"[0-9.]+", "0", value) for value in values}
    if len(keys) < len(values) or len(set(keys.values())) < len(values):
        return None
    is_regular = len(patterns) <= 3 or {value.strip("0123456789") for value in values} <= {
        "st",
        "nd",
        "rd",
        "th",
    }
    return Ordered(sorted(values, key=keys.__getitem__), _FIRST) if is_regular else None


def _ranks(values: Sequence[str]) -> dict[str, str] | None:
    """Return values by their ranks, if all values have the same word before a rank: Grade 1, Stage IV."""
    found = {value: _RANKED.fullmatch(value) for value in values}
    ranks = {match[2]: value for value, match in found.items() if match}
    words = {match[1].casefold() for match in found.values() if match}
    return ranks if len(ranks) == len(values) and len(words) == 1 else None
