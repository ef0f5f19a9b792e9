"""Sentences reach Python in its words: no option and no command with a function is left, on any path."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pandas as pd
import pytest

import jointcut as jc
from benchmarks.prose import sources
from jointcut.api.wording import in_python

TOWN = jc.Column(role="qid", taxonomy={"*": ["Bonn", "Lyon"]})
TABLE = pd.DataFrame({"town": ["Bonn", "Lyon"] * 20})
OF_A_COMMAND = re.compile(
    r"--[a-z]|(?<!the )coordinator (budget|draft|evaluate|explore|run|simulate|verify)\b"
)

MAY_SAY = re.compile("--[a-z]|coordinator")
"""A file without either has no text to read closely."""


def dp_job() -> jc.Job:
    return jc.Job(name="visits", model=jc.Synthetic(epsilon=1), goal="general", columns={"town": TOWN})


@pytest.mark.parametrize("folder", ["anonymize", "jobs", "evaluation"])
def test_no_sentence_of_the_inner_layers_keeps_an_option(folder: str) -> None:
    """Every text of the sources, as a test that a new sentence passes without a change of the table."""
    left = [
        f"{path.name}: {text}"
        for path in sources(folder)
        if path.name not in ("commands.py", "cluster_commands.py")  # of commands alone
        and MAY_SAY.search(path.read_text("utf-8"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for text in [in_python(node.value)]
        if OF_A_COMMAND.search(text) and "party " not in text
    ]
    assert left == []


def test_options_with_a_value_are_arguments() -> None:
    assert in_python("draft again with `--id patient no`") == "draft again with `id='patient no'`"
    assert in_python("or `--class age`: x") == "or `class_='age'`: x"
    assert in_python("with `--out` or `--budget`") == "with `out` or `budget`"


def test_a_separator_of_a_path_is_told_without_an_option(tmp_path: Path) -> None:
    """Python has no argument for the separator. Private details reach Python as they are, as they may have values."""
    (tmp_path / "table.csv").write_text("town;age\nBonn;1\nLyon;2\n")
    fields = {
        "version": 1,
        "name": "v",
        "partition": "single",
        "goal": "general",
        "model": {"lkc": {"L": 1, "K": 2}},
    }
    fields |= {"columns": {"town": {"role": "qid", "suppress": ["Bonn", "Lyon"]}}}
    job = jc.Job.from_dict({**fields, "data": {"path": str(tmp_path / "table.csv"), "delimiter": ","}})
    with pytest.raises(jc.Error) as raised:
        jc.anonymize(None, job)
    told = f"{raised.value} {raised.value.private}"
    assert "beside the path; a command that names the file has an option of this name" in told
    assert not OF_A_COMMAND.search(told)


def test_a_job_outside_its_folder_is_told_with_the_argument(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "town.csv").write_text("Bonn;*\nLyon;*\n")
    (tmp_path / "jobs" / "job.yaml").write_text(
        "{version: 1, name: v, partition: single, goal: general, data: t.csv, model: {lkc: {L: 1, K: 2}}, "
        "columns: {town: {role: qid, taxonomy: ../town.csv}}}"
    )
    with pytest.raises(jc.Error) as raised:
        jc.anonymize(TABLE, tmp_path / "jobs" / "job.yaml")
    assert (
        "`jointcut.Job.from_yaml(..., files_anywhere=True)` if you know who wrote the job"
        in raised.value.remedy
    )


def test_a_spent_budget_names_the_argument_and_the_function(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    jc.anonymize(TABLE, dp_job(), ledger=ledger, budget=1)
    other = jc.Job(name="again", model=jc.Synthetic(epsilon=1), goal="general", columns={"town": TOWN})
    with pytest.raises(jc.Error) as raised:
        jc.anonymize(TABLE, other, ledger=ledger, budget=1)
    assert (
        raised.value.remedy == "lower epsilon, or allow more with `budget`; what is spent: `jointcut.budget`"
    )
    with pytest.warns(UserWarning, match="again") as told:
        result = jc.anonymize(TABLE, dp_job(), ledger=ledger)
    assert not any(OF_A_COMMAND.search(str(each.message)) for each in told)
    assert not any(OF_A_COMMAND.search(note) for note in result.notes)


def test_a_verification_names_the_argument() -> None:
    job = jc.Job(name="v", model=jc.Lkc(L=1, K=2), goal="general", columns={"town": TOWN})
    found = jc.verify(jc.anonymize(TABLE, job), job)
    assert "the argument `release`" in found.text
    assert not OF_A_COMMAND.search(found.text)


@pytest.mark.parametrize(
    ("part", "keys", "shown"),
    [
        (
            jc.Dates,
            {"min": "2020-01-01", "max": "2021-01-01"},
            "`min`: write `start`; unknown key `max`: write `to`",
        ),
        (jc.Dates, {"from_": "2020-01-01", "to": "2021-01-01"}, "unknown key `from_`: write `start`."),
        (jc.Dates, {"to": "2021-01-01", "step": "1mo"}, "`start` is missing: write `start=...`"),
        (jc.Clock, {"min": "08:00", "max": "18:00"}, "unknown key `min`: write `start`"),
        (
            jc.Numeric,
            {"start": 0, "end": 9},
            "unknown key `start`: write `min`; unknown key `end`: write `max`",
        ),
        (jc.Numeric, {"min": 0, "step": 1}, "`max` is missing: write `max=...`"),
    ],
)
def test_bounds_have_the_names_of_the_arguments(part: type, keys: dict[str, object], shown: str) -> None:
    with pytest.raises(jc.Error) as raised:
        part(**keys)
    assert shown.rstrip(".") in raised.value.message
    assert "from" not in str(raised.value).replace("from_", "")
    assert str(raised.value).startswith(f"{raised.value.id}: {part.__name__}: ")


@pytest.mark.parametrize("name", ["x --budget y", "coordinator run", "party of --ages", "a.b (c"])
def test_names_of_columns_stay_as_they_are(name: str) -> None:
    job = jc.Job(
        name="n",
        model=jc.Lkc(L=1, K=2),
        goal="general",
        columns={name: jc.Column(role="qid", taxonomy={"*": ["Bonn", "Lyon"]})},
    )
    with pytest.raises(jc.Error) as raised:
        jc.anonymize(TABLE, job)
    assert raised.value.message == f"the table has no column {name}"
    assert f"the table has no column {name}. What" in str(raised.value)
    with pytest.raises(jc.Error) as raised:
        jc.anonymize(pd.DataFrame({name: ["Rome"] * 20}), job)
    assert f"column {name} has a value" in raised.value.message


@pytest.mark.parametrize(
    ("text", "worded"),
    [
        ("write '--budget' or --budget", "write '--budget' or budget"),
        (
            "the table's row needs --max-cells, the job's not",
            "the table's row needs max_cells, the job's not",
        ),
        ("`party budget --accept`, then --budget", "`party budget --accept`, then budget"),
        ("party north has no rows, see --class", "party north has no rows, see class_"),
    ],
)
def test_only_options_outside_of_names_are_worded(text: str, worded: str) -> None:
    assert in_python(text) == worded
