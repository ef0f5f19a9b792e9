"""An LKC table is verified by its labels alone."""

from __future__ import annotations

import pytest

import jobs.release.csv
from anonymize.release import Release
from anonymize.verification.tables import DEFINITIONS, NOT_IN_A_TABLE
from jobs.errors import PartyError
from jobs.lkc.settings import Requirement
from jobs.lkc.verify import require_verified, verify_release
from tests.support import jobs
from tests.support.samples import columns, release_of, single_job


def sample_release(*rows: tuple[str, ...]) -> Release:
    return release_of(["job", "age", "transfused", "surgery"], list(rows))


MET = [("Any", "[0,100)", "Y", "Heart"), ("Any", "[0,100)", "N", "Rare")]


@pytest.mark.parametrize(
    ("rows", "threshold"),
    [
        (MET, None),
        (MET + MET, None),
        (MET[:1], "K"),
        ([*MET, ("Blue", "[0,100)", "Y", "Heart")], "K"),
        ([*MET, ("Any", "[0,10)", "Y", "Heart")], "K"),
        ([*MET, MET[1]], "C"),
        ([*MET, *[("Blue", "[0,100)", "Y", "Rare")] * 2, *[MET[0]] * 4], "C"),
    ],
)
def test_a_release_is_verified_by_its_labels(rows: list[tuple[str, ...]], threshold: str | None) -> None:
    task = jobs.task_of(single_job())
    finding = verify_release(sample_release(*rows), task)
    assert (finding.threshold if finding else None) == threshold
    if threshold is None:
        require_verified(sample_release(*rows), task)
        return
    with pytest.raises(PartyError) as caught:
        require_verified(sample_release(*rows), task)
    assert caught.value.problem.error_id == "verification-failed"


def test_without_a_list_every_value_is_protected() -> None:
    for surgery in ({"role": "sensitive", "domain": ["Heart", "Rare"]}, {"role": "sensitive"}):
        task = jobs.task_of(single_job(columns=columns(surgery=surgery)))
        finding = verify_release(sample_release(MET[0], MET[0], MET[1]), task)
        assert finding is not None
        assert finding.sensitive == "surgery"


# ---- folders


def test_every_key_of_a_job_file_has_its_definition() -> None:
    """L and columns say where groups agree; all else says what they meet, or what no table shows."""
    assert set(Requirement.model_fields) - {"L", "columns"} == set(DEFINITIONS) | NOT_IN_A_TABLE
    assert not NOT_IN_A_TABLE.intersection(DEFINITIONS)
