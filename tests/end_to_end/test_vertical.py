"""Vertical jobs between real daemons: three parties, refusals, and canaries that nobody else may ever see."""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import jobs.lkc.files
from coordinator import conduct
from coordinator.run import run_joint
from coordinator.simulate import COORDINATOR
from jobs.errors import Exit, PartyError
from jobs.loading import load_task
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN_ACCOUNT, OWN_PAGE
from jobs.release.sums import SUMS
from party.net.control import ResultPart
from party.net.link import Link
from party.owner.problems import FOLDER as PROBLEMS
from tests.support.commands import Ran, invoke, listing
from tests.support.loan import (
    BANK,
    LOAN,
    Rows,
    joined,
    loan_job,
    loan_rows,
    loan_sample,
    loan_tables,
    single_job,
    table_of,
)
from tests.support.network import Network, call, network, processes, report_of, served, serving


def arguments(net: Network, job: Path, out: Path) -> list[str | Path]:
    return ["run", job, "--out", out, "--config", net.config_path(COORDINATOR), "--format", "json"]


def run(net: Network, job: Path, out: Path) -> Ran:
    return invoke("coordinator", *arguments(net, job, out))


# ---- canaries


MARKS = ("canary-id-", "canary-purpose-", ".70073")
"""Marks in every planted text; nobody else may ever see one of them."""


@dataclass(frozen=True)
class Planted:
    """Tables in which every id, some numbers, and plain values of people the other does not know are marked."""

    tables: dict[str, Rows]
    numbers: list[float]


N_COMMON = 600
"""People that both parties know; each knows 600 others."""


def planted() -> Planted:
    tables = loan_sample(N_COMMON)
    common = set.intersection(*({row["person"] for row in rows} for rows in tables.values()))
    assert len(common) == N_COMMON
    numbers: list[float] = []
    for party, rows in tables.items():
        column = {LOAN: "years", BANK: "salary"}[party]
        for i, row in enumerate(rows):
            if i % 8 == 0:
                row[column] = f"{row[column]}.70073{i}"
                numbers.append(float(row[column]))
            if party == LOAN and row["person"] not in common:
                row["purpose"] = f"canary-purpose-{i}"
            row["person"] = f"canary-id-{row['person']}"
    return Planted(tables, numbers)


@functools.cache
def forms(mark: str) -> tuple[bytes, ...]:
    """A text as it may stand in a file or message: in two encodings, hexadecimal, or base64 at any offset."""
    found = []
    for text in (mark.encode(), mark.encode("utf-16-le")):
        found += [text, text.hex().encode()]
        for offset in range(3):
            encoded = base64.b64encode(bytes(offset) + text)
            inside = encoded[4 if offset else 0 : -4]
            found += [inside] if len(inside) >= 8 else []  # shorter ones are found by chance
    return tuple(found)


def digests(ids: Iterable[str]) -> list[bytes]:
    """Return digests by which an id without a key would be guessed."""
    kinds = ("md5", "sha1", "sha256", "sha512", "blake2b")
    raw = [hashlib.new(kind, text.encode()).digest()[:16] for text in ids for kind in kinds]
    return [*raw, *(digest.hex().encode() for digest in raw)]


def leaks(content: bytes, numbers: list[float]) -> list[object]:
    """Marks found as text, in UTF-16 or hexadecimal, and planted numbers as doubles."""
    texts = [mark for mark in MARKS if any(form in content for form in forms(mark))]
    return [
        *texts,
        *(n for n in numbers if struct.pack("<d", n) in content or struct.pack(">d", n) in content),
    ]


@pytest.fixture(scope="module")
def plants() -> Planted:
    made = planted()
    assert len(made.numbers) == 300
    for mark in MARKS:
        assert (
            sum(mark in value for rows in made.tables.values() for row in rows for value in row.values())
            >= 300
        )
    return made


