"""The reveal ledger: what is listed is recorded, and nothing else leaves a protocol."""

from __future__ import annotations

import numpy as np
import pytest

from anonymize.joint.disclosure import ALLOWED, PRIVATE, Reveal, RevealLedger
from crypto.errors import LocalProtocolError


def test_a_value_passes_and_is_noted_but_not_kept() -> None:
    ledger = RevealLedger("horizontal/sealed")
    counts = np.array([[3, 4], [5, 6]])
    assert ledger.reveal("root_check", True, "all") is True
    ledger.iteration = 2
    assert ledger.reveal("partition_counts", counts, "all") is counts
    assert ledger.reveal("candidate", None, "all") is None
    assert ledger.reveals == [
        Reveal("root_check", (), "all", 0),
        Reveal("partition_counts", (2, 2), "all", 2),
        Reveal("candidate", (), "all", 2),
    ]
    assert not any(str(count) in repr(ledger.reveals[1]).replace("(2, 2)", "") for count in (3, 4, 5, 6))


def test_a_shape_that_is_given_counts() -> None:
    ledger = RevealLedger("vertical/sealed")
    ledger.reveal("children", np.zeros(7), "all", (5, 2))
    ledger.reveal("set_sizes", [1, 2], "all", (2,))
    assert [r.shape for r in ledger.reveals] == [(5, 2), (2,)]


@pytest.mark.parametrize(
    ("mode", "name", "to"),
    [
        ("horizontal/sealed", "group_counts", "leader"),  # the leader's, in another mode
        ("horizontal/leader", "group_counts", "all"),  # listed, but for the leader alone
        ("vertical/sealed", "scores", "all"),
        ("vertical/sealed", "valid", "all"),
        ("dp/horizontal/circuit", "own_noisy_counts", "all"),
        ("dp/vertical/circuit", "valid", "owner"),
        ("horizontal/sealed", "", "all"),
    ],
)
def test_what_is_not_listed_stops_the_run_and_is_not_noted(mode: str, name: str, to: str) -> None:
    ledger = RevealLedger(mode)
    with pytest.raises(LocalProtocolError, match="not on the mode's list"):
        ledger.reveal(name, 4711, to)  # type: ignore[arg-type]
    assert ledger.reveals == []


def test_a_mode_that_does_not_exist_has_no_ledger() -> None:
    with pytest.raises(KeyError):
        RevealLedger("horizontal/open")


@pytest.mark.parametrize("mode", ALLOWED)
def test_a_list_says_each_thing_once(mode: str) -> None:
    rows = [(row.name, row.to) for row in ALLOWED[mode]]
    assert len(rows) == len(set(rows))
    assert all(row.meaning for row in ALLOWED[mode])


def test_who_is_told_what_alone() -> None:
    """Sealed horizontal runs and DP tell nobody more than all the others, but for the alignment of vertical runs and
    what the leader of a mix sees.
    """
    told_alone = {
        mode: {row.name for row in rows if row.to not in ("all", "coordinator")}
        for mode, rows in ALLOWED.items()
    }
    alignment = {"class_agreement"}
    vertical = alignment | {"valid", "confidence_check"}
    assert told_alone == {
        "horizontal/sealed": set(),
        "horizontal/leader": {"root_totals", "candidate_counts", "group_counts"},
        "horizontal/strict": set(),
        "horizontal/sealed/kd": set(),
        "sequences/horizontal/sealed": {"row_counts"},
        "vertical/sealed": vertical,
        "vertical/leader": vertical,
        "dp/horizontal/circuit": set(),
        "dp/horizontal/thesis": set(),
        "dp/horizontal/synthetic": set(),
        "dp/vertical/circuit": alignment,
        "dp/vertical/synthetic": alignment,
        "dp/vertical/thesis": alignment,
    }
    assert {row.name for rows in ALLOWED.values() for row in rows if row.to in PRIVATE} == {
        "valid",
        "confidence_check",
    }


def test_what_dp_opens_of_records_is_not_finer_than_its_release() -> None:
    for mode in (name for name in ALLOWED if name.startswith("dp/horizontal")):
        assert not any(row.finer for row in ALLOWED[mode])
