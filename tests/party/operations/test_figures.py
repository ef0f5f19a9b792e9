"""What Prometheus is told: all that is listed and nothing else, and nothing that data decide."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jobs.version import __version__
from party.operations.figures import FIGURES, Seen, figures_of, text_of
from party.operations.tally import OUTCOMES, Tally
from party.owner.approvals import APPROVALS, Approvals, Binding
from party.owner.in_force import InForce
from party.owner.readiness import REASONS
from tests.support.network import Network, sample_network
from tests.support.samples import PARTIES

A, B, C = PARTIES
ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs" / "operations.md"


@pytest.fixture
def net(tmp_path: Path) -> Network:
    found = sample_network(tmp_path / "net")
    found.config(A).state_dir.mkdir(exist_ok=True)
    return found


def seen_of(net: Network, why_not: tuple[str, ...] = (), job_running: bool = False) -> Seen:
    settings = InForce(net.config(A), net.config_path(A)).settings
    return Seen(1000.0, why_not, job_running, 3, Tally().counts(), 7, settings)


def samples(text: bytes) -> dict[tuple[str, str], float]:
    """By name and the value of the only label."""
    families = text_string_to_metric_families(text.decode())
    found = [sample for family in families for sample in family.samples]
    assert all(len(sample.labels) <= 1 for sample in found)
    return {(sample.name, "".join(sample.labels.values())): sample.value for sample in found}


def test_all_figures_that_are_listed_are_told_and_no_others(net: Network) -> None:
    told = samples(text_of(seen_of(net)))
    assert {name for name, _ in told} == set(FIGURES)
    labels = {name: {label for other, label in told if other == name} for name in FIGURES}
    assert labels["jointcut_not_ready"] == set(REASONS)
    assert labels["jointcut_jobs_total"] == set(OUTCOMES)
    assert labels["jointcut_certificate_expiry_time_seconds"] == {*PARTIES, "coordinator"}
    assert labels["jointcut_build_info"] == {__version__}
    assert all(labels[name] == {""} for name, figure in FIGURES.items() if not figure.label)


def test_kinds_meanings_and_labels_are_those_listed(net: Network) -> None:
    for family in text_string_to_metric_families(text_of(seen_of(net)).decode()):
        name = family.name + ("_total" if family.type == "counter" else "")
        figure = FIGURES[name]
        assert (family.type, family.documentation) == (figure.kind, figure.meaning)
        assert {label for sample in family.samples for label in sample.labels} == ({figure.label} - {""})


def test_a_daemon_that_is_not_ready(net: Network) -> None:
    told = samples(text_of(seen_of(net, ("state",), job_running=True)))
    assert told["jointcut_ready", ""] == 0
    assert told["jointcut_job_running", ""] == 1
    assert {reason: told["jointcut_not_ready", reason] for reason in REASONS} == {
        reason: reason == "state" for reason in REASONS
    }


def test_who_waits_and_who_was_turned_away_before_it_spoke(net: Network) -> None:
    approvals = Approvals(net.config(A).state_dir)
    told = samples(text_of(seen_of(net)))
    assert told["jointcut_jobs_waiting", ""] == 3
    assert told["jointcut_connections_without_peer_total", ""] == 7
    assert told["jointcut_proposals_waiting", ""] == 0
    binding = Binding(net.task.digest.hex(), "coordinator", net.roster, {}, "1.0")
    approvals.propose(net.task, binding)
    assert samples(text_of(seen_of(net)))["jointcut_proposals_waiting", ""] == 1
    approvals.deny(approvals.found(net.task.job.name), "no", "somebody")
    assert samples(text_of(seen_of(net)))["jointcut_proposals_waiting", ""] == 0
    (net.config(A).state_dir / APPROVALS).write_bytes(b"no database" * 100)
    assert figures_of(seen_of(net))["jointcut_proposals_waiting"] == {}


def test_certificates_and_state_that_cannot_be_read_leave_the_rest(net: Network) -> None:
    seen = seen_of(net)
    net.config(A).state_dir.rmdir()
    found = figures_of(seen)
    assert found["jointcut_state_free_bytes"] == {}
    assert b"jointcut_ready 1.0" in text_of(seen)


def test_no_figure_is_about_rows_bytes_of_jobs_or_time_they_took() -> None:
    """Those follow from data. What is on a disk is not one job's."""
    words = (
        "row",
        "record",
        "column",
        "byte",
        "duration",
        "elapsed",
        "memory",
        "cpu",
        "round",
        "question",
        "epsilon",
    )
    about = {name: figure.meaning for name, figure in FIGURES.items() if name != "jointcut_state_free_bytes"}
    assert not [name for name, meaning in about.items() for word in words if word in f"{name} {meaning}"]


def test_the_documentation_lists_the_same() -> None:
    """Names, kinds, labels and meanings, in their order."""
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| `jointcut_")]
    expected = [
        f"| `{name}` | {figure.kind}{f', by `{figure.label}`' if figure.label else ''} | {figure.meaning} |"
        for name, figure in FIGURES.items()
    ]
    assert rows == expected
