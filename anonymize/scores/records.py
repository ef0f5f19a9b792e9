"""Goal general: |T[v]|, the nodes with most records first (the baseline of [CLU])."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from anonymize.scores.groups import Groups


@dataclass(frozen=True)
class Records(Groups):
    """All candidates, those with most records first: the sizes of their leaf partitions, added up as they are."""

    power: ClassVar[int] = 1
