"""Errors in job and configuration files: the key, its line, and what to write instead."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from anonymize.errors import SchemaError
from jobs.errors import ConfigError
from jobs.loading import load_task, parse_job, reader_below
from party.owner.config import PartyConfig, load_config
from tests.support.clusters import joint_clusters, single_clusters
from tests.support.commands import invoke
from tests.support.samples import single_job

JOB = """\
version: 1
name: sample
partition: single
model:
  lkc: {L: 2, K: 2, C: 0.5}
goal: classification

# a comment, and a blank line above
data: table.csv
columns:
  job: {role: qid, taxonomy: {Any: {Blue: [Janitor, Mover], White: [Lawyer]}}}
  age:
    role: qid
    numeric: {min: 0, max: 100, step: 10}
  died: {role: class}
  surgery:
    role: sensitive
    values: [Rare]
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("K: 2,", "k: 2,", "line 5: unknown key `model.lkc.k`"),
        ("K: 2,", "", "line 5: `model.lkc.K` is missing"),
        ("K: 2,", "K: two,", "line 5: `model.lkc.K` is two: write a whole number, e.g. 5"),
        (
            "values: [Rare]",
            "values: HIV",
            "line 18: `columns.surgery.values` is HIV: write a list, e.g. [HIV]",
        ),
        ("    role: qid\n", "    roel: qid\n", "line 13: unknown key `columns.age.roel`"),
        ("min: 0", "min: 2020-01-01", "line 14: `columns.age.numeric.min`: a date is no number"),
        (
            "numeric: {min: 0, max: 100, step: 10}",
            "numeric: [0, 100]",
            "line 14: `columns.age.numeric` is a list: write keys",
        ),
        ("data: table.csv", "data: {paht: table.csv}", "line 9: unknown key `data.paht`"),
        ("data: table.csv", "data: {delimiter: ';'}", "line 9: `data.path` is missing"),
        ("data: table.csv", "data: [a, b]", "line 9: `data` is a list: write keys and values"),
        ("data: table.csv", "data: {path: t.csv, delimiter: ';;'}", "line 9: `data.delimiter`"),
        (
            "data: table.csv",
            "data: table.csv\nparties: [north, south]",
            "`parties` is a list: write a key for each party, e.g. {north: {}, south: {}}",
        ),
        ("data: table.csv", "data: table.csv\nparties: north", "write a key for each party, e.g. {a: {}}"),
        ("data: table.csv\n", "", "partition single needs `data: table.csv`"),
        ("name: sample\n", "", "`name` is missing"),
        ("C: 0.5}", "C: 0.5, distinct: {}}", "list 1 or more entries, each"),
    ],
)
def test_a_wrong_key_is_named_with_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert JOB.count(old) == 1
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load_task(path)
    assert says in caught.value.problem.message


