"""Modules by total time, behind the slowest tests of `--durations`."""

from __future__ import annotations

from collections import defaultdict

import pytest

MOST = 40
"""Most modules that are printed."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("durations") is None:
        return
    took: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                took[report.nodeid.partition("::")[0]] += report.duration
    terminalreporter.write_sep("=", f"modules by total time, {sum(took.values()):.0f} s")
    for module in sorted(took, key=lambda name: -took[name])[:MOST]:
        terminalreporter.write_line(f"{took[module]:.1f}s {module}")
