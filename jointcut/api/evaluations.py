"""Worth of a job for learners, from Python. Nothing is released or charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from anonymize.scores.names import SCORES
from evaluation.commands import MOST_SPLITS, Asked, judged
from jobs.errors import ConfigError
from jointcut.api.errors import told
from jointcut.api.frames import Data, source_of_data
from jointcut.api.job import JobLike, job_of
from jointcut.api.voices import listening
from jointcut.api.wording import all_in_python

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Evaluated:
    """Figures of classifiers, from raw rows: for the owner of the table, not for publication.

    text:    the figures for people.
    fields:  the figures for programs, as `coordinator evaluate --format json` prints the figures.
    """

    text: str = field(repr=False)
    fields: dict[str, Any] = field(repr=False)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each way to prepare the rows and each learner."""
        import pandas as pd

        ways = self.fields["ways"].items()
        return pd.DataFrame(
            [
                {"way": way, "learner": learner, **figures}
                for way, learners in ways
                for learner, figures in learners.items()
            ]
        )

    def __repr__(self) -> str:
        """Return the ways and learners that were compared, without a figure."""
        ways = self.fields.get("ways", {})
        learners = dict.fromkeys(learner for of_way in ways.values() for learner in of_way)
        return f"Evaluated(ways={list(ways)}, learners={list(learners)})"

    def __str__(self) -> str:
        return self.text


@told()
def evaluate(
    job: JobLike,
    data: Data | None = None,
    *,
    holdout: str | float | Fraction = Fraction(1, 3),
    splits: int = 5,
    scores: Sequence[str] = (),
    published: bool = False,
    seed: int = 0,
    progress: bool | None = None,
) -> Evaluated:
    """Compare classifiers of anonymized and of raw rows; release nothing. Raises Error.

    For LKC jobs with a class column; needs `jointcut[evaluate]`.

    data:       as of `anonymize`, with all columns of the job.
    holdout:    the share of the rows to hold out.
    splits:     the number of random splits, the same for the same seed.
    scores:     instead of the job's score, top-down with these scores.
    published:  also the protocol of the papers: anonymize all, then split.

    >>> import jointcut as jc
    >>> import pandas as pd
    >>> job = jc.Job(
    ...     name="visits",
    ...     model=jc.Lkc(L=1, K=2),
    ...     columns={
    ...         "sex": jc.Column(role="qid", suppress=["f", "m"]),
    ...         "result": jc.Column(role="class", domain=["ill", "well"]),
    ...     },
    ... )
    >>> table = pd.DataFrame({"sex": ["f", "m"] * 30, "result": ["ill", "well"] * 30})
    >>> figures = jc.evaluate(job, table, splits=2).to_frame().set_index(["way", "learner"])
    >>> float(figures.loc[("anonymized", "tree"), "error"])
    0.0
    """
    _check(splits, scores, seed)
    asked = job_of(job)
    task = asked.load()
    voice, _ = listening(progress)
    with source_of_data(data, asked) as source, voice.progress(task.job.name, 1) as shown:
        found = judged(
            asked.load,
            lambda _: source,
            Asked(str(holdout), splits, tuple(scores), published, seed),
            lambda number: shown.trial(number, splits),
        )
    return Evaluated("\n".join(all_in_python(found.lines)), found.fields)


def _check(splits: int, scores: Sequence[str], seed: int) -> None:
    """Refuse arguments that a command line would refuse. Raises ConfigError."""
    if not isinstance(splits, int) or not 1 <= splits <= MOST_SPLITS:
        raise ConfigError("usage", f"splits={splits!r}", remedy=f"write a number from 1 to {MOST_SPLITS}")
    if isinstance(scores, str) or not isinstance(scores, Sequence):
        raise ConfigError(
            "usage", f"scores={scores!r} is no list", remedy="write a list: scores=['infogain']"
        )
    if unknown := [score for score in scores if score not in SCORES]:
        raise ConfigError("usage", f"scores={unknown}", remedy=f"name scores of {', '.join(SCORES)}")
    if not isinstance(seed, int) or seed < 0:
        raise ConfigError("usage", f"seed={seed!r}", remedy="write a whole number from 0")
