"""Sentences of a joint LKC report on the protection: of which data, from whom, under which assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anonymize.joint.disclosure import Audience
from jobs.file.job import Job
from jobs.lkc.entries import Entry, entries_of
from jobs.lkc.linked_columns import blocks_of, counted_apart, in_words, unlinked
from jobs.lkc.options.option import Inference, in_order
from jobs.lkc.requirement import job_score
from jobs.lkc.sentences import of_a_part, options_asked
from jobs.task import Sentences, Task


def of_sealed_sums(task: Task, result: Any) -> Sentences:
    """Return the sentences on horizontal, sealed runs."""
    return {"protection": _of_sums(task.job, [*_sealed_words(task.job), *_apart_words(task.job)])}


def of_strict_sums(task: Task, result: Any) -> Sentences:
    """Return the sentences on horizontal, strict runs."""
    return {"protection": _of_sums(task.job, _strict_words(task.job))}


def of_sealed_groups(task: Task, result: Any) -> Sentences:
    """Return the sentences on horizontal, sealed runs of method kd."""
    told = [
        _shared_words(task.job),
        "Everything that the parties learned about each other's records on the way follows from the table and the "
        "job: the boxes of the table show how every group was cut. Before the run, each party also learned whether "
        "the tables of the remaining parties had changed since an earlier run of this job.",
        *_apart_words(task.job),
    ]
    return {"protection": _of_sums(task.job, told)}


def _apart_words(job: Job) -> list[str]:
    """Say what parties of a joint job learned of blocks."""
    if not counted_apart(job):
        return []
    return [
        "Every count that the parties were told is a count of one block of columns. No party was told which values "
        "of different blocks belong to the same record of a different party. But each party can subtract its own "
        "rows from the counts, and so can several parties together. If all records left of a group have the same "
        f"values, the counts link {of_a_part(job)} with the rest of the record. `risk.linked` is for readers, who "
        "subtract nothing, and counts fewer records. Each party's account tells it how many of its records the "
        "remaining parties together can link."
    ]


def of_led_sums(task: Task, result: Any) -> Sentences:
    """Return the sentences on horizontal runs as published."""
    return {"protection": _of_sums(task.job, _leader_words(task.job))}


def _of_sums(job: Job, on_the_way: list[str]) -> list[str]:
    """Say what was protected, from whom, under which assumptions; ``on_the_way``: values that became known."""
    return [
        f"No party sent {'' if job.names('plain') else 'a row or '}an uncombined count to another party.",
        _origin(job),
        "We assume that the parties follow the protocol (semi-honest) and that the certificates are right.",
        *on_the_way,
        "Toward a party, K counts the records of all parties: a party can subtract its own rows from the table. "
        f"{_colluders(job)}",
    ]


def _origin(job: Job) -> str:
    if not job.names("plain"):
        return "The table is the sum of all parties' counts: no row carries its origin."
    to, sealed = (
        ("every party", "") if job.deliver == "all" else ("the coordinator", "sealed to its key and ")
    )
    return (
        f"Because of plain columns {to} received the generalized rows themselves. Each party sent its rows to "
        f"{job.deputy_name}, masked, in slots that {job.leader_name} drew. Only the sum over all parties shows the "
        f"rows, {sealed}sorted: no row carries its origin, as long as {job.leader_name} and {job.deputy_name} do "
        f"not collude. {job.leader_name} learned how many rows each party has. All parties learned the length of "
        "the longest row, rounded up to the next power of two."
    )


def _shared_words(job: Job) -> str:
    return (
        f"Every count was split into two shares, at {job.leader_name} and at {job.deputy_name} (the compute pair), "
        "and evaluated inside garbled circuits: no count finer than the table was opened to anybody. This holds as "
        "long as the pair do not put their shares together."
    )


def _strict_words(job: Job) -> list[str]:
    return [
        _shared_words(job),
        "Everything that the parties learned on the way follows from the table and the job. The circuits hide "
        "which specializations were considered and not made, and why.",
    ]


def _sealed_words(job: Job) -> list[str]:
    return [
        _shared_words(job),
        "The parties learned a few facts that are finer than the table: the order and the split points of "
        f"discarded candidates (`discarded`), {_learned_for_score(job, 'all')}and the following about values of "
        f"the cut that were never specialized: {_no_candidate(job)}.",
    ]


def _no_candidate(job: Job) -> str:
    """Say what readers learn about a value of the cut with a possible specialization that was never made."""
    return job_score(job).no_candidate


def _learned_for_score(job: Job, to: Audience) -> str:
    """Say what an audience learned because of the comparison of candidates; a comma follows each part."""
    from jobs.lkc.joint_score import joint_score

    learned = joint_score(job).reveals.get(f"{job.partition}/{job.disclosure}", ())
    return "".join(f"{each.meaning}, " for each in learned if each.to == to)


def _leader_words(job: Job) -> list[str]:
    words = [
        f"The leader, {job.leader_name}, learned {_learned_for_score(job, 'leader')}the global counts of every "
        "candidate, also of discarded candidates: finer than the table. `disclosure: sealed` avoids this."
    ]
    if of_all := _learned_for_score(job, "all").removesuffix(", "):
        words.append(f"All parties learned {of_all}.")
    if job.lkc.secure_sum == "ring":
        words.append(
            "Sums went around a ring: the two neighbours of a party together learn the party's counts."
        )
    return words


def _colluders(job: Job) -> str:
    n, asking = len(job.roster), [entry for entry in entries_of(job) if entry.colluders]
    if n == 2:
        known = "With two parties, each party learns the generalized table of its peer by subtracting."
    else:
        known = (
            f"Any {n - 1} parties together know the contribution of the remaining party, in generalized form."
        )
    if not asking:
        return known
    of_each = " ".join(
        _remaining([entry for entry in asking if entry.colluders == most])
        for most in sorted({entry.colluders for entry in asking})
    )
    return (
        f"{known} {of_each}, provided that each party counted its own rows rightly. This does not bound more "
        "colluders, nor the compute pair if the pair put their shares together."
    )


def _remaining(entries: Sequence[Entry]) -> str:
    """Say what holds for remainders, for entries with the same number of colluders."""
    options = in_order(option for entry in entries for option in entry.options)
    said = ["K", "C", *dict.fromkeys(key for option in options for key in option.remains)]
    what = f"{', '.join(said[:-1])} and {said[-1]}"
    of_whom = "" if all(entry.of_all for entry in entries) else f" of {'; '.join(e.who for e in entries)}"
    colluders = entries[0].by_key["colluders"]
    return (
        f"`colluders: {colluders.most}`: the rest of any group{of_whom} after {colluders.subtracting} is empty or "
        f"meets {what}, too"
    )


def of_sealed_scores(task: Task, result: Any) -> Sentences:
    """Return the sentences on vertical, sealed runs."""
    return {"protection": _of_scores(task.job, _sealed_scores(task.job))}


def of_told_scores(task: Task, result: Any) -> Sentences:
    """Return the sentences on vertical runs as published."""
    told = "As published, every party told all parties its best score in every iteration."
    return {"protection": _of_scores(task.job, told)}


def _of_scores(job: Job, on_the_way: str) -> list[str]:
    """Say what was protected, from whom, under which assumptions; ``on_the_way``: values that became known."""
    return [
        "Records were matched by keyed ids: every party learned which of its own ids all parties have, and how "
        "many ids each party has, but no further id.",
        "Every party knows the generalized record and the class of each matched person. The table has the same "
        "values, but without the person. No party was told raw values of another party's columns.",
        "L and K do not bound a party's inferences about a person it has matched. The person's cell (all "
        "generalized quasi-identifiers and the class) may be small or hold one sensitive value only; "
        f"`exposed_to_parties` counts the records in such cells. {_insider(job)}",
        "Sensitive and plain columns were sent to the coordinator by their holder, in random order inside each "
        f"cell: nobody can link the values to a person{_nor_to_others(job)}, unless all records of the cell have "
        "the same values.",
        *_together(job),
        _class(job),
        _discarded(job),
        "We assume that the parties follow the protocol (semi-honest) and that the certificates are right.",
        on_the_way,
    ]


def _nor_to_others(job: Job) -> str:
    return ", or values of different holders (`risk.linked`)" if unlinked(job) else ""


def _inferences(job: Job) -> list[Inference]:
    """Return the bounds of any entry on inferences about sensitive columns."""
    entries = entries_of(job)
    of_c = Inference("C", "a protected value is above its C", "no protected value is above its C")
    asked = [of_c] if any(entry.bounded for entry in entries) else []
    return [*asked, *dict.fromkeys(each for option in options_asked(job) for each in option.inferences)]


def _together(job: Job) -> list[str]:
    """Name the columns for negative background knowledge, if several blocks."""
    blocks, entries = blocks_of(job), entries_of(job)
    if len(blocks) < 2 or not any(entry.looks_together for entry in entries):
        return []
    return [
        "`ruled_out`, and `diversity` above 2, look at the sensitive columns of each holder separately "
        f"({in_words(blocks)}). A reader may infer more if a value in one holder's columns reveals a value in "
        "another holder's columns."
    ]


def _discarded(job: Job) -> str:
    """Say what is known of a failed candidate, and to whom."""
    reasons = [each.failed for each in _inferences(job)]
    if not reasons:
        return "Only the owner of a discarded candidate knows it: some finer group would be smaller than K."
    return (
        "The owner of a discarded candidate knows it, and why it failed: some finer group would be smaller than K, "
        f"or in some finer group {' or '.join(reasons)}. The holder of a sensitive column saw which value of a "
        "candidate's column was tested against the sensitive column, and when. Nobody else was told."
    )


def _insider(job: Job) -> str:
    asked = _inferences(job)
    if job.lkc.insider:
        held = " and ".join(each.held for each in asked) or "no requirement bounds sensitive values"
        return f"`insider: true`: in every cell {held}."
    if not asked:
        return "No requirement bounds inferences about sensitive columns."
    return f"`insider: true` would hold every cell to {' and '.join(each.name for each in asked)}."


def _class(job: Job) -> str:
    for name in job.names("class"):
        giver = job.columns[name].shared_by
        if giver is not None:
            return f"{giver} gave the class ({name}) of every matched person to the remaining parties."
        return f"All parties hold the class ({name}). The protocol compared the classes without sending them."
    return "The job has no class."


def _sealed_scores(job: Job) -> str:
    pair = f"{job.leader_name} and {job.deputy_name}"
    words = (
        f"Scores were compared inside a garbled circuit of {pair}: only the owner of the best candidate became "
        "known."
    )
    return words if len(job.roster) == 2 else f"{words} This holds as long as the pair do not collude."
