"""A simulation in one process keeps no ledger: what has to be paid for elsewhere is free, and nothing is kept."""

from __future__ import annotations

from typing import Any

import pytest

from anonymize.tds import Observer
from jobs.owner.account import Unaccounted
from jobs.task import Account
from tests.support import jobs
from tests.support.samples import joint_job


def test_the_protocol_is_run_as_it_is() -> None:
    """Same messages, same observer, same result: nothing stands between, nothing is asked of peers."""
    shown: list[Observer] = []

    def protocol(observer: Observer) -> Any:
        shown.append(observer)
        answer = yield "a message"
        return ("result", answer)

    observer, account = Observer(), Unaccounted()
    rounds = account.conducted(jobs.task_of(joint_job()), ("b",), protocol, observer)
    assert next(rounds) == "a message"
    assert shown == [observer]
    with pytest.raises(StopIteration) as ended:
        rounds.send("an answer")
    assert ended.value.value == ("result", "an answer")


def test_it_can_do_all_that_an_account_is_asked() -> None:
    asked = {name for name in vars(Account) if not name.startswith("_")} | set(Account.__annotations__)
    assert asked <= {name for name in dir(Unaccounted()) if not name.startswith("_")}
    account = Unaccounted()
    account.check()
    account.deliver(bytes(32), agreed=True)
    assert account.remark == ""
