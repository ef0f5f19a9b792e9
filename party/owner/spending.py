"""What was asked of a party's table, what it cost, and what is left: `party budget`, and the owner's page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobs.answers import Answer, Answers
from jobs.ledger import Entry
from jobs.loading import MODELS
from party.owner.config import PartyConfig


@dataclass(frozen=True)
class Spending:
    """Of one data set. words: what was spent and is left, a sentence each; fields: the same for programs."""

    words: Sequence[str]
    fields: dict[str, Any]
    entries: Sequence[Entry]
    answers: Sequence[Answer]


def spending(config: PartyConfig) -> Spending:
    """As the ledger and the policy have it now. Raises BudgetError if the ledger cannot be read."""
    entries = config.ledger.entries()
    models = [model for _, model in sorted(MODELS.items())]
    of_models = [model.spent(entries, config.policy) for model in models]
    spent = {each.words: each for each in of_models}  # some are counted together
    answers = Answers(config.ledger, config.policy)
    fields = {key: value for each in spent.values() for key, value in each.fields.items()}
    return Spending([*spent, answers.words()], fields | answers.fields(), entries, answers.all())
