"""Sentences on what an LKC table does not promise, from the job alone (docs/security.md)."""

from __future__ import annotations

from jobs.data.counted import counted
from jobs.file.fields import PERSON
from jobs.file.job import Job
from jobs.lkc.entries import entries_of, greatest_k
from jobs.task import Task


def limits_of(task: Task) -> list[str]:
    """Return a sentence for each attacker and each inference that the requirement leaves out."""
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
