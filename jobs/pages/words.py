"""Numbers, shares and times as pages print them."""

from __future__ import annotations

from typing import Any


def share(value: float) -> str:
    """A share, 0 to 1, in percent, with one digit after the point where it is no whole number.

    Never 0 % or 100 % that is not exactly that.
    """
    if 0 < value < 0.001:
        return "under 0.1 %"
    if 0.999 < value < 1:
        return "over 99.9 %"
    return f"{100 * value:.1f} %".replace(".0 %", " %")


def number(value: Any) -> str:
    """A count with its thousands apart; anything else as it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def seconds(value: float) -> str:
    """A duration."""
    return f"{value:.1f} s" if value < 60 else f"{value / 60:.1f} min"


def size(n_bytes: int) -> str:
    """Bytes."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.1f} {unit}"
    return f"{n_bytes} bytes"
