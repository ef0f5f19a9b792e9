"""What pages of differentially private releases have in common: the guarantee, and where epsilon went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from jobs.pages.blocks import Bar, Bars, Fact, Section, Sentences


def epsilon_fact(report: Mapping[str, Any]) -> Fact:
    """The whole of epsilon, and what it means."""
    privacy = report["privacy"]
    return Fact(
        "Epsilon",
        privacy["epsilon"],
        f"bounds what the release tells about {privacy['unit']}: with it in the table no outcome is more than e to "
        "the power of epsilon times as likely as without",
    )


def guarantee(report: Mapping[str, Any]) -> Section:
    """What holds toward whom, and what does not."""
    privacy = report["privacy"]
    delta = (
        f"Delta is {privacy['delta']}: how likely it is, at most, that the bound of epsilon does not hold."
    )
    return Section(
        "The guarantee",
        [
            Sentences([*privacy["guarantees"], delta], listed=True),
            Sentences([f"Not covered: {each}" for each in privacy["not_covered"]], listed=True),
            _account(privacy),
        ],
    )


def _account(privacy: Mapping[str, Any]) -> Bars:
    """Where epsilon went: a bar for each purpose, of all turns together."""
    whole, spent = Fraction(privacy["epsilon"]), dict[str, Fraction]()
    for each in privacy["account"]:
        spent[each["for"]] = spent.get(each["for"], Fraction(0)) + Fraction(each["epsilon"])
    bars = [Bar(name, float(each / whole), str(each)) for name, each in spent.items()]
    return Bars("Where epsilon went", ("measured or chosen", "epsilon"), bars)


WORDS: Sequence[tuple[str, str]] = (
    (
        "differential privacy",
        "whoever reads the release learns nearly the same, whether a record was in the table or not",
    ),
    (
        "epsilon",
        "how much more likely any outcome may become by one record, as a power of e; smaller protects more",
    ),
    ("delta", "how likely it is, at most, that this does not hold"),
    (
        "noise",
        "a random number added before anything is published; its law is public, its value nobody knows",
    ),
)