def files_below(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path, path.read_bytes()


def test_canaries_stay_where_they_are(tmp_path: Path, plants: Planted) -> None:
    """Real daemons: logs, delivered tables and reports, the coordinator's folder, errors of a run that fails."""
    tables = loan_tables(tmp_path / "tables", plants.tables)
    for path in tables.values():  # what leaks look like
        assert len(leaks(path.read_bytes(), plants.numbers)) >= 2
    job = loan_job(tmp_path / "job")
    net = network(tmp_path / "net", load_task(job).bundle, tables)
    failing = loan_job(tmp_path / "failing", model={"lkc": {"L": "3", "K": "10", "C": "0.001"}})
    with processes(net) as daemons:
        done = call(*arguments(net, job, tmp_path / "out"))
        assert done.code == 0, done.err
        failed = run(net, failing, tmp_path / "none")
        assert failed.problem["error"] == "requirement-unmet"
        spoilt = loan_tables(tmp_path / "spoilt", plants.tables)[BANK].read_text().splitlines(keepends=True)
        spoilt[7] = spoilt[7].replace(",M,", ",canary-purpose-7,").replace(",F,", ",canary-purpose-7,")
        tables[BANK].write_text("".join(spoilt))
        refused = run(net, job, tmp_path / "none")
        assert (refused.problem["error"], refused.problem["column"]) == ("data-unknown-value", "sex")
        logs = {name: daemons.log(name).encode() for name in net.roster}
    said = "".join(ran.out + ran.err for ran in (done, failed, refused)).encode()
    assert leaks(said, plants.numbers) == []
    for name, log in logs.items():
        assert len(log) > 100
        assert leaks(log, plants.numbers) == [], name
    told: list[bytes] = []
    for folder in (tmp_path / "out", *(net.root / name for name in (*net.roster, COORDINATOR))):
        for path, content in files_below(folder):
            if (
                path.parent == net.config(BANK).state_dir / PROBLEMS
            ):  # the owner is told of its own value, here only
                told.append(content)
                assert path.stat().st_mode & 0o777 == 0o600
            else:
                assert leaks(content, plants.numbers) == [], path
    assert [b"line 8: 'canary-purpose-7'" in content for content in told] == [True]
    assert len(table_of(tmp_path / "out")) == N_COMMON
    assert report_of(tmp_path / "out")["specializations"]
    for party in net.roster:
        assert listing(net.account(party).parent) == [SUMS, TABLE, OWN_ACCOUNT, OWN_PAGE, PAGE, REPORT]


def test_canaries_are_in_no_message(tmp_path: Path, plants: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same parties in this process, over the same links: every payload between them, every part collected."""
    sent: list[bytes] = []
    collected: list[bytes] = []
    original = Link.send

    async def recording(self: Link, step: str, payload: bytes) -> None:
        sent.append(payload)
        await original(self, step, payload)

    monkeypatch.setattr(Link, "send", recording)
    job = loan_job(tmp_path / "job")
    net = network(tmp_path / "net", load_task(job).bundle, loan_tables(tmp_path / "tables", plants.tables))
    record_parts(monkeypatch, collected)

    async def scenario() -> None:
        async with serving(net):
            await asyncio.to_thread(run_joint, net.task, net.coordinator, tmp_path / "out")

    asyncio.run(scenario())
    assert sum(map(len, sent)) > 300_000
    assert len(collected) >= 3  # the result, and the columns of both
    everything = b"".join((*sent, *collected))
    assert leaks(everything, plants.numbers) == []
    ids = [row["person"] for row in plants.tables[BANK][::40]]
    assert not any(digest in everything for digest in digests(ids))


def record_parts(monkeypatch: pytest.MonkeyPatch, collected: list[bytes]) -> None:
    """Keep what parties send the coordinator."""
    original = conduct.Conductor._take

    def recording(self: Any, member: Any, event: Any) -> None:
        if isinstance(event, ResultPart):
            collected.append(event.piece.content)
        original(self, member, event)

    monkeypatch.setattr(conduct.Conductor, "_take", recording)


# ---- three parties


def three_parties(folder: Path) -> tuple[Path, dict[str, Rows]]:
    """The bank's credit history at a registry, which alone knows the class, too."""
    tables = {party: loan_rows(party) for party in (LOAN, BANK)}
    registry = [{key: row[key] for key in ("person", "credit", "approved")} for row in tables[BANK][:2700]]
    split = {
        LOAN: [{k: v for k, v in row.items() if k != "approved"} for row in tables[LOAN]],
        BANK: [{k: row[k] for k in ("person", "sex", "age", "salary")} for row in tables[BANK]],
        "registry": registry,
    }
    parties = {
        LOAN: {"address": "127.0.0.1:7401", "columns": ["job", "years", "purpose"]},
        BANK: {"address": "127.0.0.1:7402", "columns": ["sex", "age", "salary"]},
        "registry": {"address": "127.0.0.1:7403", "columns": ["credit"]},
    }
    job = loan_job(folder, lambda f: f["columns"]["approved"].update(shared_by="registry"), parties=parties)
    return job, split


@pytest.mark.more
def test_a_sensitive_column_at_a_third_party(tmp_path: Path) -> None:
    job, tables = three_parties(tmp_path / "job")
    net = network(tmp_path / "net", load_task(job).bundle, loan_tables(tmp_path / "tables", tables))
    with served(net):
        done = run(net, job, tmp_path / "out")
        assert done.code == 0, done.err
        alone, _ = single_job(tmp_path / "alone", joined(tables), job)
        assert invoke("coordinator", "run", alone, "--out", tmp_path / "single").code == 0
        ours, theirs = report_of(tmp_path / "out"), report_of(tmp_path / "single")
        assert ours["specializations"] == theirs["specializations"] != []
        assert ours["rows"] == theirs["rows"] == len(joined(tables))
        own = {party: json.loads(net.account(party).read_text()) for party in net.roster}
        told = {party: [r["name"] for r in account["reveals"]] for party, account in own.items()}
        checks = {party: names.count("confidence_check") for party, names in told.items()}
        bits = {party: names.count("valid") for party, names in told.items()}
        assert checks[LOAN] == checks[BANK] == bits["registry"] == 0
        assert checks["registry"] == bits[LOAN] + bits[BANK] > 0
        for party, account in own.items():  # what tests cost tells how many there were
            public = ours["cost"]["parties"][party]
            assert account["cost"]["phases"]["validity"]["gates"] > 0 or not told[party]
            assert set(account["cost"]["phases"]) - set(public["phases"]) == {"validity"}
            assert public["links"] == {} != account["cost"]["links"]
            assert not any("seconds" in public["phases"][name] for name in ("score", "integrate"))
        # Without consent the registry refuses, and the job ends everywhere.
        net.change("registry", lambda fields: fields["policy"].pop("share_class"))
        refused = run(net, job, tmp_path / "refused" / "out")
    assert (refused.code, refused.problem["error"]) == (Exit.REFUSED, "policy-refused")
    assert refused.problem["party"] == "registry"
    assert "may not be given to peers" in refused.problem["message"]
    assert not (tmp_path / "refused").exists()


def test_a_forged_cell_is_refused_by_its_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that changes a sensitive value is found out by the party that holds the column."""
    original = jobs.lkc.files.release_of_result

    def forging(*arguments: Any) -> Any:
        release = original(*arguments)
        credit = release.columns["credit"].codes
        credit[:] = (credit + 1) % len(release.columns["credit"].labels)
        return release

    job = loan_job(tmp_path / "job", model={"lkc": {"L": "2", "K": "10", "C": "1"}})
    net = network(tmp_path / "net", load_task(job).bundle, loan_tables(tmp_path / "tables"))
    monkeypatch.setattr(jobs.lkc.files, "release_of_result", forging)

    async def scenario() -> Any:
        async with serving(net):
            try:
                await asyncio.to_thread(run_joint, net.task, net.coordinator, tmp_path / "out")
            except PartyError as error:
                return error

    error = asyncio.run(scenario())
    assert (error.problem.error_id, error.problem.party) == ("result-mismatch", BANK)
    assert net.releases(BANK) == []
    assert not (tmp_path / "out").exists()
