"""The figures of a daemon, for Prometheus. None follows from data: no rows, bytes, times or memory of a job.

All are looked up when somebody asks. ``FIGURES`` lists them: docs, alerts and the dashboard are compared with it.
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from jobs.errors import PartyError
from jobs.version import __version__
from party.owner.approvals import Approvals
from party.owner.identity import validity
from party.owner.in_force import Settings
from party.owner.readiness import REASONS, free_bytes


@dataclass(frozen=True)
class Figure:
    """One figure. label: what tells its values apart, if it has several."""

    kind: Literal["gauge", "counter"]
    meaning: str
    label: str = ""


FIGURES: Mapping[str, Figure] = {
    "jointcut_build_info": Figure("gauge", "1; the label says which version runs", "version"),
    "jointcut_start_time_seconds": Figure("gauge", "when the daemon started, in seconds since 1970"),
    "jointcut_ready": Figure("gauge", "whether a job would be taken: 1, or 0"),
    "jointcut_not_ready": Figure("gauge", "1 for each reason why none would be taken, else 0", "reason"),
    "jointcut_job_running": Figure("gauge", "whether a job has the place: 1, or 0"),
    "jointcut_jobs_waiting": Figure("gauge", "jobs that wait in the queue for the place"),
    "jointcut_proposals_waiting": Figure("gauge", "proposals that nobody here has decided on"),
    "jointcut_connections_without_peer_total": Figure(
        "counter", "connections over which no peer spoke: strangers, other certificates, scans of ports"
    ),
    "jointcut_jobs_total": Figure(
        "counter", "jobs that ended, and proposals that were turned away, by how", "outcome"
    ),
    "jointcut_certificate_expiry_time_seconds": Figure(
        "gauge", "when a certificate ends, in seconds since 1970; our own and those of peers", "name"
    ),
    "jointcut_configuration_time_seconds": Figure(
        "gauge", "since when the configuration is in force, in seconds since 1970"
    ),
    "jointcut_state_free_bytes": Figure("gauge", "what is free on the disk of `state_dir`"),
    "jointcut_open_files": Figure("gauge", "files and connections that are open"),
    "jointcut_open_files_limit": Figure("gauge", "the most that may be open"),
    "jointcut_threads": Figure("gauge", "threads of Python"),
}
"""All there are, by name."""

KIND = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Seen:
    """What is looked up of a daemon when somebody asks."""

    started_s: float
    why_not: tuple[str, ...]
    job_running: bool
    jobs_waiting: int
    outcomes: Mapping[str, int]
    without_peer: int
    settings: Settings


def text_of(seen: Seen) -> bytes:
    """All figures in the text form of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(seen))
    return generate_latest(registry)


class _Collected(Collector):
    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        found = figures_of(self._seen)
        for name, figure in FIGURES.items():
            family = CounterMetricFamily if figure.kind == "counter" else GaugeMetricFamily
            metric = family(name, figure.meaning, labels=[figure.label] if figure.label else [])
            for label, value in found[name].items():
                metric.add_metric([label] if figure.label else [], value)
            yield metric


def figures_of(seen: Seen) -> dict[str, dict[str, float]]:
    """Values of every figure by its label; a figure without one has the label of no letters."""
    alone = {
        "jointcut_start_time_seconds": seen.started_s,
        "jointcut_ready": not seen.why_not,
        "jointcut_job_running": seen.job_running,
        "jointcut_jobs_waiting": seen.jobs_waiting,
        "jointcut_connections_without_peer_total": seen.without_peer,
        "jointcut_configuration_time_seconds": seen.settings.since.timestamp(),
        "jointcut_open_files_limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "jointcut_threads": threading.active_count(),
    }
    by_label: dict[str, dict[str, float]] = {
        "jointcut_build_info": {__version__: 1},
        "jointcut_not_ready": {reason: reason in seen.why_not for reason in REASONS},
        "jointcut_jobs_total": dict(seen.outcomes),
        "jointcut_certificate_expiry_time_seconds": dict(_expiries(seen.settings)),
        "jointcut_state_free_bytes": dict(_free(seen.settings.config.state_dir)),
        "jointcut_proposals_waiting": dict(_proposals(seen.settings.config.state_dir)),
        "jointcut_open_files": dict(_open_files()),
    }
    return by_label | {name: {"": value} for name, value in alone.items()}


def _expiries(settings: Settings) -> Iterator[tuple[str, float]]:
    certificates = {peer.name: peer.certificate for peer in settings.peers.values()}
    for name, pem in (certificates | {settings.config.name: settings.credentials.certificate}).items():
        with suppress(PartyError):
            yield name, validity(pem)[1].timestamp()


def _free(folder: Path) -> Iterator[tuple[str, float]]:
    with suppress(OSError):  # then there is no figure; `jointcut_not_ready` says that it cannot be used
        yield "", free_bytes(folder)


def _proposals(folder: Path) -> Iterator[tuple[str, float]]:
    with suppress(PartyError, OSError):  # then there is no figure; `party jobs` says what is wrong
        yield "", Approvals(folder).n_waiting()


def _open_files() -> Iterator[tuple[str, float]]:
    with suppress(OSError):  # systems without /proc
        yield "", len(os.listdir("/proc/self/fd"))
