"""Words of pages: a term links to its meaning at the end of the page. docs/report.md has the same meanings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.etree.ElementTree import Element

from jobs.page.html import tag
from jobs.page.parts import Section, marked

WORDS: Mapping[str, str] = {
    "Quasi-identifier": "A column that an attacker may know of a person, such as age or town.",
    "Group": "The records that agree on all quasi-identifiers.",
    "Prosecutor risk": "The highest chance to find the record of a person known to be in the table: 1 / size of the "
    "smallest group.",
    "Journalist risk": "The highest chance to find the record of a person, if the reader does not know who is in the "
    "table: at most the prosecutor risk.",
    "Marketer risk": "The expected share of records found by a reader who knows everybody: groups / records.",
    "Unique records": "The records that are alone in their group.",
    "Inference": "A guess of a sensitive value from the group of a person. C is the largest allowed share of a "
    "protected value in a group.",
    "Detail lost (NCP)": "Normalized certainty penalty: the share of a column's domain that a published value "
    "covers, 0 % for raw values and 100 % for a single value that covers all.",
    "Discernibility": "The sum of the squares of the sizes of all groups, divided by the square of the number of "
    "records.",
    "ε": "The bound of differential privacy: no release is more than e^ε times as likely with a record as without "
    "the record.",
    "δ": "The chance that the bound of ε fails.",
    "Noise": "A random number that differential privacy adds to every count.",
    "Naive Bayes": "A classifier that takes the columns as independent of each other within a class.",
}
"""Meaning of each term."""


def term(word: str, more: str = "", said: str = "") -> Element:
    """Return a term with a link to its meaning. more: text behind the term. said: the term in another form."""
    assert word in WORDS, "a word with a meaning"
    return tag("a", (said or word) + more, href=f"#{_anchor(word)}")


def with_term(text: str, word: str, said: str, kind: str = "p") -> Element:
    """Return a sentence whose first ``said`` is a link to the meaning of a word. kind: of the element."""
    before, found, after = text.partition(said)
    assert found, "a sentence with the term"
    return tag(kind, *marked(before), term(word, said=said), *marked(after))


def _anchor(word: str) -> str:
    return "word-" + "".join(letter if letter.isalnum() else "-" for letter in word.lower())


def with_words(sections: Iterable[Section]) -> list[Element]:
    """Return sections as elements. A last section has the meaning of every linked term."""
    made = [section.element() for section in sections]
    links = {link.get("href") for element in made for link in element.iter("a")}
    used = [word for word in WORDS if f"#{_anchor(word)}" in links]
    entries = [each for word in used for each in (tag("dt", word, id=_anchor(word)), tag("dd", WORDS[word]))]
    return [*made, *([Section("Words", [tag("dl", *entries)]).element()] if entries else [])]
