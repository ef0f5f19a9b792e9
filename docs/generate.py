"""Documents that follow from the program: keys of jobs and policies, and what each mode opens.

    python docs/generate.py     write docs/job.md, policy.md, reveals.md and words.md anew

`make generate` calls it. A test compares the files with what this file makes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markdown.extensions.toc import slugify

from anonymize.clusters import n_features
from anonymize.errors import SchemaError
from anonymize.joint.disclosure import ALLOWED, Allowed, mixed_reveals
from anonymize.joint.lkc.scores.rows import SCORES
from jobs.clusters import digest_of
from jobs.errors import ConfigError
from jobs.file.bundle import Bundle
from jobs.file.job import Job
from jobs.loading import check_task, open_task, parse_job
from jobs.page.parts import WORDS
from jobs.task import Task
from party.cli.schemas import FORMATS, AsEditorsRead

DOCS = Path(__file__).resolve().parent
_MADE = "<!-- Made by `make generate`. Edit docs/generate.py, or the descriptions of the keys. -->\n"

# Jobs: a table of keys for each place of a job file.

_DATA = """`data` of a single holder's job, if a path alone does not say enough. For example, a CSV with `;`, \
decimal commas, and dates such as 31.01.2024:

```yaml
data: {path: stays.csv, delimiter: ";", decimal: ","}
columns:
  weight:   {role: qid, numeric: {min: 0, max: 200, step: 2.5}}
  admitted: {role: qid, dates: {from: 2024-01-01, to: 2025-01-01, step: 1mo, form: DD.MM.YYYY}}
```

