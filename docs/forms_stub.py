"""Stub of `jointcut/api/forms.py`: the values that every key of a job accepts, for editors and type checkers.

`python docs/forms_stub.py` writes the stub anew. The models are the format, so the stub follows from the models.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from textwrap import wrap
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "jointcut" / "api" / "forms.pyi"
sys.path.insert(0, str(ROOT))

from jointcut.api import forms  # noqa: E402  from these sources, wherever the program is started

_HEAD = """\
# Made by docs/forms_stub.py: do not edit.
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from {modules}

Number: TypeAlias = int | float | str | Decimal | Fraction
Text: TypeAlias = str | int | float | bool
"""
_FIXED = {"method": "synthetic"}
"""Keys with only one value, which the class knows itself."""


def parts() -> dict[str, type[BaseModel]]:
    """Return the public parts of a job, by name."""
    found = {name: value for name, value in vars(forms).items() if isinstance(value, type)}
    return {
        name: each for name, each in found.items() if each.__module__ == forms.__name__ and name[0] != "_"
    }


def public() -> dict[type[BaseModel], str]:
    """Return the public name of each model of the format."""
    return {model_of(part): name for name, part in parts().items()}


def model_of(part: type[BaseModel]) -> type[BaseModel]:
    """Return the model of the format behind a part."""
    return part.__mro__[2]


def stub() -> str:
    """Return the text of the stub."""
    models = {model_of(part).__module__ for part in parts().values()}
    text = _HEAD.replace("from {modules}", "\n".join(f"import {name}" for name in sorted(models)))
    text += "".join(_class(name, part) for name, part in parts().items())
    return f"{text}\nMODELS: dict[type[BaseModel], str]\n"


def _class(name: str, part: type[BaseModel]) -> str:
    model = model_of(part)
    lines = [
        f"\nclass {name}({model.__module__}.{model.__name__}):",
        "    def __init__(",
        "        self,",
        "        *,",
    ]
    fields = [(key, field) for key, field in part.model_fields.items() if not _is_fixed(key, field)]
    lines += [f"        {key}: {said}," for key, field in fields for said in _argument(field)]
    lines += ["    ) -> None:", f'        """{(part.__doc__ or "").split(chr(10))[0]}', ""]
    lines += [line for key, field in fields for line in _described(key, field)]
    return "\n".join([*lines, '        """', ""])


def _is_fixed(key: str, field: FieldInfo) -> bool:
    return key in _FIXED and get_args(field.annotation) == (_FIXED[key],)


def _argument(field: FieldInfo) -> Iterator[str]:
    said = accepted(field.annotation)
    if field.is_required():
        yield said
    else:
        yield f"{said if said.endswith('None') else f'{said} | None'} = ..."


def _described(key: str, field: FieldInfo) -> Iterator[str]:
    words = (field.description or "").replace("\\", "\\\\").replace('"""', "'''")
    yield from wrap(f"{key}: {words}", 110, initial_indent=" " * 8, subsequent_indent=" " * 12)


def accepted(form: Any) -> str:
    """Return the accepted values of a type of the format, as a type."""
    return " | ".join(dict.fromkeys(_accepted(form)))


def _accepted(form: Any) -> Iterator[str]:
    """Yield the alternatives; None last."""
    origin, inside = get_origin(form), get_args(form)
    if origin is Annotated:
        yield from _accepted(inside[0])
    elif origin in (Union, UnionType):
        for part in sorted(inside, key=lambda part: part is NoneType):
            yield from _accepted(part)
    elif origin is Literal:
        yield f"Literal[{', '.join(map(repr, inside))}]"
    elif origin is tuple:
        yield f"Iterable[{_entry(inside[0])}]"
    elif origin is list:
        yield f"Sequence[{_entry(inside[0])}]"
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield f"Mapping[str, {accepted(inside[1])}]"
    elif isinstance(form, type) and issubclass(form, BaseModel):
        if form in public():
            yield public()[form]
        yield "Mapping[str, Any]"
    else:
        yield {Fraction: "Number", Decimal: "Number", NoneType: "None", Any: "Any"}.get(form) or form.__name__


def _entry(form: Any) -> str:
    """Return the accepted entries of a list; a list of texts may have numbers."""
    said = accepted(form)
    return "Text" if said == "str" else said


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
