"""Small DP jobs for tests: fields, bundles, networks, and runs of all parties with ledgers of their own."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from anonymize.tds import Observer
from crypto.local import Transcript, run_local
from jobs.data.sources import Csv
from jobs.dp.charge import Epsilon
from jobs.dp.result import DpResult
from jobs.file.bundle import Bundle
from jobs.loading import open_task
from jobs.modes import protocol_of
from jobs.owner.account import LedgerAccount
from jobs.owner.ledger import PrivacyLedger
from jobs.task import Task
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.network import Network, network
from tests.support.rng import SeededRng
from tests.support.samples import COLUMNS, PARTIES, joint_job, single_job

TWO = PARTIES[:2]
PARTITIONS = ("horizontal", "vertical")
N_ROWS = 61
"""No public size of the sample jobs is this number, so it can be looked for."""


def dp_model(**changes: str) -> dict[str, Any]:
    return {"dp": {"epsilon": "1", "specializations": "2", "max_rows": "1000", **changes}}


def dp_single(model: Mapping[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    return single_job(model=dp_model(**(model or {})), **changes)


def dp_joint(partition: str, model: Mapping[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """A horizontal job of three parties, or a vertical one of two; with `engine: thesis` always two."""
    given = dict(model or {})
    parties: dict[str, Any] = {name: {"address": "127.0.0.1:7401"} for name in PARTIES}
    if given.get("engine") == "thesis" or partition == "vertical":
        parties.pop(PARTIES[2])
    if partition == "vertical":
        parties[TWO[0]]["columns"] = ["job"]
        parties[TWO[1]]["columns"] = ["age", "surgery"]
    fields = {"disclosure": None, "partition": partition, "parties": parties, **changes}
    return joint_job(model=dp_model(**given), **fields)


def dealt(bundle: Bundle, rows: Sequence[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Deal out rows to the parties; in vertical jobs give each all of them with two strangers."""
    roster = bundle.job.roster
    if bundle.job.partition == "horizontal":
        return {name: list(rows[i :: len(roster)]) for i, name in enumerate(roster)}
    strangers = sample_rows(2, seed=9)
    return {
        name: [*rows, *({**row, "patient": f"{name}-{row['patient']}"} for row in strangers)]
        for name in roster
    }


def dp_tables(folder: Path, bundle: Bundle, rows: Sequence[dict[str, str]] | None = None) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    parts = dealt(bundle, rows or sample_rows(N_ROWS))
    return {name: jobs.write_csv(folder / f"{name}.csv", part, COLUMNS) for name, part in parts.items()}


def dp_network(folder: Path, bundle: Bundle) -> Network:
    return network(folder / "net", bundle, dp_tables(folder / "tables", bundle))


@dataclass
class Site:
    """The parties of a joint DP job in this process, each with its ledger on disk."""

    folder: Path
    bundle: Bundle
    tables: Mapping[str, Path]

    @property
    def task(self) -> Task:
        return open_task(self.bundle)

    def ledger(self, party: str) -> PrivacyLedger:
        place = self.folder / party
        place.mkdir(parents=True, exist_ok=True)
        return PrivacyLedger(place / "privacy.sqlite", party)

    def run(
        self,
        *,
        seed: object = 0,
        limits: Mapping[str, Fraction] | None = None,
        **how: Any,
    ) -> tuple[dict[str, Any], Transcript]:
        """One run of the job; ``limits``: of the parties' ledgers, 10 where nothing is said."""
        generators, task = {}, self.task
        for me, path in self.tables.items():
            account = LedgerAccount(Epsilon(self.ledger(me), task, (limits or {}).get(me, Fraction(10))))
            loaded = task.load(Csv(path), me)
            coins = SeededRng((seed, me))
            generators[me] = protocol_of(task, me, loaded, coins, Observer(), account)
        return run_local(generators, **how)

    def states(self, party: str) -> list[str]:
        return [entry.state for entry in self.ledger(party).entries()]

    def spent(self) -> set[Fraction]:
        return {self.ledger(party).spent() for party in self.tables}


def dp_site(folder: Path, partition: str = "horizontal", n_rows: int = N_ROWS, **model: str) -> Site:
    bundle = jobs.bundle_of(dp_joint(partition, model))
    return Site(folder / "site", bundle, dp_tables(folder / "tables", bundle, sample_rows(n_rows)))


@functools.cache
def made(partition: str, model: tuple[tuple[str, str], ...] = ()) -> tuple[Site, DpResult]:
    with tempfile.TemporaryDirectory() as folder:
        n_rows = 24 if ("engine", "thesis") in model else N_ROWS
        site = dp_site(Path(folder), partition, n_rows, **dict(model))
        results, _ = site.run()
    result = results[PARTIES[0]]
    assert isinstance(result, DpResult)
    return site, result
