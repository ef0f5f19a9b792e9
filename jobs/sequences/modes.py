"""Mode of joint jobs of sequences."""

from __future__ import annotations

from anonymize.joint.disclosure import ALLOWED, MIX
from jobs.sequences import run, words
from jobs.task import Mode, Withheld

# How many rows each party has is told to the leader alone.
_MIX = Withheld(frozenset({MIX}))

MODES: tuple[Mode, ...] = (
    Mode(
        "sequences",
        "horizontal",
        "sealed",
        "sequences/horizontal/sealed",
        run.run_sealed,
        ALLOWED["sequences/horizontal/sealed"],
        shared=True,
        check=run.check_schema,
        mixed=run.records_mixed,
        withheld=_MIX,
        words=words.of_sealed_runs,
        fields=words.joint_run_fields,
    ),
)
