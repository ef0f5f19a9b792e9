"""Forecasts of a joint run's cost: at most what it then takes, over the lines that are spoken of."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonymize.joint.synthetic.costs import Cost
from jobs.synthetic import sentences
from jobs.synthetic.sentences import expected, of_horizontal_runs, of_vertical_runs
from tests.support import jobs
from tests.support.dp_jobs import PARTITIONS
from tests.support.synthetic_jobs import N_ROWS, synthetic_joint, synthetic_site

ALIGNMENT = ("intersection/", "vertical/")


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_run_sends_at_most_what_was_said(tmp_path: Path, partition: str) -> None:
    """And more than half of it. Of columns once they are aligned."""
    site = synthetic_site(tmp_path, partition)
    _, transcript = site.run()
    sent = sum(len(m.payload) for m in transcript.messages if not m.step.startswith(ALIGNMENT))
    said = expected(site.task, N_ROWS).cost.bytes
    assert said / 2 < sent <= said


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_sentence_has_the_figures(partition: str) -> None:
    """The example of common records is the bound on rows, where that is smaller."""
    task = jobs.task_of(synthetic_joint(partition, {"max_rows": "1000"}))
    cost = expected(task, 1000).cost
    sentence = (of_vertical_runs if partition == "vertical" else of_horizontal_runs)(task)[-1]
    size = f"{cost.gates:,} AND gates, {cost.bytes / 1e6:,.0f} MB and {cost.rounds} rounds"
    assert size in sentence
    assert "over lines of 100 Mbit/s and 20 ms a round trip" in sentence


def test_a_hundred_rounds_of_20_ms_there_and_back_are_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round is one message after another, which takes half of a round trip."""
    monkeypatch.setattr(sentences, "cost_at_most", lambda *_: Cost(rounds=100))
    said = expected(jobs.task_of(synthetic_joint("horizontal")), 0)
    assert said.line_s - said.here_s == pytest.approx(1)
