"""Joint jobs of parties with different kinds of sources: the table of as many CSV files, and no place in any file."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import run_joint
from tests.support import jobs
from tests.support.jobs import write_csv
from tests.support.joint import sample_rows
from tests.support.kinds import ALL_KINDS, HIDDEN, KINDS, VARIABLE, Places, Rows
from tests.support.loan import table_of
from tests.support.network import Network, network, processes, report_of, served
from tests.support.postgres import PASSWORD, Server, serving
from tests.support.samples import COLUMNS, PARTIES, joint_job
from tests.support.spark import needs_java

OF_A_RUN = ("job_sha256", "finished", "files", "cost", "run", "signatures", "parties")
"""Fields of a report that differ between any two runs."""
N_ROWS = 120


def rotated(by: int) -> dict[str, str]:
    """Return a kind for each party. Over all numbers every party has every kind."""
    kinds = list(KINDS)
    return {party: kinds[(i + by) % len(kinds)] for i, party in enumerate(PARTIES)}


ROTATIONS = [rotated(by) for by in range(len(KINDS))]
WITH_SPARK = dict(zip(PARTIES, ("duckdb", "postgres", "spark"), strict=True))


# ---- jobs with plain columns, which are read in both passes


def all_rows() -> list[dict[str, str]]:
    """Return rows with plain cells that are empty, quoted and beyond ASCII. Age and job predict the class."""
    wards, beds, shifts = ("Süd", "a, b", "", 'the "old" one'), ("1", "2"), ("day", "night")
    return [
        {
            **row,
            "transfused": "NY"[int(row["age"]) >= 50 or row["job"] == "Mover"],
            "sex": "FM"[i % 2],
            "ward": wards[i % 4],
            "bed": beds[i // 3 % 2],
            "shift": shifts[i // 5 % 2],
        }
        for i, row in enumerate(sample_rows(N_ROWS))
    ]


PLAIN = {name: {"role": "plain"} for name in ("ward", "bed", "shift")}
SEX = {"sex": {"role": "qid", "taxonomy": {"Any": ["F", "M"]}}}
OWN = dict(zip(PARTIES, (("job", "bed"), ("age", "surgery", "ward"), ("sex", "shift")), strict=True))
"""Columns of each party in the vertical job."""


def horizontal() -> tuple[dict[str, Any], dict[str, Rows]]:
    """Return a job and the rows of its parties."""
    job = joint_job(disclosure="sealed", columns={**COLUMNS, **SEX, **PLAIN})
    return job, {party: all_rows()[i :: len(PARTIES)] for i, party in enumerate(PARTIES)}


def vertical() -> tuple[dict[str, Any], dict[str, Rows]]:
    """Return a job and the rows of its parties: each misses some people, and has its own order of rows."""
    job = joint_job(
        partition="vertical", disclosure="sealed", columns={**COLUMNS, **SEX, **PLAIN}, deputy=None
    )
    for party, names in OWN.items():
        job["parties"][party]["columns"] = list(names)
    rows: dict[str, Rows] = {}
    for i, (party, names) in enumerate(OWN.items()):
        held = [row for row in all_rows() if int(row["patient"]) % 10 != i]
        rows[party] = [
            {name: row[name] for name in ("patient", "transfused", *names)} for row in held[:: (-1) ** i]
        ]
    return job, rows


JOBS = {"horizontal": horizontal, "vertical": vertical}
each_job = pytest.mark.parametrize("partition", JOBS)


# ---- runs


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def places(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Places:
    (tmp_path / "tables").mkdir()
    monkeypatch.setenv(VARIABLE, server.reader())
    return Places(tmp_path / "tables", server)


def laid_out(root: Path, partition: str, places: Places, kinds: Mapping[str, str]) -> Network:
    """Lay out a network for a job, with each party's table in its kind of source."""
    job, rows = JOBS[partition]()
    files = {party: write_csv(places.folder / f"{party}.csv", own) for party, own in rows.items()}
    net = network(root, jobs.bundle_of(job), files)
    for party, kind in kinds.items():
        data = ALL_KINDS[kind](places, party, rows[party])
        net.change(party, lambda fields, data=data: fields.update(data=data))
    return net


