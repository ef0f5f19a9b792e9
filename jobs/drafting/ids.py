"""Ids and names of people, recognized from values and names of columns. All functions are pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from jobs.drafting.counting import Counted
from jobs.drafting.kinds import POST, SMALL, words_in_order, words_of
from jobs.plain_columns import THINGS

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
_COMPOUND = re.compile(rf"[{SMALL}]{{3,}}(nr|nummer|kennung)")
"""German compounds, such as kartennr and versichertennummer."""
_IDS = frozenset({"id", "ids", "no", "nr", "number", "num", "code", "key", "uid", "uuid", "guid"})
_NUMBERS = frozenset({"id", "ids", "uid", "uuid", "guid", "no", "nr", "num", "number", "nummer", "kennung"})
"""Words at the end of a name for an id. Codes are often of things: region_code."""
_PERSON = (
    "(?:patient|pat|person|personal|personnel|customer|client|member|subject|user|case|respondent|participant"
    "|proband|household|employee|worker|staff|student|pupil|teacher|donor|resident|tenant|citizen|child|baby"
    "|mother|father|parent|applicant|inmate|driver|doctor|physician|nurse|encounter"
    "|mitarbeiter|kunde|klient|schüler|schueler|teilnehmer|versicherte|mitglied|spender|bewohner|bürger|buerger)"
    "(?:s|n|en|in|innen)?"
)
_PERSON_WORD = re.compile(_PERSON)
_JOINED_ID = re.compile(rf"{_PERSON}(?:{'|'.join(sorted(_NUMBERS | _IDS))})")
_THINGS = (
    (THINGS - {"file", "test"})  # The file and the test are often of one person.
    | POST
    | frozenset(
        word
        for words in (
            "room floor building site center centre facility zone area block route line location place",
            "state province county municipality community tract",
            "article item model version batch lot machine sensor supplier vendor merchant project",
            "category class group cluster stratum sector industry occupation language cohort arm wave round",
            "source disposition status reason diagnosis icd procedure concept question course",
            "week month day year quarter hour",
        )
        for word in words.split()
    )
)
"""Words beside an id for a thing, which many people share."""
_GERMAN_THING = re.compile(
    "(?:woche|monat|tag|jahr|filial|laden|markt|artikel|produkt|station|abteilung|klinik|krankenhaus|ort|gemeinde"
    "|kreis|bezirk|region|land|raum|zimmer|haus|bett|gerät|geraet|schul|klasse|gruppe|projekt|standort"
    "|kostenstelle|postleit|straße|strasse|linie|zone|charge|modell|typ)(?:e|s|es|n|en)?(?:nr|nummer|kennung)?"
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
        or any(_JOINED_ID.fullmatch(word) or _is_compound(word) for word in words)
        or _is_numbered_person(words_in_order(name))
        or bool(words & _HOMES and words & _IDS)
        or bool(words & _PEOPLE and (words & _IDS or len(words) == 1))
    )


def _is_compound(word: str) -> bool:
    return bool(_COMPOUND.fullmatch(word)) and not _is_thing(word)


def _is_numbered_person(words: Sequence[str]) -> bool:
    """Return True if the last word is an id and the word before is a person: employee_no, PatientenCode."""
    return len(words) > 1 and words[-1] in _NUMBERS | _IDS and _PERSON_WORD.fullmatch(words[-2]) is not None


def _is_thing(word: str) -> bool:
    return bool({word, word.removesuffix("s")} & _THINGS) or _GERMAN_THING.fullmatch(word) is not None


def is_a_numbering(name: str) -> bool:
    """Return True if a column's name is an id, and no word says that the id is of a thing: hadm_id, lfd_nr."""
    words = [word for word in words_in_order(name) if not word.isdigit()]
    is_id = bool(words) and (words[-1] in _NUMBERS or words[0] == "id")
    return is_id and not any(map(_is_thing, words))


def is_shared(name: str) -> bool:
    """Return True if strangers may share a value by the column's name: a phone or an address, and no number."""
    return bool(words_of(name) & _SHARED)


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
