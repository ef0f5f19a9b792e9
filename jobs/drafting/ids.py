"""Ids and names of people, recognized from values and names of columns. All functions are pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from jobs.drafting.counting import Counted
from jobs.drafting.kinds import SMALL, words_of

_PARTS_OF_NAMES = frozenset(
    {"surname", "forename", "firstname", "lastname", "fullname", "initials"}
    | {"nachname", "vorname", "familienname", "nom", "prenom", "apellido", "cognome"}
    | {
        "geburtsname",
        "mädchenname",
        "maedchenname",
        "rufname",
        "maiden",
        "username",
        "nickname",
        "login",
        "handle",
    }
)
_OF_ONE_PERSON = frozenset(
    {"ssn", "nin", "nhs", "mrn", "iban", "passport", "plate", "pid", "barcode", "ean"}
    | {"email", "phone", "telephone", "mobile", "fax", "telefon", "handy"}
)
_SHARED = frozenset(
    {"email", "mail", "phone", "telephone", "mobile", "fax", "telefon", "handy", "telefonnummer"}
)
"""Words for ways to reach people, which strangers may share."""
_PEOPLE = frozenset(
    {"patient", "person", "customer", "member", "subject", "user", "case", "client", "insurance"}
    | {"respondent", "participant", "proband"}
)
_HOMES = frozenset({"household", "haushalt", "family", "familie"})
_COMPOUND = re.compile(rf"(?!wochen|monats|tages|jahres)[{SMALL}]{{3,}}(nr|nummer)")
"""German compounds, such as kartennr and versichertennummer."""
_IDS = frozenset({"id", "ids", "no", "nr", "number", "num", "code", "key", "uid", "uuid", "guid"})
_JOINED_ID = re.compile(
    r"(patient|person|customer|member|subject|user|case|client|respondent|household)s?(id|ids|no|nr|number)"
)
_NUMBERED_ID = re.compile(r"([A-Za-z]{1,12}[-_/ ]?)[0-9]{3,}")


def sounds_like_a_surname(name: str) -> bool:
    """Return True if a column's name suggests a part of people's names, which is short of values but names people."""
    words = words_of(name)
    return bool(words & _PARTS_OF_NAMES) or (
        "name" in words and bool(words & {"first", "last", "family", "given"})
    )


def sounds_like_an_id(name: str) -> bool:
    """Return True if a column's name suggests a number or an address of one person."""
    words = words_of(name)
    return (
        bool(words & _OF_ONE_PERSON)
        or any(_JOINED_ID.fullmatch(word) or _COMPOUND.fullmatch(word) for word in words)
        or bool(words & _HOMES and words & _IDS)
        or bool(words & _PEOPLE and (words & _IDS or len(words) == 1))
    )


def names_the_person(name: str) -> bool:
    """Return True if equal values of a column suggest the same person: a number, and no name, phone or address."""
    return sounds_like_an_id(name) and not words_of(name) & _SHARED


def are_numbered(values: Collection[str]) -> bool:
    """Return True for texts that differ in a number of three digits or more alone, such as C-00123."""
    found = [_NUMBERED_ID.fullmatch(value) for value in values]
    return all(found) and len({match[1] for match in found if match}) == 1


_MANY = 100
_LEAST_DENSE = 0.9
_MOST_UNEVEN = 0.6
_DIGITS_OF_ID = re.compile(r"[0-9]{7,}")


def follow_each_other(column: Counted) -> bool:
    """Return True for more than ``_MANY`` whole numbers nearly without a gap, more evenly frequent than by chance.

    Numbers drawn by chance, each n times on average, have a variance of n records. Rows of numbered people, 1 to 4
    each, have half of it.
    """
    numbers = [*column.numbers.values()]
    if len(numbers) <= _MANY or not all(number == int(number) for number in numbers):
        return False
    records = [column.counts[text] for text in column.numbers]
    mean = sum(records) / len(records)
    variance = sum((n - mean) ** 2 for n in records) / len(records)
    width = max(numbers) - min(numbers) + 1
    return len(numbers) >= _LEAST_DENSE * width and variance <= _MOST_UNEVEN * mean


def are_long_numbers(values: Collection[str]) -> bool:
    """Return True for numbers of seven digits or more, all of one length, such as numbers of cards."""
    return len({*map(len, values)}) == 1 and all(map(_DIGITS_OF_ID.fullmatch, values))