def outcome(partition: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Return the rows and the report of a release, without what differs between any two runs.

    A vertical run deals the plain cells of a group out anew, and `risk` counts which cells stand together.
    """
    facts = {key: value for key, value in report_of(folder).items() if key not in OF_A_RUN}
    rows = table_of(folder)
    if partition == "horizontal":
        return Counter(tuple(row.items()) for row in rows), facts
    assert facts.pop("risk")
    of_groups = Counter(tuple((k, v) for k, v in row.items() if k not in PLAIN) for row in rows)
    return (of_groups, {name: Counter(row[name] for row in rows) for name in PLAIN}), facts


def written(*folders: Path) -> bytes:
    """Return all that stands in files below folders."""
    return b"\n".join(path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file())


def places_in(server: Server, content: bytes) -> list[str]:
    """Return what a text tells about where the tables are."""
    texts = (
        HIDDEN,
        VARIABLE,
        PASSWORD,
        *PASSWORD.split(),
        server.reader(),
        server.folder.name,
        "SELECT *",
        ".parquet",
    )
    return [text for text in texts if text.encode() in content]


@pytest.fixture(scope="module")
def of_csv_files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """The outcome of each job with a CSV file for each party."""
    found = {}
    for partition, made in JOBS.items():
        folder = tmp_path_factory.mktemp(partition)
        job, rows = made()
        files = {party: write_csv(folder / f"{party}.csv", own) for party, own in rows.items()}
        net = network(folder / "net", jobs.bundle_of(job), files)
        with served(net):
            run_joint(net.task, net.coordinator, folder / "out")
        found[partition] = outcome(partition, folder / "out")
    return found


@each_job
@pytest.mark.parametrize(
    "kinds",
    [
        ROTATIONS[0],
        *(pytest.param(kinds, marks=pytest.mark.more) for kinds in ROTATIONS[1:]),
        pytest.param(WITH_SPARK, marks=(pytest.mark.more, needs_java)),
    ],
    ids=lambda kinds: "-".join(kinds.values()),
)
def test_kinds_of_sources_give_the_table_of_csv_files(
    tmp_path: Path,
    partition: str,
    kinds: Mapping[str, str],
    places: Places,
    of_csv_files: Mapping[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    net = laid_out(tmp_path / "net", partition, places, kinds)
    out = tmp_path / "out"
    with served(net):
        run_joint(net.task, net.coordinator, out)
    assert outcome(partition, out) == of_csv_files[partition]
    assert report_of(out)["specializations"]
    releases = [path for party in PARTIES for path in net.releases(party)]
    assert len(releases) == len(PARTIES)
    assert places_in(places.server, written(out, *releases)) == []
    assert places_in(places.server, net.bundle.encoded) == []
    assert places_in(places.server, caplog.text.encode()) == []


@pytest.mark.some(1)
@each_job
def test_no_place_of_a_table_is_in_a_message_or_in_a_file_of_a_daemon(
    tmp_path: Path, partition: str, places: Places, wire: list[bytes]
) -> None:
    """Ledgers and accounts included. A ledger of a table in a file has the path, for its owner."""
    net = laid_out(tmp_path / "net", partition, places, ROTATIONS[0])
    out = tmp_path / "out"
    with served(net):
        run_joint(net.task, net.coordinator, out)
    assert len(wire) > 50
    assert places_in(places.server, b"\n".join(wire)) == []
    for party, kind in ROTATIONS[0].items():
        net.account(party)
        assert places_in(places.server, written(net.root / party / "state")) == (
            [HIDDEN] if kind == "csv" else []
        )
    assert places_in(places.server, written(net.root / "coordinator", out)) == []


def test_logs_of_real_daemons_have_no_place_of_a_table(
    tmp_path: Path, places: Places, of_csv_files: Mapping[str, Any]
) -> None:
    net = laid_out(tmp_path / "net", "horizontal", places, ROTATIONS[0])
    with processes(net) as daemons:
        run_joint(net.task, net.coordinator, tmp_path / "out")
        for party in PARTIES:
            net.account(party)
    logs = "".join(map(daemons.log, PARTIES))  # the last line comes a little after the account
    assert outcome("horizontal", tmp_path / "out") == of_csv_files["horizontal"]
    assert "hospital-a" in logs
    assert places_in(places.server, logs.encode()) == []
