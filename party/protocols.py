"""From a job to the protocol it asks for: the one place that knows them all."""

from __future__ import annotations

from typing import TypeAlias

from anonymize.joint.dp import JointDpOutcome
from anonymize.joint.dp_horizontal import release_horizontally
from anonymize.joint.dp_thesis_horizontal import release_horizontally_as_published
from anonymize.joint.dp_thesis_vertical import release_vertically_as_published
from anonymize.joint.dp_vertical import release_vertically
from anonymize.joint.horizontal import JointOutcome, Request, Roster
from anonymize.joint.led import anonymize_led
from anonymize.joint.sealed import anonymize_sealed
from anonymize.joint.vertical import anonymize_vertically
from anonymize.tds import Observer
from crypto.rng import Rng
from crypto.rounds import Rounds
from party.bundle import Bundle
from party.data import Loaded, LoadedColumns
from party.dp_result import DpResult, joint_result
from party.dp_run import Account, Charging, charged_run

Result: TypeAlias = JointOutcome | DpResult
"""What a joint run comes to, at one party."""


def protocol_of(
    bundle: Bundle,
    me: str,
    loaded: Loaded | LoadedColumns,
    rng: Rng,
    observer: Observer,
    account: Account | None = None,
) -> Rounds[Result]:
    """The generator that party ``me`` runs for a job. ``account``: where a DP run is charged, if anywhere."""
    job = bundle.job
    roster = Roster(me, job.roster, job.leader_name, job.deputy_name)
    if job.model.dp is not None:
        if account is None:
            return _uncharged(_dp_protocol(bundle, roster, loaded, rng, observer), bundle)
        protocol = _dp_protocol(bundle, roster, loaded, rng, Charging(account, observer))
        return charged_run(roster.others, bundle, account, protocol)
    request = Request(bundle.schema(), bundle.requirement, job.goal, bundle.digest)
    if isinstance(loaded, LoadedColumns):
        return anonymize_vertically(
            roster,
            bundle.holders,
            loaded.holding,
            request,
            rng,
            in_the_clear=job.disclosure == "leader",
            observer=observer,
        )
    if job.disclosure == "sealed":
        return anonymize_sealed(roster, loaded.table, request, rng, observer=observer)
    sums = job.secure_sum or "masked"
    return anonymize_led(roster, loaded.table, request, rng, sums=sums, observer=observer)


def _uncharged(protocol: Rounds[JointDpOutcome], bundle: Bundle) -> Rounds[Result]:
    """A simulation in one process keeps no ledgers."""
    return joint_result((yield from protocol), bundle)


def _dp_protocol(
    bundle: Bundle, roster: Roster, loaded: Loaded | LoadedColumns, rng: Rng, observer: Observer
) -> Rounds[JointDpOutcome]:
    request, as_published = bundle.dp_request, bundle.dp.engine == "thesis"
    if isinstance(loaded, LoadedColumns):
        vertical = release_vertically_as_published if as_published else release_vertically
        return vertical(roster, bundle.holders, loaded.holding, request, rng, observer=observer)
    horizontal = release_horizontally_as_published if as_published else release_horizontally
    return horizontal(roster, loaded.table, request, rng, observer=observer)
