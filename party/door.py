"""The door of a party: who may ask for a job, before a byte of the job is read.

Whoever may not hears one sentence, the same whatever the job would have been.
"""

from __future__ import annotations

from jobs.errors import PartyError, PolicyError
from jobs.owner.rules import coordinator_rule
from party.owner.config import PartyConfig
from party.owner.in_force import Refresh


async def let_in(caller: str, before: PartyConfig, refresh: Refresh | None) -> PartyConfig:
    """Return the configuration that is in force for this caller's job; ``before`` was in force until now.

    Raises PolicyError if the caller may start no jobs here; to whoever may, ConfigError if the files cannot be taken
    over.
    """
    try:
        config = await refresh() if refresh is not None else before
    except PartyError:
        _check_right(caller, before)
        raise
    _check_right(caller, config)
    return config


def _check_right(caller: str, config: PartyConfig) -> None:
    for objection in coordinator_rule(caller).objections(config.policy):
        raise PolicyError("policy-refused", objection, party=config.name, phase="admit")
