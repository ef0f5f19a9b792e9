"""Advice on misplaced keys of a job file, and on keys of earlier versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from jobs.dp.settings import DpModel, SyntheticModel
from jobs.file.job import Job
from jobs.lkc.settings import LkcList, LkcModel, LkcSettings, Requirement
from jobs.sequences.settings import SequencesModel

OF_MODELS: Mapping[str, AbstractSet[str]] = {
    "lkc": LkcModel.model_fields.keys() | LkcList.model_fields.keys(),
    "dp": DpModel.model_fields.keys() | SyntheticModel.model_fields.keys(),
    "sequences": SequencesModel.model_fields.keys(),
}
"""Keys of each model, by the key under `model`. The first model with a key gives the advice."""
DROPPED: Mapping[str, str] = {
    "accept_exact_quasi_identifiers": "leave the key out, since `quasi: exact` says the same",
    "relinkable": "leave the key out; for the table of a single holder, `diversity` and `ruled_out` hold even for "
    "a reader who links the blocks again; in a joint job they hold block by block",
}
"""Keys of version 0.1, no longer in LKC jobs, with advice."""
_SEVERAL = "requirements"
_NORMALIZE = frozenset({"normalize", "normalise", "normalization", "normalisation"})
_STRIPPED = frozenset({"trim", "strip"})


def advice_on(keys: Sequence[str], job: Any) -> str:
    """Return the advice on an unknown key of a job file; empty for a key without advice.

    keys:  the path of the key.
    job:   the file as read.
    """
    *above, key = keys
    model = job.get("model")
    given = [name for name in OF_MODELS if isinstance(model, Mapping) and name in model]
    of_job = given[0] if given else None
    if above in ([], ["model"], ["model", "lkc"]) and key in DROPPED:
        return DROPPED[key] if of_job in (None, "lkc") else "leave the key out"
    if _is_list(job) and key in Requirement.model_fields and above in ([], ["model"], ["model", "lkc"]):
        return f"write the key in each entry of `{_SEVERAL}`, or leave `{_SEVERAL}` out"
    if above and above[0] == "model" and key in Job.model_fields:
        return "write the key at the top of the file, beside `model`"
    if above in ([], ["model"]):
        return _below_model(key, of_job)
    if above[:-1] == ["model"]:
        return _for_others([name for name, keys in OF_MODELS.items() if key in keys and name != above[-1]])
    if above == ["data"] and key in _NORMALIZE:
        return "write `normalize` at the column with `role: id`, as `columns: {NAME: {role: id, normalize: ...}}`"
    if above[:1] == ["columns"] and above[-1] == "normalize" and key in _STRIPPED:
        return "leave the key out, since blanks around ids never count"
    if above[:3] == ["model", "lkc", _SEVERAL] and key in LkcSettings.model_fields:
        return f"write the key beside `{_SEVERAL}`, since the key is for the whole job"
    return ""


def _below_model(key: str, of_job: str | None) -> str:
    """Return the advice on a key above the model's own keys."""
    having = [name for name, keys in OF_MODELS.items() if key in keys]
    if not having:
        return ""
    if of_job is not None and of_job not in having:
        return _for_others(having)
    name = of_job or having[0]
    said = f"{key}: [...]" if key == _SEVERAL else f"{key}: ..."
    return f"write the key under `model.{name}`, as `model: {{{name}: {{{said}}}}}`"


def _for_others(having: Sequence[str]) -> str:
    if not having:
        return ""
    return f"leave the key out, since the key is for jobs with {' or '.join(f'`model.{name}`' for name in having)}"


def _is_list(job: Any) -> bool:
    """Return whether a job has a list of requirements."""
    model = job.get("model")
    lkc = model.get("lkc") if isinstance(model, Mapping) else None
    return isinstance(lkc, Mapping) and _SEVERAL in lkc
