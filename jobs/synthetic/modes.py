"""Modes of joint jobs with `method: synthetic`."""

from __future__ import annotations

from anonymize.joint.disclosure import ALLOWED
from jobs.dp import sentences as dp_words
from jobs.modes import SECONDS
from jobs.synthetic import report, run, sentences
from jobs.task import HiddenCosts, Mode

# Every message grows with the number of records, and so do the widths of circuits.
_ALL_BUT_SETUP = HiddenCosts(frozenset({"align", "measure", "choose"}), None, links=True)

MODES: tuple[Mode, ...] = (
    Mode(
        "synthetic",
        "horizontal",
        "",
        "dp/horizontal/synthetic",
        run.run_horizontally,
        ALLOWED["dp/horizontal/synthetic"],
        shared=True,
        check=run.check,
        withheld=SECONDS,
        words=dp_words.of_horizontal_runs,
        fields=report.joint_run_fields,
        costs=sentences.of_horizontal_runs,
    ),
    Mode(
        "synthetic",
        "vertical",
        "",
        "dp/vertical/synthetic",
        run.run_vertically,
        ALLOWED["dp/vertical/synthetic"],
        check=run.check,
        withheld=_ALL_BUT_SETUP,
        words=dp_words.of_vertical_runs,
        fields=report.joint_run_fields,
        costs=sentences.of_vertical_runs,
    ),
)
