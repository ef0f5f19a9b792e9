"""Voice of a coordinator in the test process that nobody hears."""

from __future__ import annotations

from coordinator.progress import Voice
from jointcut.api.voices import Silent

SILENT = Voice(lambda *_: Silent(), lambda *_, **__: None)
