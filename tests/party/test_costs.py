"""A party's costs: those that may stand in the report, and those that it keeps to itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from party.costs import own_costs, public_costs
from party.net.runner import Meter
from tests.support import jobs
from tests.support.dp_jobs import dp_joint
from tests.support.duplex import linked
from tests.support.samples import AS_IT_IS, columns, joint_job, vertical_job
from tests.support.synthetic_jobs import synthetic_joint

PHASES = ("align", "score", "validity", "integrate", "count", "measure", "choose")


def metered() -> Meter:
    """So many bytes, rounds and gates in every phase that any mode has."""
    meter = Meter()
    for i, name in enumerate(PHASES, 1):
        meter.phase(name)
        meter.sent(4711 * i)
        meter.received(1000 * i)
        meter.waited()
        meter.gates(10 * i)
    meter.phase("end")
    return meter


def costs(fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """All that the party counted, and what it tells."""
    ours, _ = linked()
    task, meter, links = jobs.task_of(fields), metered(), {"b": ours}
    return own_costs(meter, links), public_costs(task, meter, links)


def test_an_owner_has_everything() -> None:
    own, _ = costs(vertical_job())
    assert set(own["phases"]) == {*PHASES, "start", "end"}
    assert own["phases"]["validity"] | {"seconds": 0} == {
        "seconds": 0,
        "bytes_sent": 4711 * 3,
        "bytes_received": 3000,
        "rounds": 1,
        "gates": 30,
    }
    assert set(own["links"]) == {"b"}
    json.dumps(own)


@pytest.mark.parametrize("level", ["sealed", "leader"])
def test_horizontal_runs_keep_nothing_back(level: str) -> None:
    own, told = costs(joint_job(disclosure=level))
    assert told == own


def numbers(told: Any) -> set[float]:
    """Return all numbers of an account. Their digits may occur by chance within the seconds of another phase."""
    if isinstance(told, dict):
        return set().union(*map(numbers, told.values()))
    if isinstance(told, list):
        return set().union(*map(numbers, told))
    return {told} if isinstance(told, int | float) else set()


@pytest.mark.parametrize("level", ["sealed", "leader", "strict"])
def test_what_a_mix_cost_is_on_nobodys_account(level: str) -> None:
    """Its bytes are so many for every row of the party; the sum over a link holds them."""
    ours, _ = linked()
    meter = metered()
    meter.phase("mix")
    meter.sent(4242)
    task = jobs.task_of(joint_job(disclosure=level, columns=columns(patient=AS_IT_IS)))
    own, told = own_costs(meter, {"b": ours}), public_costs(task, meter, {"b": ours})
    assert set(own["phases"]) - set(told["phases"]) == {"mix"}
    assert own["links"] != {}
    assert told["links"] == {}
    assert 4242 not in numbers(told)


@pytest.mark.parametrize("level", ["sealed", "leader"])
def test_tests_of_vertical_runs_are_on_nobodys_account(level: str) -> None:
    """Neither in a phase, nor in a sum, nor in the time that others wait for them."""
    own, told = costs(vertical_job(disclosure=level))
    assert set(own["phases"]) - set(told["phases"]) == {"validity"}
    assert told["links"] == {}
    assert {name for name, cost in told["phases"].items() if "seconds" not in cost} == {"score", "integrate"}
    assert 4711 * 3 not in numbers(told)


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_dp_runs_tell_no_time_and_no_traffic(partition: str) -> None:
    own, told = costs(dp_joint(partition))
    assert told["links"] == {}
    assert not any("seconds" in cost for cost in told["phases"].values())
    withheld = set(own["phases"]) - set(told["phases"])
    assert withheld == ({"align", "count"} if partition == "vertical" else set())


def test_the_number_of_joined_records_is_in_no_cost_of_a_synthetic_table() -> None:
    """Bytes grow with it wherever something is counted, and gates with its width."""
    own, told = costs(synthetic_joint("vertical"))
    assert set(own["phases"]) - set(told["phases"]) == {"align", "measure", "choose"}
    assert told["links"] == {}
    assert not any("seconds" in cost for cost in told["phases"].values())


def test_what_is_told_takes_nothing_from_what_is_kept() -> None:
    task, meter, links = jobs.task_of(vertical_job()), metered(), {}
    before = own_costs(meter, links)
    public_costs(task, meter, links)
    assert own_costs(meter, links) == before