A release is always UTF-8, with commas between values and decimal points. Dates have the `form` of the column, or
are units of `levels`."""

_PLACES: Sequence[tuple[str, str, str]] = (
    ("data", "TableFile", _DATA),
    ("parties.NAME", "PartyEntry", "A joint job names its data holders under `parties`."),
    ("columns.NAME", "Column", "A job names every column that the release publishes, and its id columns."),
    ("columns.NAME.prefix", "Prefix", ""),
    ("columns.NAME.order", "Order", ""),
    ("columns.NAME.icd", "Icd", "Chapters are those of WHO ICD-10 and of ICD-9-CM, with short titles."),
    ("columns.NAME.numeric", "NumericDomain", ""),
    ("columns.NAME.dates", "DateDomain", ""),
    ("columns.NAME.clock", "Clock", ""),
    ("columns.NAME.set", "SetOf", ""),
    ("columns.NAME.normalize", "IdNormalization", ""),
    ("model", "Privacy", ""),
    ("model.lkc", "LkcModel", ""),
    ("model.lkc.requirements", "Requirement", "A job with several requirements lists them here."),
    ("model.lkc.clusters", "ClusterSettings", ""),
    ("model.dp, method diffgen", "DpModel", ""),
    ("model.dp, method synthetic", "SyntheticModel", ""),
    ("model.sequences", "SequencesModel", ""),
)


@cache
def schema() -> Mapping[str, Any]:
    """Return the JSON Schema of job files."""
    return Job.model_json_schema(schema_generator=AsEditorsRead)


def job_page() -> str:
    """Return the page of a job's keys."""
    found = schema()
    places = {name: _title(place) for place, name, _ in _PLACES}
    parts = [
        _MADE,
        "# Keys of a job file",
        "A job file is YAML. [The first guide](guide/first-table.md) writes one step by step. This page lists every "
        "key. The [last section](#keys-by-kind-of-job) shows the kinds of job that take a key.",
        "A key without a default is optional, unless the table says *required*. An unknown key is an error. An error "
        "names the key, its line, and the value to write instead.",
    ]
    parts += ["## Top level", _keys(found, places)]
    for _, name, more in _PLACES:
        model = found["$defs"][name]
        parts += [f"## {places[name]}", " ".join(text for text in (model["description"], more) if text)]
        parts.append(_keys(model, places))
    parts += ["## Keys by kind of job", *_kinds()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _title(place: str) -> str:
    """Return a place as a heading: keys as code, words as they are."""
    key, _, words = place.partition(", ")
    return place if " " in key else ", ".join([f"`{key}`", *([words] if words else [])])


def _keys(model: Mapping[str, Any], places: Mapping[str, str]) -> str:
    """Return the table of a model's keys. places: headings of the page by the name of a model."""
    rows = []
    for key, field in model["properties"].items():
        needed = "required" if key in model.get("required", ()) else _default(field.get("default"))
        rows.append((f"`{key}`", _form(field, places), needed, field.get("description", "")))
    return _table(("key", "value", "default", "meaning"), rows)


def _default(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"`{each}`" for each in value)
    return (
        "" if value is None or value == {} else f"`{str(value).lower() if value in (True, False) else value}`"
    )


def _form(field: Mapping[str, Any], places: Mapping[str, str]) -> str:
    """Return the values that a key takes, in words."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[-1]
        return f"[keys](#{slugify(places[name], '-')})" if name in places else "the content of this file"
    for several in ("oneOf", "anyOf"):
        if several in field:
            return " or ".join(dict.fromkeys(_form(each, places) for each in field[several]))
    if "enum" in field:
        return " or ".join(dict.fromkeys(f"`{word}`" for word in field["enum"] if isinstance(word, str)))
    kinds = field.get("type", "string")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "array" in kinds:
        return f"list of {_several(_form(field.get('items', {}), places))}"
    if "object" in kinds:
        inner = field.get("additionalProperties")
        return f"for each name: {_form(inner, places)}" if isinstance(inner, Mapping) else "tree"
    if "boolean" in kinds and "integer" in kinds:
        return "`true` or `false`"
    if "integer" in kinds:
        words = "".join(f" or `{word}`" for word in ("all", "auto") if word in field.get("pattern", ""))
        return f"whole number{_bounds(field)}{words}"
    if "number" in kinds and "boolean" not in kinds:
        return f"number{_bounds(field)}"
    return "text"


def _several(form: str) -> str:
    return {
        "text": "texts",
        "number": "numbers",
        "whole number": "whole numbers",
        "list of texts": "lists of texts",
    }.get(form, form)


def _bounds(field: Mapping[str, Any]) -> str:
    words = {
        "minimum": "from {}",
        "exclusiveMinimum": "above {}",
        "maximum": "to {}",
        "exclusiveMaximum": "below {}",
    }
    found = [word.format(f"{field[key]:,}") for key, word in words.items() if key in field]
    return "".join(f" {each}" for each in found)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# Which jobs take a key: each key is tried in a job of each kind.

_CELLS = {"min": "0", "max": "100", "step": "10"}
_QID = {
    "age": {"role": "qid", "numeric": _CELLS},
    "work": {"role": "qid", "taxonomy": {"Any": {"Paid": ["Clerk", "Nurse"], "Other": ["None", "Home"]}}},
}
_SENSITIVE = {"illness": {"role": "sensitive", "domain": ["Flu", "Cold", "Cough", "Gout", "Mumps", "Cramp"]}}
_CLASS = {"died": {"role": "class", "domain": ["Y", "N"]}}
_ID = {"id": {"role": "id"}}


def _job(partition: str, model: Mapping[str, Any], columns: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    held = {
        "single": {"data": "people.csv"},
        "horizontal": {"parties": {"a": {}, "b": {}, "c": {}}},
        "vertical": {"parties": {"a": {"columns": ["age", "illness"]}, "b": {"columns": ["work"]}}},
    }[partition]
    ids = _ID if partition == "vertical" else {}
    fields = {"version": "1", "name": "a", "partition": partition, "model": model}
    return copy.deepcopy({**fields, **held, "columns": {**ids, **columns}, **more})


def _lkc(**more: str) -> dict[str, Any]:
    return {"lkc": {"L": "2", "K": "2", "C": "1/2", **more}}


_GROUPED = {**_QID, **_SENSITIVE}
_PERSONAL = {**_QID, **_SENSITIVE, **_CLASS}
_PUBLIC = {**_QID, **_CLASS}
_DIFFGEN = {"dp": {"epsilon": "1", "specializations": "3"}}
_SYNTHETIC = {"dp": {"method": "synthetic", "epsilon": "1"}}
_PATHS = {
    "place": {"role": "location", "domain": ["Home", "Work", "Gym"]},
    "at": {"role": "time", "clock": {"from": "2026-01-01T00:00", "to": "2026-02-01T00:00", "step": "1h"}},
}
_SEQUENCES = {"sequences": {"L": "2", "K": "2"}}


def _of_two(job: dict[str, Any]) -> dict[str, Any]:
    """Return a DP job of two parties, whose vertical form has no sensitive column."""
    parties = {"a": {"columns": ["age"]}, "b": {"columns": ["work"]}}
    return {**job, "parties": parties if job["partition"] == "vertical" else {"a": {}, "b": {}}}


# Jobs that are accepted, by kind, for each table of keys.
TABLES: Mapping[str, Mapping[str, dict[str, Any]]] = {
    "`model: lkc`, method top-down": {
        "single": _job("single", _lkc(), _PERSONAL),
        "horizontal sealed": _job("horizontal", _lkc(), _PERSONAL),
        "horizontal leader": _job("horizontal", _lkc(), _PERSONAL, disclosure="leader"),
        "horizontal strict": _job("horizontal", _lkc(), _PERSONAL, disclosure="strict"),
        "vertical sealed": _job("vertical", _lkc(), _PERSONAL),
        "vertical leader": _job("vertical", _lkc(), _PERSONAL, disclosure="leader"),
    },
    "`model: lkc`, method kd": {
        "single": _job("single", _lkc(method="kd", L="all"), _GROUPED, goal="general"),
        "horizontal": _job("horizontal", _lkc(method="kd", L="all"), _GROUPED, goal="general"),
    },
    "`model: dp`, method diffgen": {
        "single": _job("single", _DIFFGEN, _PUBLIC),
        "horizontal": _of_two(_job("horizontal", _DIFFGEN, _PUBLIC)),
        "vertical": _of_two(_job("vertical", _DIFFGEN, _PUBLIC)),
    },
    "`model: dp`, method synthetic": {
        "single": _job("single", _SYNTHETIC, _PUBLIC),
        "horizontal": _of_two(_job("horizontal", _SYNTHETIC, _PUBLIC)),
        "vertical": _of_two(_job("vertical", _SYNTHETIC, _PUBLIC)),
    },
    "`model: sequences`": {
        "single": _job("single", _SEQUENCES, {**_ID, **_PATHS}),
        "horizontal": _job("horizontal", _SEQUENCES, {**_ID, **_PATHS}, parties={"a": {}, "b": {}}),
    },
}
_UNDER = {"lkc": "model.lkc", "dp": "model.dp", "sequences": "model.sequences"}
_DROPPED = "dropped"
"""A value that takes its key out of the job."""
_NO_CLASS = {"columns.died": _DROPPED}
_COLUMNS_LINKED = {"columns.other": {"role": "sensitive", "domain": ["A", "B"]}}
_ANATOMY = {"goal": "general", **_NO_CLASS, **_COLUMNS_LINKED}

# Key: a value, and what else such a job has. A key below `model.MODEL` stands here by its own name.
TRIED: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "goal: general": ("general", _NO_CLASS),
    "goal: clusters": ("clusters", _NO_CLASS),
    "deliver": ("coordinator", {}),
    "columns: role plain": ({"role": "plain"}, {}),
    "columns: role party": ({"role": "party", "domain": ["a", "b", "c"]}, {"colluders": "1", "C": "1"}),
    "columns: dates": (
        {"role": "qid", "dates": {"from": "2024-01-01", "to": "2025-01-01", "step": "1mo"}},
        {},
    ),
    "columns: set": ({"role": "qid", "set": {"taxonomy": {"Any": ["A", "B"]}}}, {}),
    "columns: suppress": ({"role": "qid", "suppress": ["A", "B"]}, {}),
    "columns: ranges": ({"role": "qid", "ranges": ["0", "5", "9"]}, {}),
    "columns: prefix": ({"role": "qid", "prefix": {"values": ["11", "12", "21"], "lengths": ["1"]}}, {}),
    "columns: order": ({"role": "qid", "order": {"values": ["low", "medium", "high"]}}, {}),
    "columns: icd": ({"role": "qid", "icd": {"version": "10", "values": ["I21.0", "I21.4", "C50"]}}, {}),
    "columns: refine": ({"role": "qid", "taxonomy": {"Any": ["A", "B"]}, "refine": "child"}, {}),
    "columns: weight": ({"role": "qid", "taxonomy": {"Any": ["A", "B"]}, "weight": "2"}, {}),
    "columns: normalize": ({"role": "id", "normalize": {"ignore_case": "true"}}, {}),
    "columns: level": (
        {
            "role": "sensitive",
            "taxonomy": {"Any": {"A": ["B", "C"], "D": ["E", "F"]}},
            "level": "1",
            "C": "1/2",
        },
        {},
    ),
    "columns: missing drop": ({"role": "qid", "taxonomy": {"Any": ["A", "B"]}, "missing": "drop"}, {}),
    "columns: missing never": ({"role": "qid", "taxonomy": {"Any": ["A", "B"]}, "missing": "never"}, {}),
    "columns: other": ({"role": "qid", "taxonomy": {"Any": ["A", "B"]}, "other": "A"}, {}),
    "columns: outside": (
        {"role": "qid", "taxonomy": {"Any": ["A", "B"]}, "outside": "missing"},
        {},
    ),
    "columns: from_data": ({"role": "qid", "taxonomy": {"Any": ["A", "B"]}, "from_data": "true"}, {}),
    "columns: C": ({"role": "sensitive", "domain": ["A", "B"], "C": "1/2"}, {}),
    "columns: at_most": (
        {"role": "sensitive", "domain": ["A", "B", "D"], "at_most": "1"},
        {"diversity": "3"},
    ),
    "columns: distance": ({"role": "sensitive", "numeric": _CELLS, "distance": "ordered"}, {"t": "1/2"}),
    "columns: shared_by": (
        {"role": "class", "domain": ["Y", "N"], "shared_by": "a"},
        {"columns.died": _DROPPED},
    ),
    "requirements": ([{"L": "1", "K": "2"}, {"K": "3"}], {"L": _DROPPED, "K": _DROPPED, "C": _DROPPED}),
    "columns": (["age", "work"], {}),
    "distinct": ({"illness": "2"}, {}),
    "t": ("1/2", {}),
    "ruled_out": ("1", {}),
    "diversity": ("2", {}),
    "diversity above 3": ("4", {}),
    "colluders": ("1", {"C": "1"}),
    "unit": ("person", {"columns.id": {"role": "id"}}),
    "split": ("median", {}),
    "score: groups": ("groups", {"goal": "general", **_NO_CLASS}),
    "score: added": ("added", {}),
    "score: tdr": ("tdr", {}),
    "contexts": ("partitions", {"score": "added"}),
    "withhold": ("1/10", {}),
    "link": ("none", _COLUMNS_LINKED),
    "release: anatomy": ("anatomy", _ANATOMY),
    "files: parquet": ("parquet", {}),
    "quasi: exact": ("exact", {"release": "anatomy", **_ANATOMY}),
    "insider": ("true", {}),
    "secure_sum": ("ring", {}),
    "utility": ("infogain", {}),
    "noise": ("each", {}),
    "engine: thesis": ("thesis", {"max_rows": "20", "max_cells": "100"}),
    "max_rows": ("1000", {}),
    "max_cells": ("1000", {}),
    "max_fanout": ("8", {}),
    "max_records_per_person": ("2", {"columns.id": {"role": "id"}}),
    "max_outside": ("1/10", {}),
    "accept_large_epsilon": ("true", {"epsilon": "11"}),
    "order": (["age", "end"], {"columns.end": {"role": "qid", "numeric": _CELLS}}),
    "edges": ("1", {}),
    "suppress": ("global", {}),
    "cost": ("frequent", {"suppress": "global"}),
    "frequent": ("1/10", {}),
    "places": ("first", {}),
    "stays": ("arrivals", {}),
    "exclusion": ("report", {}),
    "max_items": ("8", {}),
    "max_candidates": ("1000", {}),
}


def tried(key: str) -> str:
    """Return the key of a row: `score` of `score: tdr`, `diversity` of `diversity above 3`."""
    return key.split(":")[0].split(" ")[0]


def _changed(job: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a job with a key, and with what else a job of this key has."""
    fields: dict[str, Any] = copy.deepcopy(dict(job))
    value, besides = TRIED[key]
    if key == "goal: clusters":
        besides = {**besides, "clusters": _clusters(fields)}
    for name, given in (
        {tried(key): value} if not key.startswith("columns:") else {"columns.tried": value}
    ).items():
        _put(fields, name, given)
    if key == "colluders" and fields["partition"] == "single":
        besides = {**besides, "columns.other": {"role": "party", "domain": ["a", "b", "c"]}}
    for name, given in besides.items():
        _put(fields, name, given)
    parties = fields.get("parties", {})
    if fields["partition"] == "vertical":
        for name in ("tried", "other", "end"):
            if fields["columns"].get(name, {}).get("role") in ("qid", "sensitive", "plain"):
                parties["b"].setdefault("columns", []).append(name)
    return fields


def _put(fields: dict[str, Any], name: str, value: Any) -> None:
    above, _, below = name.partition(".")
    if below:
        place, name = fields[above], below
    elif name in ("goal", "deliver", "disclosure"):
        place = fields
    else:
        place = next(iter(fields["model"].values()))
    if value == _DROPPED:
        place.pop(name, None)
    else:
        place[name] = copy.deepcopy(value)


def _clusters(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return two clusters over the quasi-identifiers of a job."""
    if "lkc" not in fields["model"]:
        return {}
    qid = open_task(Bundle(parse_job(fields, "job.yaml"), {})).schema.qid
    columns = [{"name": column.name, "values": digest_of(column)} for column in qid]
    width = sum(map(n_features, qid))
    centroids = [[str(at)] * width for at in (0, 65536)]
    return {
        "model": {"version": "1", "method": "kmeans", "columns": columns, "centroids": centroids},
        "publish": "cluster",
    }


def takes(job: Mapping[str, Any], key: str) -> bool:
    """Return True where a job with this key is accepted, and the key has an effect."""
    task = accepted(_changed(job, key))
    idle = f"columns.tried.{key.removeprefix('columns: ')} has no effect"
    return task is not None and not any(note.startswith(idle) for note in task.model.described(task).notes)


def accepted(fields: Mapping[str, Any]) -> Task | None:
    """Return a job that passes every check which needs no data; None for other jobs."""
    try:
        task = open_task(Bundle(parse_job(fields, "job.yaml"), {}))
        check_task(task)
    except (ConfigError, SchemaError):
        return None
    return task


def _kinds() -> Iterator[str]:
    yield (
        "Each table was made by trying: a job of each kind gets the key, and the program accepts or refuses the job. "
        "An empty cell means that the job is refused. A key can also need other keys: its description names them."
    )
    for title, jobs in TABLES.items():
        keys = [key for key in TRIED if _belongs(key, next(iter(jobs.values())))]
        rows = []
        for key in keys:
            cells = ["yes" if takes(job, key) else "" for job in jobs.values()]
            if any(cells):
                rows.append((_shown(key), *cells))
        yield f"### {title}"
        yield _table(("key", *jobs), rows)


def _shown(key: str) -> str:
    if key.startswith("columns: "):
        name, _, value = key.removeprefix("columns: ").partition(" ")
        return f"`columns.NAME`: `{name}{f': {value}' if value else ''}`"
    head, _, rest = key.partition(" ")
    return f"`{key}`" if head.endswith(":") else f"`{head}`{' ' + rest if rest else ''}"


def _belongs(key: str, job: Mapping[str, Any]) -> bool:
    """Return True for a key of jobs of all models, or of the model of this job."""
    (name, said), *_ = job["model"].items()
    if key in ("goal: general", "goal: clusters", "deliver") or key.startswith("columns:"):
        return True
    models = {
        "lkc": ("LkcModel", "LkcList"),
        "dp": ("SyntheticModel",) if said.get("method") == "synthetic" else ("DpModel",),
        "sequences": ("SequencesModel",),
    }
    return any(tried(key) in schema()["$defs"][model]["properties"] for model in models[name])


# Policies: the keys of party.yaml and coordinator.yaml.


def policy_page() -> str:
    """Return the page of the keys of an owner's configuration."""
    parts = [
        _MADE,
        "# Keys of party.yaml and coordinator.yaml",
        "An owner's `party.yaml` names the table and the peers. Its `policy` says which jobs the owner allows. "
        "`party check` reads a job and prints every objection. [hospitals.md](guide/hospitals.md) writes a "
        "`party.yaml` step by step.",
    ]
    party = FORMATS["party"].model_json_schema(schema_generator=AsEditorsRead)
    coordinator = FORMATS["coordinator"].model_json_schema(schema_generator=AsEditorsRead)
    places = {
        "Policy": "`policy`",
        "NumericDomain": "`policy.domains.NAME`",
        "Data": "`data`",
        "CsvFile": "`data.csv`",
        "TableFile": "`data.parquet`, `data.feather`",
        "ExcelFile": "`data.excel`",
    }
    places |= {
        "Tls": "`tls`",
        "PeerEntry": "`peers.NAME`",
        "Timeouts": "`timeouts`",
        "Limits": "`limits`",
        "Mail": "`on_proposal`",
        "Web": "`web`",
    }
    for name, heading in places.items():
        model = party["$defs"][name]
        parts += [f"## {heading}", model["description"], _keys(model, places)]
    parts += ["## Top level of party.yaml", _keys(party, places)]
    parts += ["## Top level of coordinator.yaml", _keys(coordinator, places)]
    return "\n\n".join(part for part in parts if part) + "\n"


# Reveals: what each mode opens.

_RECIPIENTS = {
    "all": "all parties",
    "owner": "the candidate's owner",
    "holder": "the column's holder",
    "leader": "the leader",
    "coordinator": "the coordinator",
}
_HEADINGS: Mapping[str, str] = {
    "horizontal/sealed": "LKC, horizontal, `disclosure: sealed`",
    "horizontal/strict": "LKC, horizontal, `disclosure: strict`",
    "horizontal/leader": "LKC, horizontal, `disclosure: leader`",
    "horizontal/sealed/kd": "LKC, horizontal, `method: kd`",
    "vertical/sealed": "LKC, vertical, `disclosure: sealed`",
    "vertical/leader": "LKC, vertical, `disclosure: leader`",
    "sequences/horizontal/sealed": "Sequences, horizontal",
    "dp/horizontal/circuit": "Differential privacy, horizontal, `method: diffgen`",
    "dp/vertical/circuit": "Differential privacy, vertical, `method: diffgen`",
    "dp/horizontal/synthetic": "Differential privacy, horizontal, `method: synthetic`",
    "dp/vertical/synthetic": "Differential privacy, vertical, `method: synthetic`",
    "dp/horizontal/thesis": "Differential privacy, horizontal, `engine: thesis`",
    "dp/vertical/thesis": "Differential privacy, vertical, `engine: thesis`",
}


def reveals_page() -> str:
    """Return the page of what each mode opens."""
    parts = [
        _MADE,
        "# What each mode opens",
        "A joint run keeps records, counts and scores inside its protocols. A run opens the values on the list of "
        "its mode, and no others: a protocol that opens another value stops. The report of a release names what the "
        "run opened. [security.md](security.md) says what a reader can conclude from these values.",
        "*Finer than the table* marks a value that does not follow from the published table.",
    ]
    for mode, heading in _HEADINGS.items():
        is_dp = mode.startswith("dp/")
        question = "covered by ε?" if is_dp else "finer than the table?"
        rows = [_row(entry, "", is_dp) for entry in ALLOWED[mode]]
        for name, score in SCORES.items():
            rows += [_row(entry, f"`score: {name}`: ", is_dp) for entry in score.reveals.get(mode, ())]
        parts += [f"## {heading}", _table(("name", "value", "to", question), rows)]
    mixed = list(dict.fromkeys(entry for to in ("all", "coordinator") for entry in mixed_reveals(to)))
    parts += [
        "## Rows that parties mix",
        "A horizontal LKC job with `plain` columns mixes the rows of its parties. It opens these values, too.",
        _table(("name", "value", "to", "finer than the table?"), [_row(entry, "", False) for entry in mixed]),
    ]
    return "\n\n".join(parts) + "\n"


def _row(entry: Allowed, scope: str, is_dp: bool) -> tuple[str, ...]:
    marked = ("ε" in entry.meaning) if is_dp else entry.finer
    return f"`{entry.name}`", scope + entry.meaning, _RECIPIENTS[entry.to], "yes" if marked else "no"


def words_page() -> str:
    """Return the meanings of the terms on the pages of a release."""
    parts = [
        f"{_MADE}\n# Words of a report",
        "Terms on `report.html` and `owner-report.html` link to these meanings.",
        _table(("term", "meaning"), [(word, meaning) for word, meaning in WORDS.items()]),
    ]
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """Return every generated document by name."""
    return {
        "job.md": job_page(),
        "policy.md": policy_page(),
        "reveals.md": reveals_page(),
        "words.md": words_page(),
    }


def main() -> None:
    """Write the documents."""
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