@pytest.mark.parametrize(
    ("old", "new", "error_id", "fault", "remedy"),
    [
        (
            "C: 0.5}",
            "C: 0,5}",
            "unknown-key",
            "`model.lkc.C: 0,5` has a decimal comma",
            "write `C: 0.5`, with a",
        ),
        ("C: 0.5}", "C: '0,5'}", "job-invalid", "`model.lkc.C` is 0,5", "write 0.5, with a decimal point"),
        ("C: 0.5}", "C: 50}", "job-invalid", "`model.lkc.C` is 50", "write a number above 0 and at most 1"),
        ("K: 2,", "k: 2,", "unknown-key", "unknown key `model.lkc.k`", "write `K`"),
        (
            "data: table.csv",
            "data: {path: t.csv, delimiter: ';;'}",
            "job-invalid",
            "`data.delimiter`: it is no single ASCII character",
            'write one, e.g. ";", or "\\t" for a tab',
        ),
        (
            "numeric: {min: 0, max: 100, step: 10}",
            "order: [a, b]",
            "job-invalid",
            "`columns.age.order` is a list",
            "write keys and values, e.g. {values: [low, medium, high]}",
        ),
        (
            "numeric: {min: 0, max: 100, step: 10}",
            "icd: 10",
            "job-invalid",
            "`columns.age.icd` is 10",
            "write keys and values, e.g. {version: 10, values: [I21.4, E11.9]}",
        ),
        (
            "died: {role: class}",
            "died: {role: id, normalize: [trim]}",
            "job-invalid",
            "`columns.died.normalize` is a list",
            "write keys and values, e.g. {ignore_case: true}",
        ),
        ("K: 2,", "", "job-invalid", "`model.lkc.K` is missing", "add `K: ...` under `model.lkc`"),
        ("K: 2,", "K: [2],", "job-invalid", "`model.lkc.K` is a list", "write a whole number, e.g. 5"),
        ("step: 10", "stpe: 10", "unknown-key", "unknown key `columns.age.numeric.stpe`", "write `step`"),
        (
            "numeric: {min: 0, max: 100, step: 10}",
            "dates: {min: 2024-01-01, to: 2025-01-01, step: 1mo}",
            "unknown-key",
            "unknown key `columns.age.dates.min`",
            "write `from`",
        ),
        (
            "numeric: {min: 0, max: 100, step: 10}",
            "dates: {from: 2024-01-01, max: 2025-01-01, step: 1mo}",
            "unknown-key",
            "unknown key `columns.age.dates.max`",
            "write `to`",
        ),
        (
            "data: table.csv",
            "data: {path: t.csv, normalise: {digits: true}}",
            "unknown-key",
            "unknown key `data.normalise`",
            "write `normalize` at the column with `role: id`",
        ),
        (
            "columns:\n",
            "columns:\n  nr: {role: id, normalize: {case: true}}\n",
            "unknown-key",
            "unknown key `columns.nr.normalize.case`",
            "write `ignore_case`",
        ),
        (
            "columns:\n",
            "columns:\n  nr: {role: id, normalize: {trim: true}}\n",
            "unknown-key",
            "unknown key `columns.nr.normalize.trim`",
            "leave the key out, since blanks around ids never count",
        ),
        ("goal: ", "gaol: ", "unknown-key", "unknown key `gaol`", "write `goal`"),
        ("data: table.csv", "data: {paht: t.csv}", "unknown-key", "unknown key `data.paht`", "write `path`"),
        (
            "data: table.csv",
            "data: {name: t, postgres: {dsn_env: DSN, table: t}, map: {job: {m: Mover}}}",
            "unknown-key",
            "unknown key `data.map`",
            "write the key under `data.postgres`",
        ),
        (
            "data: table.csv",
            "data: {name: t, postgres: {dsn_env: DSN, table: t}, delimter: ';'}",
            "unknown-key",
            "unknown key `data.delimter`",
            "remove or correct the key",
        ),
        (
            "lkc: {L: 2, K: 2, C: 0.5}",
            "dp: {method: synthetic, epsilon: 1, specialisations: 3}",
            "unknown-key",
            "unknown key `model.dp.specialisations`",
            "remove or correct the key",
        ),
        ("K: 2,", "K: 2, zzz: 3,", "unknown-key", "unknown key `model.lkc.zzz`", "remove or correct the key"),
        (
            "name: sample",
            "name: sample\ndisclosure: sealed",
            "job-invalid",
            "partition single has no `disclosure`",
            "leave `disclosure` out",
        ),
        (
            "K: 2,",
            "K: 2, unit: person,",
            "job-invalid",
            "model.lkc.unit: person needs a column with `role: id`, the person of each row",
            "add a column with `role: id`, the person of each row; or leave `model.lkc.unit` out",
        ),
        (
            JOB[JOB.index("  job:") : JOB.index("  died:")],
            "",
            "job-invalid",
            "columns: at least one column needs `role: qid`",
            "add `role: qid`\n",
        ),
        (
            "role: class",
            "role: plain",
            "job-invalid",
            "goal classification needs a column with `role: class`",
            "add the column, or say `goal: general`\n",
        ),
        (
            "K: 2,",
            "K: 2, secure_sum: ring,",
            "job-invalid",
            "`secure_sum` is for horizontal jobs",
            "leave `model.lkc.secure_sum` out, or change the rest of the job",
        ),
    ],
)
def test_a_fault_that_is_known_has_its_own_remedy(
    tmp_path: Path, old: str, new: str, error_id: str, fault: str, remedy: str
) -> None:
    """The command says what to write once."""
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace(old, new, 1))
    ran = invoke("coordinator", "validate", path)
    assert ran.code == 2
    line = r"line [0-9]+: "
    assert re.match(
        rf"error: {error_id}: {re.escape(str(path))}: {line}{re.escape(fault)}\. What to do: {re.escape(remedy)}",
        ran.err,
    ), ran.err


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("data: table.csv", "data: no.csv", "job.yaml: `data` names no.csv, and "),
        (
            "{Any: {Blue: [Janitor, Mover], White: [Lawyer]}}",
            "no.csv",
            "line 11: columns.job.taxonomy: cannot read ",
        ),
        ("C: 0.5}", "C: 0.5, clusters: {model: no.json}}", "line 5: model.lkc.clusters.model: cannot read "),
    ],
)
def test_a_missing_file_is_told_with_job_and_key(tmp_path: Path, old: str, new: str, fault: str) -> None:
    path = tmp_path / "job.yaml"
    text = JOB.replace("goal: classification", "goal: clusters") if "clusters" in new else JOB
    path.write_text(
        text.replace(old, new).replace(
            "  died: {role: class}\n", "" if "clusters" in new else "  died: {role: class}\n"
        )
    )
    err = invoke("coordinator", "run", path, "--out", tmp_path / "out").err
    assert "error: file-missing: " in err
    assert fault in err
    assert str(tmp_path / "no.") in err
    assert "a path in a job begins at the folder of the job file" in err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            "",
            "data-empty: the table is empty [{table} has no header]. What to do: give the table a header line",
        ),
        ("job,age\nMover,5\n", "no column died [{table}: it has job, age; no column surgery either]"),
    ],
)
def test_the_file_of_a_table_is_named(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "table.csv").write_text(content)
    err = invoke("coordinator", "run", tmp_path / "job.yaml", "--out", tmp_path / "out").err
    assert says.format(table=tmp_path / "table.csv") in err


