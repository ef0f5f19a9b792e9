"""What the page of noisy counts shows: the cut, the guarantee, where epsilon went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.pages.blocks import Fact, Opening, Part, Section, Sentences, Told
from jobs.pages.guarantees import WORDS, epsilon_fact, guarantee
from jobs.pages.pictures import of_values
from jobs.pages.words import number
from jobs.task import Task


def told(task: Task, report: Mapping[str, Any]) -> Told:
    """What the page says of a report of noisy counts."""
    cells, listed = report["cells"], report["cells_listed"]
    opening = Opening(
        "How many records are in each cell of a generalization, with noise, so that nobody can tell from it whether "
        "somebody's record was counted.",
        [
            epsilon_fact(report),
            Fact(
                "Cells",
                number(cells),
                "combinations of published values, occupied or not; each has a noisy count",
            ),
            *(
                [
                    Fact(
                        "Cells listed",
                        number(listed),
                        "stand in counts.csv; the others are below its threshold",
                    )
                ]
                if listed != cells
                else []
            ),
        ],
        [
            "Counts are noisy: some are negative, and none is to be taken as exact. Sums have the noise of all."
        ],
    )
    words = (*WORDS, ("cell", "one combination of published values of all columns"))
    return Told(opening, [_columns(task, report), guarantee(report)], words)


def _columns(task: Task, report: Mapping[str, Any]) -> Section:
    columns = {column.name: column for column in task.qid}
    return Section(
        "What the counts tell of each column",
        [
            Sentences(
                [
                    "Which values were chosen, with noise. How many records have each stands in counts.csv alone."
                ]
            )
        ],
        [
            Part(name, [of_values(columns[name], cut)])
            for name, cut in report["cut"].items()
            if name in columns
        ],
    )
