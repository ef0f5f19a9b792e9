"""Sentences of an LKC report: the repeated counts, the worth and the limits of the table, and notes on a job.

`validate`, the console and the report name the settings of a job with less effect than the author may think.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.table import MOST_TAKEN_OUT
from anonymize.taxonomy import Taxonomy
from jobs import plain_columns
from jobs.data.counted import counted
from jobs.file.fields import PERSON
from jobs.file.job import Job
from jobs.file.schema import qid_of
from jobs.lkc.entries import Entry, covering, entries_of, entries_read, greatest_k, is_one_of_all
from jobs.lkc.forms.form import form_of
from jobs.lkc.linked_columns import blocks_of, in_words, parts_apart, told_beside_groups, unlinked
from jobs.lkc.options.option import Option, in_order
from jobs.lkc.settings import LkcModel
from jobs.promises import inferred, promise, weakness
from jobs.task import Task

if TYPE_CHECKING:
    from anonymize.linked_columns import Blocks


def notes_on(task: Task) -> list[str]:
    """Return a sentence for each setting with less effect than expected."""
    sensitive, entries = task.job.names("sensitive"), entries_of(task.job)
    idle = (demand.without_effect(sensitive) for entry in entries for demand in entry.demands)
    about_l = (_about_l(entry) for entry in entries)
    notes = [*about_l, *idle, _about_the_union(entries), _about_unbounded(sensitive, entries)]
    further = [*_about_covered(entries), *_about_clusters(task), *_about_children(task)]
    if task.job.lkc.link is not None or task.job.roster:
        further += _about_blocks(task.job, entries)
    further += _about_the_form(task.job)
    notes.append(plain_columns.note(task.job.columns))
    return [note for note in dict.fromkeys([*notes, *further]) if note is not None]


def _about_l(entry: Entry) -> str | None:
    n = len(entry.columns)
    if entry.max_known <= n:
        return None
    which = "" if entry.of_all else f" {', '.join(entry.columns)}"
    qids = counted(n, "quasi-identifier", "quasi-identifiers")
    return f"L={entry.max_known} is more than the {qids}{which}: the job is the same with L={n}"


def _about_the_union(entries: Sequence[Entry]) -> str | None:
    if any(entry.of_all for entry in entries):
        return None
    return (
        "no requirement covers all quasi-identifiers: nothing bounds the inferences of a reader who knows columns "
        "of different requirements"
    )


def _about_unbounded(sensitive: Sequence[str], entries: Sequence[Entry]) -> str | None:
    """Return the note for a list of requirements. A job with a single `lkc` states itself that there is no bound."""
    left = [name for name in sensitive if not any(entry.speaks_of(name) for entry in entries)]
    if not left or all(isinstance(entry.said, LkcModel) for entry in entries):
        return None
    what = ", ".join(left)
    lacking = "a C or t below 1, `distinct` or `diversity`"
    return f"no requirement bounds inferences about {what}: every requirement lacks {lacking} for {what}"


_MOST_COVERED = 5
"""Most redundant entries with separate notes."""


def _about_covered(entries: Sequence[Entry]) -> list[str]:
    found = covering(entries)
    if len(found) > _MOST_COVERED:
        return [
            f"{len(found)} of {len(entries)} requirements follow from stricter requirements (`covered_by` in the "
            "report), and are not tested separately"
        ]
    return [
        f"{entries[place].words} follows from {entries[by].words}, and is not tested separately"
        for place, by in found.items()
    ]


def _about_children(task: Task) -> list[str]:
    """Return a note for each column with values that have too many children to take out one by one."""
    notes = []
    for column in qid_of(task.job, task.taxonomies):
        if not (column.by_child and isinstance(column.values, Taxonomy)):
            continue
        wide = [node for node in column.values.nodes if len(column.children(node)) > MOST_TAKEN_OUT]
        if wide:
            which = repr(column.label(wide[0]))
            of = f"{len(wide)} values, such as {which}," if len(wide) > 1 else f"the value {which}"
            has = "have" if len(wide) > 1 else "has"
            notes.append(
                f"columns.{column.name}: {of} {has} more than {MOST_TAKEN_OUT} values right below, which are "
                "published all together or not at all; write a level of groups between them in the taxonomy"
            )
    return notes


def _about_blocks(job: Job, entries: Sequence[Entry]) -> list[str]:
    blocks = unlinked(job)
    notes = [] if not blocks else [_not_linked(job, blocks), *_about_small_cells(job, entries)]
    if job.lkc.link is not None and not blocks:
        return ["`link` has no effect: all sensitive columns are in the same block"]
    return notes


def _not_linked(job: Job, blocks: Blocks) -> str:
    if job.partition == "vertical":
        return (
            f"columns of different holders are not linked ({in_words(blocks)}): among records with the same "
            f"published values of {_of_a_cell(job)}, the values of each holder are shuffled. The table does not tell "
            "which of these values belong to the same record, unless all of these records have the same values"
        )
    return (
        f"not linked are {in_words(blocks)}: among records with the same published quasi-identifiers, the values of "
        "each block are shuffled. The release does not tell which of these values, or which class, belong to the "
        "same record, unless all of these records have the same values"
    )


def _about_small_cells(job: Job, entries: Sequence[Entry]) -> list[str]:
    """Say where K does not bound how many records blocks are shuffled among."""
    if any(is_one_of_all([entry]) for entry in entries) and not told_beside_groups(job):
        return []
    if job.lkc.link is not None:
        return [
            "`link`: with L below the number of quasi-identifiers, few records may have the same published "
            "quasi-identifiers, down to a single record; then the release links their values (`risk.linked`)"
        ]
    return [
        f"K does not bound how few records have the same published values of {_of_a_cell(job)}, down to a single "
        "record; then the table links values of different holders (`risk.linked`), and no requirement looks at these "
        "values together"
    ]


def _of_a_cell(job: Job) -> str:
    """Name the common values of records of a vertical job among which values are shuffled."""
    return "all quasi-identifiers and the class" if told_beside_groups(job) else "all quasi-identifiers"


def _about_the_form(job: Job) -> list[str]:
    """Say how the disclosure of a release differs from rows of generalized values."""
    notes, beside = form_of(job).quasi.notes(job), [*job.names("class"), *job.published_clusters]
    if job.lkc.release is None or not beside:
        return notes
    return [*notes, f"`release: {job.lkc.release}` does not link {', '.join(beside)} with sensitive values"]


def _about_clusters(task: Task) -> list[str]:
    """Return notes on published clusters: K does not limit a reader who computes clusters."""
    return [
        f"the column {name} follows from raw quasi-identifiers by a public model: a reader who knows a person's "
        "quasi-identifiers knows the person's part of the group, and K does not bound the size of the part"
        for name in task.job.published_clusters
    ]


def linked_words(task: Task, linked: int, n_records: int) -> str:
    """Say how many records' values of different blocks stand together all the same."""
    of_how_many = f"of {counted(linked, 'record', 'records')} ({linked / n_records:.1%})"
    if task.job.partition == "vertical":
        return (
            f"Columns of different holders: {of_how_many} the table links the values of some holder with the rest, "
            f"because all records with the same published values of {_of_a_cell(task.job)} have the same values of "
            "this holder: shuffling hides nothing there."
        )
    said = "`release: anatomy`" if task.job.lkc.link is None else "`link`"
    return (
        f"{said}: {of_how_many} the release links {of_a_part(task.job)} with the rest, because all records of the "
        "group have the same values: shuffling hides nothing there."
    )


