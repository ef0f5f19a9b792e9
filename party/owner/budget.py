"""Charges, releases and counted answers of a data set, in words for its owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.loading import MODELS, model_named
from jobs.owner.answers import Answer, Answers
from jobs.owner.ledger import STATE_WORDS, Entry
from jobs.task import Spent
from party.owner.config import PartyConfig


@dataclass(frozen=True)
class Budget:
    """Budget of a data set.

    spent:  by models; models that are counted together stand there once.
    given:  answers that count, oldest first.
    """

    spent: Sequence[Spent] = field(repr=False)
    entries: Sequence[Entry] = field(repr=False)
    answers: Answers = field(repr=False)
    given: Sequence[Answer] = field(repr=False)

    def words(self) -> list[str]:
        """Say what is spent, and what is left."""
        return [*(each.words for each in self.spent), self.answers.words()]


def budget(config: PartyConfig) -> Budget:
    """Read the budget of our data set. Raises BudgetError."""
    entries, answers = config.ledger.entries(), Answers(config.ledger, config.policy)
    models = [model_named(name) for name in sorted(MODELS)]
    of_models = [model.charges.spent(entries, config.policy) for model in models]
    spent = list({each.words: each for each in of_models}.values())  # some are counted together
    return Budget(spent, entries, answers, answers.all())


def answer_line(answer: Answer) -> str:
    parts = (
        answer.asked,
        answer.kind,
        answer.words,
        answer.job,
        answer.job_sha256[:12],
        f"for {answer.asker}",
    )
    return "  ".join(parts)


def entry_lines(entry: Entry) -> list[str]:
    """Return an entry of a ledger in lines, for its owner: charge, asker and delivery."""
    charge = f"epsilon {float(entry.charged):g}"
    parts = (
        entry.began,
        f"{entry.kind:3}",
        STATE_WORDS[entry.state],
        charge,
        entry.job,
        entry.job_sha256[:12],
    )
    return [
        "  " + "  ".join(parts),
        *_asker_lines(entry),
        *(
            f"    {'given again: ' if again else ''}{delivery_words(d.agreed)} {d.delivered}  {d.release}"
            for again, d in enumerate(entry.deliveries)
        ),
    ]


def _asker_lines(entry: Entry) -> list[str]:
    """Say who asked for the job, and how the run broke off, as far as noted."""
    if not entry.asker:
        return []
    where = f", at {entry.ended_at}" if entry.ended_at else ""
    return [f"    asked by {entry.asker}" + (f"; ended by {entry.ended}{where}" if entry.ended else "")]


def delivery_words(agreed: bool) -> str:
    return "files checked here," if agreed else "files at the coordinator only, digest from the coordinator,"
