"""Keys of LKC jobs, given beside the others and put where a job file has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.lkc.settings import LkcSettings

_OF_MODEL = ("requirements", "unit")


def placed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a job with the keys of LKC jobs under `model.lkc`, where the job is one."""
    model = fields.get("model")
    if not isinstance(model, Mapping) or not {"lkc", "requirements"} & model.keys():
        return dict(fields)
    lkc = model.get("lkc") or {}
    if not isinstance(lkc, Mapping):
        return dict(fields)
    under = {
        key: said for key, said in fields.items() if key in LkcSettings.model_fields and said is not None
    }
    under |= {key: said for key, said in model.items() if key in _OF_MODEL}
    kept = {key: said for key, said in fields.items() if key not in LkcSettings.model_fields}
    others = {key: said for key, said in model.items() if key not in ("lkc", *_OF_MODEL)}
    return {**kept, "model": {"lkc": {**lkc, **under}, **others}}
