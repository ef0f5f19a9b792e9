"""Who decides for a party, and until when: the same for the command line and the owner's page."""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta

from jobs.errors import ConfigError


def end_of(day: str) -> float:
    """The end of a day, UTC, in seconds since 1970. Raises ConfigError for another text, and for the past."""
    try:
        end = datetime.combine(date.fromisoformat(day) + timedelta(days=1), time(), UTC)
    except (ValueError, OverflowError) as error:
        raise ConfigError("usage", f"until {day}: write a date as 2030-12-31") from error
    if end <= datetime.now(UTC):
        raise ConfigError("usage", f"until {day}: that day is over")
    return end.timestamp()


def user() -> str:
    """Who runs this process: the user of the operating system."""
    number = os.getuid()
    with suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return str(number)
