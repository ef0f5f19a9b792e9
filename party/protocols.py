"""From a job to the protocol it asks for: the one place that knows them all."""

from __future__ import annotations

from anonymize.joint.horizontal import JointOutcome, Request, Roster
from anonymize.joint.led import anonymize_led
from anonymize.joint.sealed import anonymize_sealed
from anonymize.joint.vertical import anonymize_vertically
from anonymize.tds import Observer
from crypto.rng import Rng
from crypto.rounds import Rounds
from party.bundle import Bundle
from party.data import Loaded, LoadedColumns


def protocol_of(
    bundle: Bundle, me: str, loaded: Loaded | LoadedColumns, rng: Rng, observer: Observer
) -> Rounds[JointOutcome]:
    """The generator that party ``me`` runs for a job."""
    job = bundle.job
    roster = Roster(me, job.roster, job.leader_name, job.deputy_name)
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
