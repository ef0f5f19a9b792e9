"""Joint sequences between real daemons: the file of one holder of all records, signed, verified, and no more told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import party.cli.console as console
from anonymize.joint.disclosure import ALLOWED
from coordinator.run import conduct
from jobs.release.csv import REPORT, TABLE
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.network import network, serving, write_job
from tests.support.wards import dealt_records, joint_wards_job, movements, wards_job

NAMES = ("north", "south", "west")
CANARY = "CANARY-4711"
"""The id of a patient in the south."""


def test_daemons_make_the_file_of_one_holder(
    tmp_path: Path,
    wire: list[bytes],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(console._settings, "format", "json")
    records = movements(90)
    records[1] = [line.replace("1,", f"{CANARY},", 1) for line in records[1]]
    (tmp_path / "single").mkdir()
    dealt_records(tmp_path / "single", ["table"], records)
    tables = dealt_records(tmp_path, NAMES, records)
    fields = joint_wards_job(parties={name: {"address": f"{name}:1"} for name in NAMES})
    net, out = network(tmp_path / "net", jobs.bundle_of(fields), tables), tmp_path / "out"

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, out)

    run(scenario())
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    shown = [line["sweep"] for line in lines if line["event"] == "sweep"]
    assert {line["event"] for line in lines} == {"phase", "root", "sweep"}
    single = write_job(tmp_path / "single", wards_job())
    alone = invoke("coordinator", "run", single, "--out", tmp_path / "alone")
    assert alone.code == 0
    assert [n for n in range(1, 20) if f" · sweep {n} · " in alone.err] == shown
    assert (out / TABLE).read_bytes() == (tmp_path / "alone" / TABLE).read_bytes()
    reports = [json.loads((folder / REPORT).read_text()) for folder in (out, tmp_path / "alone")]
    assert reports[0]["sweeps"] == reports[1]["sweeps"]
    assert shown == list(range(1, len(reports[0]["sweeps"]) + 1))
    assert {each["name"] for each in reports[0]["reveals"]} == {
        row.name for row in ALLOWED[net.task.mode.name]
    }
    costs = reports[0]["cost"]["parties"].values()
    assert all("mix" not in each["phases"] and not each["links"] for each in costs)
    checked = invoke("coordinator", "verify", write_job(tmp_path / "joint", fields), out)
    assert (checked.code, checked.err) == (0, "")
    assert "signed by all parties" in checked.out

    accounts = [json.loads(net.account(name).read_text()) for name in NAMES]
    lost = sum(account["records"]["lost"]["instances"] for account in accounts)
    assert lost == reports[1]["lost"]["instances"] > 0
    assert sum(map(len, wire)) > 10_000
    others = [net.root / name for name in ("north", "west", "coordinator")]
    files = b"".join(p.read_bytes() for folder in (*others, out) for p in folder.rglob("*") if p.is_file())
    assert CANARY.encode() not in b"".join(wire) + files
