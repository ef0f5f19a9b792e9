"""All models, and all their modes."""

from __future__ import annotations

from jobs.loading import MODELS, model_named
from jobs.partitions import PARTITIONS
from jobs.task import Mode

MODES: tuple[Mode, ...] = tuple(
    mode for name in MODELS for partition in PARTITIONS for mode in model_named(name).modes(partition)
)
