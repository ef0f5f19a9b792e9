"""Spellings of one value: texts that differ for a program and look alike to a reader.

`HIV`, `hiv` and `HIV` with a blank behind are three values to K and C, and one to whoever reads the table. Texts are
compared after NFKC, without case, without blanks and characters that are not seen. They are compared once more with
letters of other scripts replaced by the Latin letters that look like them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

from jobs.data.texts import is_unseen

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
    """Return the form in which spellings of one value are the same, but for letters of other scripts."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = unicodedata.normalize("NFKC", plain)  # case folding may leave what NFKC changes again
    plain = _BETWEEN_DIGITS.sub("_", plain.strip())  # `1 1/2` is not `11/2`
    return "".join(map(_seen, plain.translate(_MARKS)))


def in_latin(text: str) -> str:
    """Return the same with letters that look like Latin ones replaced by these."""
    return folded(unicodedata.normalize("NFKC", text).translate(_LOOK_ALIKE))


@lru_cache(maxsize=1 << 12)
def _seen(character: str) -> str:
    """Return a character as it is compared: nothing for one that is not seen, `-` for any dash."""
    kind = unicodedata.category(character)
    if kind[0] == "Z" or is_unseen(character):
        return ""
    return "-" if kind == "Pd" else character


_FORMS: tuple[Callable[[str], str], ...] = (folded, in_latin)


def are_alike(one: str, other: str) -> bool:
    """Return whether two texts are spellings of one value."""
    return any(form(one) == form(other) for form in _FORMS)


def alike(texts: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two different texts that are spellings of one value, or None."""
    seen: tuple[dict[str, str], ...] = tuple({} for _ in _FORMS)
    for text in texts:
        for form, known in zip(_FORMS, seen, strict=True):
            first = known.setdefault(form(text), text)
            if first != text:
                return first, text
    return None