def of_a_part(job: Job) -> str:
    """Name the part of a record that a release links with the rest if the whole group has the same values there."""
    beside = [names[0] for names in parts_apart(job) if names not in blocks_of(job)]
    return " or ".join(["some block's values", *(f"its {name}" for name in beside)])


def verified_words(task: Task) -> str:
    """Say what was counted again in the released table."""
    insider, entries = bool(task.job.lkc.insider), entries_read(task.job)
    counted_again = "was counted again in the released table"
    if len(entries) == 1 and entries[0].of_all:
        which = form_of(task.job).quasi.who(entries[0])
        said = f"{which} {counted_again}: {_held(entries[0], insider=insider)}"
    else:
        of_each = (f"on every subset of {e.whom}, {_held(e, insider=insider)}" for e in entries)
        said = f"{counted_again}: {'; '.join(of_each)}"
    return "; ".join([f"every group of records {said}", *not_in_the_table(task)])


def _held(entry: Entry, *, insider: bool) -> str:
    """Say what is true of the groups of an entry."""
    held = _joined([demand.held for demand in entry.demands if demand.held])
    by_insiders = [demand.held_by_insiders for demand in entry.demands if demand.held_by_insiders]
    if not insider or not by_insiders:
        return held
    return f"{held}; every group on all these columns and the class has {_joined(by_insiders)}"


def _joined(clauses: Sequence[str]) -> str:
    *others, last = clauses
    return f"{', '.join(others)}, and {last}" if others else last


def promises_of(task: Task) -> list[str]:
    """Say for each requirement what no reader of the released table can do, and the further properties of groups."""
    return [_promise(task.job, entry) for entry in entries_read(task.job)]


def weakness_of(task: Task) -> list[str]:
    """Say that the smallest groups of the job are small, if they are."""
    return weakness(entry.said.K for entry in entries_of(task.job))


def _promise(job: Job, entry: Entry) -> str:
    never = [*form_of(job).quasi.promised(entry), *inferred(job, entry.bounds)]
    told = (Size.name, Confidences.name)
    further = [demand.held for demand in entry.demands if demand.held and demand.name not in told]
    of_readers = promise(job, f"{_known(entry)} of a person in the table", never)
    of_groups = [f"every group of records that match has {_joined(further)}"] if further else []
    return "; ".join([*of_readers, *of_groups])


