"""Mode of joint jobs of sequences."""

from __future__ import annotations

from anonymize.joint.disclosure import ALLOWED, MIX
from jobs.sequences import run, sentences
from jobs.task import HiddenCosts, Mode

# How many rows each party has is told to the leader alone.
_MIX = HiddenCosts(frozenset({MIX}))

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
        words=sentences.of_sealed_runs,
        fields=sentences.joint_run_fields,
    ),
)
