"""Published values of a sensitive column, and its *categories*, the terms of requirements (semantics §10.14).

In a plain domain the values are both. In a taxonomy with `level: k` the category of a leaf is its ancestor k steps
below the root, or the leaf itself if shallower; the release has the leaf, or the category (`publish: category`). In
a numeric column the cells of the grid are both. `missing: leaf` adds `?` to both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from anonymize.errors import DataError, SchemaError
from anonymize.grid import Grid
from anonymize.table import Categories, SensitiveColumn
from anonymize.taxonomy import MISSING, Node, Taxonomy, require_different_labels
from jobs.data.coders import BAD, DROPPED, Coder, Numeric, Unlisted, listed_coder
from jobs.data.table_file import as_read
from jobs.data.texts import alike
from jobs.errors import PartyError
from jobs.file.columns import CATEGORY, Column
from jobs.file.job import Job
from jobs.file.schema import Domains, Taxonomies
from jobs.task import Task


@dataclass(frozen=True)
class Values:
    """Values of a sensitive column.

    published:  as in the release, in canonical order.
    tested:     the categories, in canonical order.
    of:         the category of every published value, as a place in ``tested``.
    protected:  the categories S with a bounded share.
    read:       place among the published values of each possible cell value, in NFC; empty for numbers.
    """

    published: tuple[str, ...]
    tested: tuple[str, ...]
    of: tuple[int, ...]
    protected: tuple[str, ...]
    read: Mapping[str, int]

    @property
    def categories(self) -> Categories | None:
        """Categories, if different from the published values."""
        return None if self.tested == self.published else Categories(self.tested, self.of)

    def protects(self, value: str) -> bool:
        """Return True if a value, in the form of a cell or of a printed category, is protected."""
        form = as_read(value)
        if form in map(as_read, self.protected):
            return True
        place = self.read.get(form)
        return place is not None and self.tested[self.of[place]] in self.protected


def values_of(task: Task, name: str, found: Sequence[str] = ()) -> Values:
    """Return the values of a sensitive column; ``found``: its domain, if left to the data by the job.

    Raises SchemaError for protected values outside the categories, and for categories that print alike.
    """
    return _values_of(name, task.job.columns[name], task.taxonomies, found)


def _values_of(name: str, column: Column, taxonomies: Taxonomies, found: Sequence[str]) -> Values:
    hierarchy = taxonomies.get(name)
    if isinstance(hierarchy, Taxonomy):
        return _of_taxonomy(name, column, hierarchy)
    if isinstance(hierarchy, Grid):
        cells = (hierarchy.label(Node(i, i + 1)) for i in range(hierarchy.n_cells))
        return _of_domain(name, column, tuple(cells), listed=True)
    return _of_domain(name, column, column.domain or tuple(found), listed=column.domain is not None)


def _of_domain(name: str, column: Column, domain: tuple[str, ...], *, listed: bool) -> Values:
    """Return values that are all categories. listed: True if the job lists the values."""
    if listed and column.missing == "leaf" and MISSING not in domain:
        domain = (*domain, MISSING)
    protected = _protected(name, column, domain) if listed else _protected_of_data(column, domain)
    read = {as_read(value): place for place, value in enumerate(domain)}
    return Values(domain, domain, tuple(range(len(domain))), protected, read)


def _of_taxonomy(name: str, column: Column, taxonomy: Taxonomy) -> Values:
    _require_reached(name, column, taxonomy)
    nodes = list(_tested(taxonomy, column.level))
    tested = tuple(map(taxonomy.label, nodes))
    require_different_labels(name, tested)
    category = [place for place, node in enumerate(nodes) for _ in range(node.first, node.last)]
    protected = _protected(name, column, tested)
    if column.publish == CATEGORY:
        read = {as_read(leaf): place for leaf, place in zip(taxonomy.leaves, category, strict=True)}
        return Values(tested, tested, tuple(range(len(tested))), protected, read)
    read = {as_read(leaf): place for place, leaf in enumerate(taxonomy.leaves)}
    return Values(taxonomy.leaves, tested, tuple(category), protected, read)


def _tested(taxonomy: Taxonomy, level: int | None) -> Iterator[Node]:
    """Yield the nodes ``level`` steps below the root, and shallower leaves, in path order; None: the leaves."""

    def below(node: Node, steps: int | None) -> Iterator[Node]:
        children = taxonomy.child_nodes(node)
        if not children or steps == 0:
            yield node
        for child in children if steps != 0 else ():
            yield from below(child, None if steps is None else steps - 1)

    return below(taxonomy.root, level)


def _require_reached(name: str, column: Column, taxonomy: Taxonomy) -> None:
    """Require a leaf at the given depth or deeper: otherwise another level was meant."""
    if column.level is None:
        return
    deepest = _height(taxonomy, taxonomy.root)
    if column.level > deepest:
        raise SchemaError(
            "taxonomy-invalid",
            f"column {name}: `level: {column.level}` is below all leaves of the taxonomy; the deepest leaves are "
            f"{deepest} below the root",
            column=name,
            remedy="take a smaller `level`; without `level`, the leaves are tested",
        )


def _height(taxonomy: Taxonomy, node: Node) -> int:
    """Return the steps from a node to its deepest leaf."""
    return max((1 + _height(taxonomy, child) for child in taxonomy.child_nodes(node)), default=0)


def _protected(name: str, column: Column, tested: Sequence[str]) -> tuple[str, ...]:
    """Return the categories named in `values`, in list order; without `values` all categories except a missing
    `?`.
    """
    if column.values is None:
        return _without_missing(column, tested)
    spelled = {as_read(value): value for value in tested}
    for value in column.values:
        if as_read(value) not in spelled:
            raise SchemaError(
                "job-invalid",
                f"columns.{name}.values names {value!r}, which is not a category of the column; the categories are "
                f"{some_of(tested)}",
                column=name,
                remedy="name the categories: nodes at `level`, cells of the grid as [lo,hi), or '?'",
            )
    return tuple(spelled[as_read(value)] for value in column.values)


def some_of(tested: Sequence[str]) -> str:
    """Test values in words: all, or the first of many."""
    more = f" and {len(tested) - _MOST_SHOWN} more" if len(tested) > _MOST_SHOWN else ""
    return f"{', '.join(map(repr, tested[:_MOST_SHOWN]))}{more}"


_MOST_SHOWN = 12
"""Most categories of a column in an error."""


def _protected_of_data(column: Column, domain: Sequence[str]) -> tuple[str, ...]:
    return _without_missing(column, domain) if column.values is None else column.protected


def _without_missing(column: Column, tested: Sequence[str]) -> tuple[str, ...]:
    return tuple(v for v in tested if column.missing != "leaf" or v != MISSING)


def require_one_spelling(job: Job, columns: Mapping[str, Iterable[str]]) -> None:
    """Raise PartyError if a column of a release has two spellings of a value, or of a protected value.

    columns:  values of each column, by name.
    """
    for name, texts in columns.items():
        column = job.columns[name]
        two = None if column.may_differ else alike(dict.fromkeys([*column.protected, *texts]))
        if two is not None:
            raise PartyError(
                "verification-failed",
                f"column {name} has two spellings of the same value, {two[0]!r} and {two[1]!r}: readers take both "
                "for the same value",
            )


def sensitive_coder(task: Task, name: str, found: Sequence[str] | None = None) -> Coder:
    """Return a coder with places among the published values as codes; ``found``: the domain from pass 1."""
    column, hierarchy = task.job.columns[name], task.taxonomies.get(name)
    missing = DROPPED if column.missing == "drop" else BAD
    if not column.is_listed and found is None:
        return Unlisted(None if column.missing == "leaf" else missing, column.may_differ)
    values = values_of(task, name, found or ())
    if isinstance(hierarchy, Grid):
        return Numeric(hierarchy, missing=values.read.get(MISSING, missing))
    return listed_coder(values.read, missing)


def sensitive_columns(task: Task, found: Domains) -> tuple[SensitiveColumn, ...]:
    """Return the sensitive columns of the schema. Raises DataError if ``found`` lacks a protected value."""
    return tuple(_sensitive_column(task, name, found) for name in task.job.names("sensitive"))


def _sensitive_column(task: Task, name: str, found: Domains) -> SensitiveColumn:
    values = values_of(task, name, found.get(name, ()))
    for value in sorted(set(values.protected) - set(values.tested)):  # only where the data gave the domain
        raise DataError(
            "data-unknown-value",
            f"column {name}: the protected value {value!r} is in no row, so the protection would have no effect",
            column=name,
            remedy="correct `values` or the data; or list all values of the column in `domain`",
        )
    places = tuple(values.tested.index(value) for value in values.protected)
    return SensitiveColumn(name, values.published, places, values.categories)
