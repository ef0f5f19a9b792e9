"""A coordinator's process that stops for a word at the beginning of a phase: `python -m tests.matrix.rehearsal`.

It imports everything, then reads a line of JSON: the phase, and the words of `coordinator run`. At the phase it
prints PAUSED and goes on when it is told.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from coordinator import cli
from coordinator.conduct import Conductor
from jobs.loading import import_models
from party.net import control

PAUSED = "paused"
PHASES = ("connect", "admit", "load", "protocol", "collect", "deliver", "commit")
_METHODS = {
    "connect": "connect",
    "admit": "submit",
    "collect": "collect",
    "deliver": "deliver",
    "commit": "_kept",
}
"""Methods of the conductor that begin a phase."""


def pause() -> None:
    print(PAUSED, flush=True)
    sys.stdin.readline()


def pause_once(phase: str) -> None:
    """Let the conductor pause when it begins a phase first."""
    if phase in _METHODS:
        _before(_METHODS[phase], lambda _: True)
    elif phase == "load":
        _before("_tell_all", lambda given: isinstance(given[0], control.Read))
    else:
        _before("_take", lambda given: isinstance(given[1], control.Progress) and given[1].iteration > 0)


def _before(method: str, meant: Callable[[Any], bool]) -> None:
    """Pause before the first call of a method whose arguments are meant."""
    honest, done = getattr(Conductor, method), list[bool]()

    def paused(self: Conductor, *given: Any) -> Any:
        if not done and meant(given):
            done.append(True)
            pause()
        return honest(self, *given)

    setattr(Conductor, method, paused)


def main() -> None:
    for command in cli.COMMANDS:
        command.command  # noqa: B018  imports it
    import_models()
    asked = json.loads(sys.stdin.readline())
    pause_once(asked["phase"])
    sys.argv = ["coordinator", *asked["words"]]
    cli.main()


if __name__ == "__main__":
    main()
