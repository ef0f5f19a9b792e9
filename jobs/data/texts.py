"""Texts that a job puts into a release or a report: names of columns, labels of taxonomies, values of domains.

Everybody reads the texts, in a terminal, a spreadsheet or an editor. A text must not begin a formula, break a line,
turn the direction of writing, or hide a part of itself. Two texts of a column must not be spellings of the same
value.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

MOST_CHARACTERS = 256
_FORMULA = re.compile(r"[=+\-@]")
_NO_FORMULA = re.compile(r"[+-]\s?[0-9.,]+([^0-9=*^&|!@()\"'+][^=*^&|!@()\"'+]*|\u2013\+[0-9.,]+)?|[+\-/]+")
"""Number with its sign and its unit, as -5 %, -10 mmHg, -5 to 5 or +1–+2; or signs alone, as in a grade."""
_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Invisible characters: the characters that Unicode lets a program ignore, and the empty pattern of Braille."""
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Categories of Unicode: control and format characters, halves of pairs, separators of lines and paragraphs."""
_JOINERS = "\u200c\u200d"
"""Marks needed by Persian, Indic scripts and emoji inside a word."""


def fault_of(text: str) -> str | None:
    """Return the reason against a text in a release or a report, or None."""
    if len(text) > MOST_CHARACTERS:
        return f"it has more than {MOST_CHARACTERS} characters"
    for place, character in enumerate(text):
        if is_unseen(character) and not _joins(text, place):
            return f"it has a character that is not seen (U+{ord(character):04X})"
    if text != text.strip():
        return "it has a blank at an end"
    if is_formula(text):
        return f"a spreadsheet takes a text that begins with {text[0]} for a formula"
    return None


def cure_of(fault: str) -> str:
    """Return what to write instead of a text with a fault of :func:`fault_of`."""
    return next(cure for words, cure in _CURES.items() if words in fault)


_CURES = {
    "characters": f"write at most {MOST_CHARACTERS} characters",
    "not seen": "write the text without the character",
    "blank": "remove the blank",
    "formula": "write a text that begins with a letter or a digit",
}
"""Remedies by words of the fault."""


def is_unseen(character: str) -> bool:
    """Return whether nothing is seen of a character, a blank left out."""
    return unicodedata.category(character) in _UNSEEN or bool(_IGNORED.match(character))


def _joins(text: str, place: int) -> bool:
    """Return True if a character is a joiner between two non-ASCII characters."""
    if text[place] not in _JOINERS or place == 0:
        return False
    around = text[place - 1] + text[place + 1 : place + 2]
    return len(around) == 2 and not any(character.isascii() for character in around)


def is_formula(text: str) -> bool:
    """Return True if a spreadsheet takes a text for a formula. A sign before a number makes no formula."""
    plain = unicodedata.normalize("NFKC", text)
    return bool(_FORMULA.match(plain)) and len(plain) > 1 and not _NO_FORMULA.fullmatch(plain)


_CAPITALS = {
    **dict(zip("АВЕЅІЈКМНОРСТУХԚԜѴҺ", "ABESIJKMHOPCTYXQWVH", strict=True)),  # Cyrillic
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX", strict=True)),  # Greek
}
_SMALL = {
    **dict(zip("асԁеһіјоԛрѕухѵԝӏ", "acdehijoqpsyxvwl", strict=True)),
    **dict(zip("αικνορυχ", "aikvopux", strict=True)),
    "ı": "i",
}
_MARKS = {**dict.fromkeys(map(ord, "‘’‛′`´"), "'"), **dict.fromkeys(map(ord, "“”″"), '"'), ord("−"): "-"}
_LOOK_ALIKE = {ord(letter): like for letter, like in {**_CAPITALS, **_SMALL}.items()}
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])\s+(?=[0-9])")


def folded(text: str) -> str:
    """Return the common form of all spellings of a value, except for letters of other scripts."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = unicodedata.normalize("NFKC", plain)  # NFKC may change the result of case folding again
    plain = _BETWEEN_DIGITS.sub("_", plain.strip())  # `1 1/2` is not `11/2`
    return "".join(map(_seen, plain.translate(_MARKS)))


def in_latin(text: str) -> str:
    """Return the common form with Latin letters in place of similar letters."""
    return folded(unicodedata.normalize("NFKC", text).translate(_LOOK_ALIKE))


@lru_cache(maxsize=1 << 12)
def _seen(character: str) -> str:
    """Return a character in the form for comparison: empty for an invisible character, `-` for any dash."""
    kind = unicodedata.category(character)
    if kind[0] == "Z" or is_unseen(character):
        return ""
    return "-" if kind == "Pd" else character


_FORMS: tuple[Callable[[str], str], ...] = (folded, in_latin)


def are_alike(one: str, other: str) -> bool:
    """Return True if two texts are spellings of the same value."""
    return any(form(one) == form(other) for form in _FORMS)


def alike(texts: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two different texts for the same value, or None."""
    seen: tuple[dict[str, str], ...] = tuple({} for _ in _FORMS)
    for text in texts:
        for form, known in zip(_FORMS, seen, strict=True):
            first = known.setdefault(form(text), text)
            if first != text:
                return first, text
    return None
