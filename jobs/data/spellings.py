"""Spellings of one value: texts that differ for a program and look alike to a reader.

`HIV`, `hiv` and `HIV` with a blank behind are three values to K and C, and one to whoever reads the table. Texts are
compared after NFKC, without case, without blanks and invisible characters. Letters and marks of other scripts that
look like Latin ones are taken for these.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_LOOK_ALIKE = str.maketrans(
    {
        # Cyrillic, by small letters; capitals are folded before
        **dict(zip("авекмнорстухіјѕԁԛԝһӏ", "abekmhopctyxijsdqwhl", strict=True)),
        # Greek
        **dict(zip("αβεζηικμνορτυχ", "abezhikmnoptyx", strict=True)),
        **dict.fromkeys("‘’‛′`´", "'"),
        **dict.fromkeys("“”″", '"'),
    }
)
_SELECTORS = frozenset(map(chr, (0x034F, *range(0xFE00, 0xFE10))))
"""Marks that change how a character is drawn, or nothing."""


def folded(text: str) -> str:
    """Return the form in which spellings of one value are the same."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    # Case folding may leave what NFKC changes again.
    plain = unicodedata.normalize("NFKC", plain).translate(_LOOK_ALIKE)
    return "".join(map(_shown, plain))


def _shown(character: str) -> str:
    """Return a character as it is compared: nothing for one that is not seen, `-` for any dash."""
    kind = unicodedata.category(character)
    if (kind[0] in "ZC" and kind != "Co") or character in _SELECTORS:
        return ""
    return "-" if kind == "Pd" else character


def alike(texts: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two different texts that are spellings of one value, or None."""
    seen: dict[str, str] = {}
    for text in texts:
        first = seen.setdefault(folded(text), text)
        if first != text:
            return first, text
    return None
