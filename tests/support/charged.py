"""The parties of a joint job in this process, each with a privacy ledger on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anonymize.tds import Observer
from crypto.local import run_local
from jobs.data.sources import Csv
from jobs.file.bundle import Bundle
from jobs.loading import open_task
from jobs.modes import protocol_of
from jobs.owner.account import LedgerAccount
from jobs.owner.charge import Limits, Release
from jobs.owner.ledger import PrivacyLedger
from tests.support import jobs
from tests.support.rng import SeededRng
from tests.support.samples import COLUMNS


@dataclass
class Site:
    """The parties of a job in this process, each with its ledger on disk."""

    folder: Path
    bundle: Bundle
    limit: int | None = 1
    own_k: int = 1
    other_domains: bool = False
    runs: int = 0
    limits: dict[str, int | None] = field(default_factory=dict)
    accounts: dict[str, LedgerAccount] = field(default_factory=dict)

    def write(self, rows: list[dict[str, str]], order: int = 1) -> None:
        """Deal rows out among the parties; of a vertical job each party has all."""
        roster = self.bundle.job.roster
        for i, name in enumerate(roster):
            mine = rows if self.bundle.job.partition == "vertical" else rows[i :: len(roster)]
            jobs.write_csv(self.table(name), mine[::order], COLUMNS)

    def table(self, party: str) -> Path:
        return self.folder / f"{party}.csv"

    def ledger(self, party: str) -> PrivacyLedger:
        place = self.folder / party
        place.mkdir(parents=True, exist_ok=True)
        return PrivacyLedger(place / "privacy.sqlite", party)

    def run(self, **how: Any) -> Any:
        """Run the job under new accounts; return results and transcript. ``how``: of `run_local`."""
        self.runs += 1
        task = open_task(self.bundle)
        generators = {}
        for me in self.bundle.job.roster:
            loaded = open_task(self.bundle).load(Csv(self.table(me)), me)
            coins = SeededRng((self.runs, me))
            run = bytes([self.runs] * 16)
            limit = self.limits.get(me, self.limit)
            limits = Limits(limit, self.own_k, self.other_domains)
            account = LedgerAccount(
                Release(self.ledger(me), task, run, limits, task.model.charges.known(task))
            )
            account.check()
            account.read(task, me, loaded, coins)
            self.accounts[me] = account
            generators[me] = protocol_of(task, me, loaded, coins, Observer(), account)
        return run_local(generators, **how)

    def states(self) -> list[list[str]]:
        """Return the states of each party's entries."""
        return [[e.state for e in self.ledger(party).entries()] for party in self.bundle.job.roster]
