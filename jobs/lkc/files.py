"""Files of an LKC release: written by the maker, and checked by the receiving parties."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from anonymize.release import Release
from crypto.rng import SEED_BYTES, Prg, Rng, SystemRng
from jobs.errors import PartyError
from jobs.file.values import values_of
from jobs.lkc.forms.form import form_of
from jobs.lkc.linked_columns import linked_columns
from jobs.lkc.parts import COLUMNS, known_of, rows_shuffled
from jobs.lkc.release import release_of_result, table_of_rows
from jobs.lkc.result import Made
from jobs.lkc.tables import Arranged, arrange, require_arranged
from jobs.lkc.verify import (
    require_verified,
)
from jobs.release.csv import (
    csv_bytes,
    csv_digest,
    most_csv_bytes,
    read_csv,
    require_canonical,
    same_rows,
)
from jobs.release.stores import drawn_order
from jobs.release.sums import Digests
from jobs.task import Collected, Rendered, Task


def made_of(task: Task, collected: Collected) -> Rendered:
    """Make the release of a joint run. Raises PartyError unless the release passes the verification of readers."""
    result: Made = collected.result
    if follows(task):
        return render(task, result)
    rows = release_of_result(task, result, collected.parts, collected.key)
    coins = SystemRng()
    return _verified(task, result, arrange(task, rows, coins), coins)


def expected_of(task: Task, result: Made, files: Mapping[str, bytes], parts: Mapping[str, bytes]) -> Rendered:
    """Return the release that a party expects from its result.

    files:  delivered files. Tables that do not follow from the result are taken from the files. The rows
            must be the computed rows, as far as the party knows.
    parts:  parts that the party sent: in a vertical job its contributed columns.

    Raises PartyError.
    """
    if follows(task):
        return render(task, result)
    form = form_of(task.job)
    tables = {name: read_csv(files[name], columns) for name, columns in form.columns(task.job).items()}
    release = form.rows(task.job, tables, result.n_records)
    ours = _known(task, result, parts)
    if not all(same_rows(release, ours, names) for names in linked_columns(task.job, list(ours.columns))):
        raise PartyError("result-mismatch", "the delivered table is not the one that was computed")
    for name, table in tables.items():
        require_canonical(files[name], table, "result-mismatch", f"the delivered {name}")
    report = result.report(task, release, require_verified(release, task))
    return Rendered({name: files[name] for name in tables}, report, seen=release)


def follows(task: Task) -> bool:
    """Return True if the tables follow from the result. Columns sent separately by parties do not follow."""
    return bool(task.job.roster) and not task.partition.matched and not rows_shuffled(task)


def render(task: Task, result: Made) -> Rendered:
    """Return the release of a joint run whose tables follow from the result. Raises PartyError."""
    return _verified(task, result, *_arranged(task, result))


def digests_of_tables(task: Task, result: Made) -> Digests:
    """Return the SHA-256 of the tables of a release by file name, if they follow from the result; else nothing."""
    if not follows(task):
        return {}
    arranged, coins = _arranged(task, result)
    return {name: csv_digest(table, drawn_order(table, coins)) for name, table in arranged.tables.items()}


def _arranged(task: Task, result: Made) -> tuple[Arranged, Rng]:
    """Arrange the rows of a result; return the coins that order the rows, too.

    Rows are sorted by their printed values before the coins order the rows: no order of a source is left.
    """
    rows = result.counted.ordered(task.job.published).sorted()
    coins = _coins_of(task, result)
    return arrange(task, rows, coins), coins


def _coins_of(task: Task, result: Made) -> Rng:
    """Return the coins that order the rows of a result's tables. Everybody with the result has the coins."""
    return Prg(hashlib.sha256(b"jointcut/rows/1" + task.digest + result.encoded).digest()[:SEED_BYTES])


def _verified(task: Task, result: Made, arranged: Arranged, coins: Rng) -> Rendered:
    """Return the release with these tables. Raises PartyError unless the tables meet the requirement."""
    verified = require_arranged(task, arranged, is_linked=result.is_linked)
    report = result.report(task, arranged.release, verified)
    return Rendered(_as_bytes(arranged, coins), report, seen=arranged.release)


def _as_bytes(arranged: Arranged, coins: Rng) -> dict[str, bytes]:
    return {name: csv_bytes(table, drawn_order(table, coins)) for name, table in arranged.tables.items()}


def _known(task: Task, result: Made, parts: Mapping[str, bytes]) -> Release:
    """Return the delivered table as far as we know the table: the whole table if rows were shuffled."""
    if result.mixed is not None and result.mixed.rows is not None:
        return table_of_rows(task, result, result.mixed.rows)
    return known_of(result, parts.get(COLUMNS))


def most_bytes(task: Task, result: Made) -> int:
    """Return the largest size of the tables sent, from the result; 0 if a table has unknown raw values."""
    if not sent(task):
        return 0
    if result.mixed is not None and result.mixed.rows is not None:
        table = table_of_rows(task, result, result.mixed.rows)
        return most_csv_bytes({name: c.labels for name, c in table.columns.items()}, table.n_rows)
    labels = result.public_labels
    labels |= {n: values_of(task, n).published for n in task.job.names("sensitive") if n not in labels}
    for name in task.job.published:
        if name not in labels:
            domain = task.job.columns[name].domain
            if domain is None:
                return 0
            labels[name] = domain
    n, files = result.n_records, form_of(task.job).columns(task.job)
    number = (str(n),)
    of_files = ({name: labels.get(name, number) for name in columns} for columns in files.values())
    return sum(most_csv_bytes(each, n) for each in of_files)


def sent(task: Task) -> tuple[str, ...]:
    """Return the tables that parties receive: those that do not follow from the result."""
    return () if follows(task) else tuple(form_of(task.job).columns(task.job))
