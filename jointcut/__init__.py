"""Jointcut: one anonymous table from one holder or many. Every public name is an attribute of the package.

    import jointcut as jc
    result = jc.anonymize("visits.csv", "job.yaml")
    result.table

The installed programs import this file before their process is isolated (`launcher`, then `isolated`). So the file
imports nothing; a name is imported when somebody asks for the name.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jointcut.api.budgets import Budget, budget
    from jointcut.api.checks import Verified, verify
    from jointcut.api.drafts import Draft, draft
    from jointcut.api.errors import Error
    from jointcut.api.evaluations import Evaluated, evaluate
    from jointcut.api.explorations import Explored, explore
    from jointcut.api.forms import (
        Clock,
        Clusters,
        Column,
        Dates,
        Dp,
        Icd,
        Lkc,
        Normalize,
        Numeric,
        Order,
        Party,
        Prefix,
        Requirement,
        Requirements,
        Sequences,
        Set,
        Synthetic,
        Table,
    )
    from jointcut.api.job import Job
    from jointcut.api.result import Result
    from jointcut.api.runs import Client, anonymize, simulate

__all__ = [
    "Budget",
    "Client",
    "Clock",
    "Clusters",
    "Column",
    "Dates",
    "Dp",
    "Draft",
    "Error",
    "Evaluated",
    "Explored",
    "Icd",
    "Job",
    "Lkc",
    "Normalize",
    "Numeric",
    "Order",
    "Party",
    "Prefix",
    "Requirement",
    "Requirements",
    "Result",
    "Sequences",
    "Set",
    "Synthetic",
    "Table",
    "Verified",
    "anonymize",
    "budget",
    "draft",
    "evaluate",
    "explore",
    "simulate",
    "verify",
]

_MODULES = {
    "budgets": ("Budget", "budget"),
    "checks": ("Verified", "verify"),
    "drafts": ("Draft", "draft"),
    "errors": ("Error",),
    "evaluations": ("Evaluated", "evaluate"),
    "explorations": ("Explored", "explore"),
    "job": ("Job",),
    "result": ("Result",),
    "runs": ("Client", "anonymize", "simulate"),
}
"""Module of each name; the rest are in `forms`."""


if not TYPE_CHECKING:  # a type checker would take every name for a name of the package

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = next((module for module, names in _MODULES.items() if name in names), "forms")
        found = getattr(import_module(f"jointcut.api.{module}"), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