def test_a_wrong_value_is_quoted_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace("K: 2,", f'K: "\\e[31m{"9" * 100}x",'))
    message = invoke("coordinator", "validate", path).err
    assert "`model.lkc.K` is  [31m999" in message
    assert "9" * 40 not in message


def test_a_value_of_a_configuration_is_not_quoted(tmp_path: Path) -> None:
    """A log may hold the message."""
    path = tmp_path / "party.yaml"
    path.write_text("name: a\nlisten: secret\n")
    with pytest.raises(ConfigError) as caught:
        load_config(PartyConfig, path)
    assert "`listen`: write host:port" in caught.value.problem.message
    assert "secret" not in str(caught.value.problem)


LONG = """\
version: 1
name: sample
partition: single
model:
  lkc:
    L: 2
    K: 2
    distinct: {home town: 5}
data: table.csv
columns:
  age group:
    role: qid
    numeric: {min: 0, max: 100, step: 10}
  visit-no.1:
    role: qid
    taxonomy: {Any: [a, b]}
  died: {role: class}
  home town:
    role: sensitive
    C: 0.5
    domain: [Bonn, Ulm]
"""


ENTRIES = "    requirements:\n      - {K: 2}\n      - {L: 1}\n"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "line 8: model.lkc.distinct: home town has 2 values in its domain"),
        ({"home town: 5": "age group: 2"}, "line 8: model.lkc.distinct names 'age group'"),
        (
            {"    distinct: {home town: 5}\n": "", "    C: 0.5\n": ""},
            "line 5: sensitive column home town needs a C",
        ),
        (
            {"{home town: 5}": "{home town: 2}", "step: 10}": "step: 0}"},
            "line 11: the step of column age group",
        ),
        ({"{Any: [a, b]}": "{Any: [a, a]}"}, "line 14: the taxonomy of column visit-no.1"),
        ({"    role: sensitive\n": "    rle: sensitive\n"}, "line 19: unknown key `columns.home town.rle`"),
        ({"C: 0.5": "at_most: 1\n    C: 0.5"}, "line 20: columns.home town.at_most is for `ruled_out`"),
        ({"    taxonomy": "    other: a\n    taxonomy"}, "line 16: columns.visit-no.1.other is"),
        ({"{Any: [a, b]}": "../../b.csv"}, "line 16: columns.visit-no.1.taxonomy: the job names"),
        (
            {LONG[LONG.index("    L: 2") : LONG.index("data:")]: ENTRIES, "    C: 0.5\n": ""},
            "line 8: model.lkc.requirements.1 asks for nothing",
        ),
        ({"role: class": "role: sensitive"}, "goal classification needs a column with `role: class`"),
    ],
)
def test_errors_name_keys_with_blanks_hyphens_and_dots_with_their_lines(
    tmp_path: Path, changes: dict[str, str], says: str
) -> None:
    text = LONG
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises((ConfigError, SchemaError)) as caught:
        load_task(path, read=reader_below(tmp_path))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"publish": "age"}, "line 6: model.lkc.clusters.publish: the job has a column 'age'"),
        ({"publish": None}, "line 5: model.lkc.clusters.publish: name a column for the clusters"),
    ],
)
def test_errors_of_clusters_have_a_line(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    joint = changes["publish"] is None
    fields = joint_clusters() if joint else single_clusters()
    clusters = {**fields["model"]["lkc"].pop("clusters"), **changes}
    lkc = json.dumps({**fields["model"].pop("lkc")})[1:-1]
    del fields["model"]
    published = "" if joint else "      publish: age,\n"
    head = f"model:\n  lkc: {{\n    {lkc},\n    # a comment\n    clusters: {{\n{published}"
    text = f"{head}      model: {json.dumps(clusters['model'])}}}}}\n" + "".join(
        f"{key}: {json.dumps(value)}\n" for key, value in fields.items() if value is not None
    )
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_task(path)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("[surgery]", "line 5: `model.lkc.link`: write blocks, each a list of columns: [[surgery]]"),
        ("[a, b]", "line 5: `model.lkc.link`: write blocks, each a list of columns: [[a, b]]"),
        ("5", "write all, none, or blocks of columns, e.g. [[diagnosis, drug], [outcome]]"),
        ("[]", "line 5: `model.lkc.link`: write all, none, or blocks of columns"),
        ("[[surgery, [a]]]", "line 5: `model.lkc.link.0.1` is a list: write a single value"),
        ("[[a], []]", "line 5: `model.lkc.link`: write all, none, or blocks of columns"),
        ("{a: b}", "line 5: `model.lkc.link`: write all, none, or blocks of columns"),
    ],
)
def test_a_wrong_link_is_one_error(tmp_path: Path, link: str, says: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace("C: 0.5}", f"C: 0.5, link: {link}}}"))
    with pytest.raises(ConfigError) as caught:
        load_task(path)
    assert says in str(caught.value)
    assert str(caught.value).count("model.lkc.link") == 1


