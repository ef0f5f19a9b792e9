"""What an LKC job asks of groups."""

from __future__ import annotations

from fractions import Fraction

import pytest

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Demand
from jobs.errors import ConfigError
from jobs.lkc.asked import requirement, requirement_words
from jobs.lkc.settings import LkcModel
from jobs.lkc.words import verified_words
from jobs.loading import parse_job
from tests.support import jobs
from tests.support.samples import single_job


class Other(Confidences):
    """A demand that no model has."""

    held_by_insiders = ""
    held = "something else"
    setting = "other=1"


def demand(monkeypatch: pytest.MonkeyPatch, *others: Demand) -> None:
    """Make every job ask for something else, too."""
    usual = LkcModel.demands.fget
    assert usual is not None
    monkeypatch.setattr(LkcModel, "demands", property(lambda asked: (*usual(asked), *others)))


def test_a_further_demand_is_asked_and_told_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    demand(monkeypatch, Other())
    task = jobs.task_of(single_job())
    (ask,) = requirement(task).asks
    assert ask.demands[2:] == (Other(),)
    assert requirement_words(task.job) == "L=2 K=2 C=1/2 other=1"
    assert verified_words(task).endswith(
        "at least K=2 records, no protected value above its C, and something else"
    )


def test_a_demand_names_sensitive_columns_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    demand(monkeypatch, Confidences(bounds=(("surgery", Fraction(1)), ("job", Fraction(1)))))
    with pytest.raises(ConfigError, match=r"model\.lkc: C names 'job', which is no sensitive column"):
        parse_job(single_job(), "job.yaml")
