"""Jobs of five parties and more: with a compute pair that is not the first two, in each partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.file.bundle import Bundle
from party.daemon import Daemon
from party.net.link import Duplex
from party.net.mesh import Dial
from party.owner.config import PartyConfig
from party.owner.in_force import Refresh
from tests.support import jobs
from tests.support.dialled import wrapped
from tests.support.joint import sample_rows
from tests.support.samples import COLUMNS, columns, joint_job, vertical_job

PARTIES = ("p0", "p1", "p2", "p3", "p4")
LEADER, DEPUTY = "p1", "p3"
_SAME = {"role": "qid", "taxonomy": {"Any": {"Blue": ["Janitor", "Mover"], "White": ["Lawyer"]}}}
_COPIES = {"post": "job", "work": "job"}
"""Further columns of vertical jobs, and the sample columns that they repeat."""


def horizontal(n: int = 5, **changes: Any) -> dict[str, Any]:
    """A horizontal job of n parties."""
    parties = {f"p{i}": {"address": f"127.0.0.1:{7400 + i}"} for i in range(n)}
    return joint_job(**{"parties": parties, "leader": LEADER, "deputy": DEPUTY, **changes})


def vertical(**changes: Any) -> dict[str, Any]:
    """A vertical job of five parties. The holder of the sensitive column is outside the pair."""
    held = (["job"], ["age"], ["post"], ["work"], ["surgery"])
    parties = {
        name: {"address": f"127.0.0.1:{7400 + i}", "columns": own}
        for i, (name, own) in enumerate(zip(PARTIES, held, strict=True))
    }
    return vertical_job(
        **{"parties": parties, "leader": LEADER, "columns": columns(post=_SAME, work=_SAME), **changes}
    )


def tables(folder: Path, bundle: Bundle, n_rows: int = 60) -> dict[str, Path]:
    """The sample rows dealt out, or all of them to everybody."""
    folder.mkdir(parents=True, exist_ok=True)
    roster, rows = bundle.job.roster, sample_rows(n_rows)
    if bundle.job.partition == "vertical":
        wide = [{**row, **{new: row[old] for new, old in _COPIES.items()}} for row in rows]
        return {name: jobs.write_csv(folder / f"{name}.csv", wide, list(wide[0])) for name in roster}
    return {
        name: jobs.write_csv(folder / f"{name}.csv", rows[i :: len(roster)], COLUMNS)
        for i, name in enumerate(roster)
    }


@dataclass
class Counting:
    """Makes daemons whose calls of peers are counted."""

    called: list[tuple[str, str]] = field(default_factory=list)

    def __call__(
        self, config: PartyConfig, dialing: Callable[[PartyConfig], Dial], refresh: Refresh
    ) -> Daemon:
        def counted(peer: str, duplex: Duplex) -> Duplex:
            self.called.append((config.name, peer))
            return duplex

        return Daemon(config, wrapped(dialing, counted), refresh)

    @property
    def links(self) -> set[frozenset[str]]:
        """Pairs of parties with a connection."""
        return {frozenset(pair) for pair in self.called}

    def everywhere(self, bundle: Bundle) -> Mapping[str, Counting]:
        """This maker, for each party."""
        return dict.fromkeys(bundle.job.roster, self)