def test_lines_of_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "party.yaml"
    path.write_text(
        "version: 1\nname: a\nlisten: 127.0.0.1:1\ndata:\n  csv:\n    path: t.csv\n    delim: ';'\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_config(PartyConfig, path)
    message = caught.value.problem.message
    assert "line 7: unknown key `data.csv.delim`" in message
    assert "`tls` is missing" in message


def test_a_key_called_path_is_named_where_no_union_is(tmp_path: Path) -> None:
    path = tmp_path / "party.yaml"
    path.write_text("version: 1\nname: a\ntls: {certificate: c, key: k}\ndata: {path: t.csv}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(PartyConfig, path)
    assert "line 4: unknown key `data.path`" in caught.value.problem.message


def test_jobs_are_the_same_whether_their_lines_are_known_or_not(tmp_path: Path) -> None:
    """Lines that YAML adds to mappings do not come into the bundle."""
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(single_job()))
    assert load_task(path).bundle.encoded.startswith(b'{"bundle":1,"job":{"version":"1","name":"sample"')
    assert b"lines" not in load_task(path).bundle.encoded


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"version": "2"}, "`version` is 2: write '1'"),
        ({"partition": "diagonal"}, "`partition` is diagonal: write 'single', 'horizontal' or 'vertical'"),
        ({"model": {"lkc": {"L": "2", "K": "0", "C": "1"}}}, "`model.lkc.K` is 0: write a number from 1 on"),
        ({"model": {"lkc": {"L": "2", "K": "5", "C": "2"}}}, "model.lkc.C"),
    ],
)
def test_words_and_bounds_are_named(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_job({**single_job(), **changes}, "job.yaml")
    assert says in str(caught.value)
