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


STYLE = """
:root { color-scheme: light dark; --ink: #1d2129; --soft: #545b66; --line: #d4d8de; --page: #ffffff; --box: #f4f6f8;
  --bar: #2f6fb5; --bad: #a3261b; --link: #1a56a0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #a9b0bb; --line: #3a404a; --page: #16181d;
  --box: #1f232a; --bar: #6aa5e6; --bad: #ff9f94; --link: #8cbcf5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  overflow-wrap: break-word; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; max-width: 46rem; }
a { color: var(--link); }
.soft { color: var(--soft); }
.warning { background: var(--box); border-left: .3rem solid var(--bad); padding: .7rem 1rem; margin: .6rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; }
td:nth-child(2):not(:last-child), thead th:nth-child(2) { white-space: nowrap; overflow-wrap: normal; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 600; min-width: 7rem; }
th.long { overflow-wrap: anywhere; }
td.number, th.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
.bars td, .bars th { border: 0; padding: .12rem .8rem .12rem 0; font-weight: 400; }
.bars th { width: 32%; overflow-wrap: anywhere; }
.bars td.number { width: 6.5rem; }
.bars svg { display: block; width: 100%; height: .9rem; margin-top: .3rem; }
rect { fill: var(--bar); }
ul { margin: .4rem 0; padding-left: 1.2rem; max-width: 46rem; }
li { margin: .2rem 0; }
dt { font-weight: 600; margin-top: .5rem; }
dd { margin: 0 0 .3rem; max-width: 46rem; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
@media (max-width: 34rem) { tbody th { min-width: 4.5rem; } .bars th { width: 45%; }
  th, td { padding-right: .5rem; } .scroll table { font-size: .85rem; } .scroll :is(td, th) { padding-right: .4rem; }
  .scroll :is(td, th):is(:nth-child(-n+3):not(:first-child, :last-child), .number) { white-space: normal;
    overflow-wrap: normal; } }
@media print { :root { --ink: #000; --soft: #333; --line: #bbb; --page: #fff; --box: #fff; --bar: #555;
  --bad: #000; --link: #000; } body { font-size: 10.5pt; } main { max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  h2, h3 { break-after: avoid; } tr, .warning { break-inside: avoid; }
  rect { fill: #555; print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
"""The only style of a page; its digest stands in the page's policy."""
"""Style of pages: readable on paper, on narrow screens, in light and dark."""


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