def _known(entry: Entry) -> str:
    """Name the quasi-identifiers within an attacker's knowledge by an entry."""
    n, named = len(entry.columns), ", ".join(entry.columns)
    if entry.of_all and n > 1:
        return f"{'all' if entry.known == n else f'{entry.known} of the'} {n} quasi-identifiers"
    return named if entry.known == n else f"{entry.known} of {named}"


def not_in_the_table(task: Task) -> list[str]:
    """Return sentences on demands that nobody can count again in the released table, and on who checked instead."""
    entries, said = entries_of(task.job), []
    for key, option in {option.key: option for option in options_asked(task.job)}.items():
        said += option.unread(task, [entry for entry in entries if key in entry.by_key])
    return said


def links_are_unread(job: Job) -> bool:
    """Return True if something is asked of values that a release does not link."""
    return any(entry.by_key["diversity"].is_unread(job) for entry in entries_of(job) if entry.looks_together)


def options_asked(job: Job) -> list[Option]:
    """Return the options of all entries, in the order for messages."""
    return in_order(option for entry in entries_of(job) for option in entry.options)


def limits_of(task: Task) -> list[str]:
    """Return a sentence for each attacker and each inference that the requirement leaves out (docs/security.md).

    The sentences follow from the job alone.
    """
    job = task.job
    return [*_of_holders(job), *_of_people(job), *_of_values(job), *_of_knowledge(job)]


def _of_holders(job: Job) -> list[str]:
    """Say what holders of a joint table can do that other readers cannot."""
    if not job.roster:
        return []
    names = ", ".join(job.roster)
    if job.partition == "vertical":
        return [
            f"holders ({names}): a holder of columns knows its raw values, and so may find the record of a person "
            "and read the columns of other holders there"
        ]
    n, most = len(job.roster), max(entry.colluders for entry in entries_of(job))
    who = f"holders ({names}): a holder with the table can subtract its own rows"
    if most:
        bounded = "the requirement holds for the rest, too, toward " + counted(
            most, "holder", "holders together"
        )
        return [f"{who}; {bounded}. Nothing bounds more holders together"]
    alone = "the other holder's rows" if n == 2 else "the rows of all others"
    together = "" if n == 2 else f"; {n - 1} holders together know the rows of the last holder"
    return [f"{who}, and K and C do not hold for {alone} that remain{together}"]


def _of_people(job: Job) -> list[str]:
    """Say whom K counts."""
    k = greatest_k(entries_of(job))
    if k == 1 or job.partition == "vertical":
        return []
    if job.lkc.unit == PERSON:
        return ["a person with two ids, or with records of two holders, counts more than once"]
    advice = "" if job.names("id") else ", with an id of each person,"
    return [
        f"K={k:,} counts records, not people: a person with several records counts several times, so a group may be "
        f"of few people, or of one. `unit: person`{advice} counts people"
    ]


def _of_values(job: Job) -> list[str]:
    """Say which inferences of sensitive columns nothing bounds."""
    entries, said = entries_of(job), []
    bounded = [name for name in job.names("sensitive") if any(name in entry.bounded for entry in entries)]
    if bounded:
        said.append(
            f"C bounds the share of each single value of {', '.join(bounded)}, not of several values together: a "
            "reader may be certain that a person has one of two values"
        )
    partly = [name for name in bounded if job.columns[name].values is not None]
    if partly:
        said.append(
            f"values of {', '.join(partly)} that the job does not protect may be inferred for certain"
        )
    open_ = [name for name in job.names("sensitive") if not any(entry.speaks_of(name) for entry in entries)]
    if open_:
        said.append(f"nothing bounds inferences of {', '.join(open_)}")
    return said


def _of_knowledge(job: Job) -> list[str]:
    """Say which knowledge of readers the requirement does not count on."""
    said = []
    if narrow := [
        entry for entry in entries_of(job) if not (entry.of_all and entry.known == len(entry.columns))
    ]:
        of = "" if len(entries_of(job)) > 1 else f" than {narrow[0].known}"
        said.append(
            f"a reader who knows more quasi-identifiers of a person{of} may find a smaller group: see Risk"
        )
    if job.names("sensitive"):
        said += [
            "a reader who also knows a sensitive value of the person searches among fewer records, and a reader who "
            "knows who else is in a group can leave these people out",
            "a reader who knows the job and the quasi-identifiers of everybody can conclude why a value is no finer, "
            "and so perhaps a sensitive value",
        ]
    else:
        said.append("a reader who knows who else is in a group can leave these people out")
    if plain := job.names("plain", "class"):
        said.append(f"a reader who knows a rare value of {', '.join(plain)} may find the record by the value")
    return said
