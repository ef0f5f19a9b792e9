"""Moments of a command line: a day or a time, in UTC unless the time says otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, time

import click


def start_of(context: click.Context, option: click.Parameter, value: str | None) -> datetime | None:
    """Read a moment; a day alone means its beginning."""
    return _moment(value, time.min)


def end_of(context: click.Context, option: click.Parameter, value: str | None) -> datetime | None:
    """Read a moment; a day alone means its end."""
    return _moment(value, time.max)


def _moment(value: str | None, of_day: time) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        if "T" not in value and " " not in value:
            moment = datetime.combine(moment.date(), of_day)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value}: write a date as 2026-12-31, or a time as 2026-12-31T18:00"
        ) from None
