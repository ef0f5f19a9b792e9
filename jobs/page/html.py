"""HTML elements as trees of the standard library, which escapes every text.

No attribute holds a script, a style or an address of another machine; the policy of the page forbids all three.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

from jobs.errors import printable
from jobs.page.style import STYLE

Content = Element | str | None
"""Child of an element; None is left out."""


_SPACE = "\u00a0"
"""Space without a break, as before a sign of percent; :func:`printable` would make it a blank."""


def tag(name: str, /, *content: Content, **attributes: str | int | float) -> Element:
    """Return an element. attributes: a trailing or an inner underscore stands for no character or for a hyphen."""
    made = Element(name, {key.strip("_").replace("_", "-"): str(value) for key, value in attributes.items()})
    for child in content:
        if isinstance(child, Element):
            made.append(child)
        elif child is not None:
            _add_line(made, _SPACE.join(map(printable, child.split(_SPACE))))
    return made


def isolated(text: str) -> Content:
    """Return a text beside other texts. A text of a right-to-left script has an element, so it moves no neighbour."""
    return tag("bdi", text) if _FROM_RIGHT.search(text) else text


_LETTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff"
_FROM_RIGHT = re.compile(f"([{_LETTERS}]+(?:(?:(?!\\. )[-0-9 {_SPACE}'\"’./%+])*[{_LETTERS}]+)*)")
"""Words of right-to-left scripts, with the numbers and signs between two words."""
_ONLY_TEXT = ("bdi", "title")
"""Elements without elements in them."""


def _add_line(element: Element, text: str) -> None:
    """Add a text. Words of right-to-left scripts stand alone, so the signs beside them keep their place."""
    if element.tag in _ONLY_TEXT or text.isascii():
        _add_text(element, text)
        return
    for place, part in enumerate(_FROM_RIGHT.split(text)):
        if place % 2:
            element.append(tag("bdi", part))
        elif part:
            _add_text(element, part)


def _add_text(element: Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


def rows(*cells: Iterable[Content], head: Iterable[Content] = ()) -> Element:
    """Return a table. The first cell of a row names the row."""
    body = [
        tag("tr", *(tag("td", cell) if place else _named(cell) for place, cell in enumerate(row)))
        for row in cells
    ]
    named = [*(tag("th", cell, scope="col") for cell in head)]
    return tag("table", tag("thead", tag("tr", *named)) if named else None, tag("tbody", *body))


def _named(cell: Content) -> Element:
    """Return the cell that names a row. A long word may break anywhere, so the table stays as wide as the page."""
    text = "".join(cell.itertext()) if isinstance(cell, Element) else cell or ""
    is_long = any(len(word) > _LONG for word in text.split())
    return tag("th", cell, scope="row", **({"class_": "long"} if is_long else {}))


_LONG = 20
"""Most characters of a word that a narrow screen has room for."""


def document(title: str, *content: Content) -> str:
    """Return a whole page: one file, without script, and without anything from elsewhere."""
    digest = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        _style(),
    )
    page = tag("html", head, tag("body", tag("main", *content)), lang="en")
    return f"<!DOCTYPE html>\n{tostring(page, encoding='unicode', method='html')}\n"


def _style() -> Element:
    style = Element("style")
    style.text = STYLE
    return style
