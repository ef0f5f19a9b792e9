"""What the report of a vertical run says besides: who contributed what, what parties can read, what was protected."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from anonymize.exposure import measure_exposure
from anonymize.release import Release
from party.bundle import Bundle
from party.job import Job
from party.release_file import bounds_of


def vertical_fields(bundle: Bundle, release: Release) -> dict[str, Any]:
    """Public facts of the job, and counts of the released table."""
    job = bundle.job
    exposure = measure_exposure(release, job.names("qid", "class"), bounds_of(release, bundle))
    return {
        "contributed": {party: list(job.contributed_by(party)) for party in job.roster},
        "insider": bool(job.insider),
        "exposed_to_parties": asdict(exposure),
    }


def vertical_words(job: Job) -> list[str]:
    """What was protected, from whom, under which assumptions, in plain words."""
    words = [
        "Records were matched by keyed ids: every party learned which of its own ids all parties have, and how many "
        "ids each has, but no other id.",
        "Every party knows, for each matched person, the generalized record and the class: the table's own values, "
        "but with the person attached. Raw values of other parties' columns were told to nobody.",
        "L and K do not bound what a party infers about a person it has matched: its cell (all generalized "
        "quasi-identifiers and the class) may be small or hold one sensitive value only; `exposed_to_parties` counts "
        f"the records in such cells. {_insider(job)}",
        "Sensitive and plain columns were sent to the coordinator by their holder, in random order inside each cell: "
        "within a cell nobody can link them to a person, or one holder's to another's.",
        _class(job),
        "A candidate that was discarded is known to its owner, and so is that it failed: in some finer group a "
        "protected value is above C. The holder of a sensitive column saw which value of whose column was tested "
        "against it, and when. Nobody else was told.",
        "The parties are assumed to follow the protocol (semi-honest) and the certificates to be the right ones.",
    ]
    return [*words, *_scores(job)]


def _insider(job: Job) -> str:
    if job.insider:
        return "`insider: true`: no protected value is above its C in any cell."
    return "`insider: true` would hold every cell to C."


def _class(job: Job) -> str:
    for name in job.names("class"):
        giver = job.columns[name].shared_by
        if giver is not None:
            return f"{giver} gave the class ({name}) of every matched person to the other parties."
        return f"All parties hold the class ({name}); that they agree was found out without sending it."
    return "The job has no class."


def _scores(job: Job) -> list[str]:
    if job.disclosure == "leader":
        return ["As published, every party told all others its best score in every iteration."]
    pair = f"{job.leader_name} and {job.deputy_name}"
    words = (
        f"Scores were compared inside a garbled circuit of {pair}: only whose candidate is the best came out."
    )
    return [words if len(job.roster) == 2 else f"{words} This holds as long as these two do not collude."]
