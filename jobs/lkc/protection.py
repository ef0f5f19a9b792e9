"""The sentences of a joint LKC report: what was protected, from whom, under which assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anonymize.joint.disclosure import Audience
from jobs.file.job import Job
from jobs.lkc.blocks import blocks_of, counted_apart, in_words, unlinked
from jobs.lkc.entries import Entry, entries_of
from jobs.lkc.options.option import Inference, in_order
from jobs.lkc.requirement import job_score
from jobs.lkc.words import of_a_part, options_asked
from jobs.task import Sentences, Task


def of_sealed_sums(task: Task, result: Any) -> Sentences:
    """Horizontal, sealed."""
    return {"protection": _of_sums(task.job, [*_sealed_words(task.job), *_apart_words(task.job)])}


def of_strict_sums(task: Task, result: Any) -> Sentences:
    """Horizontal, strict."""
    return {"protection": _of_sums(task.job, _strict_words(task.job))}


def of_sealed_groups(task: Task, result: Any) -> Sentences:
    """Horizontal, sealed, method kd."""
    told = [
        _shared_words(task.job),
        "All that the parties learned of each other's records on the way follows from the table and the job: how "
        "every group was cut is read off the boxes of the table. Beside it each learned, before the run, whether "
        "other parties' tables had changed since an earlier run of this job.",
        *_apart_words(task.job),
    ]
    return {"protection": _of_sums(task.job, told)}


def _apart_words(job: Job) -> list[str]:
    """Say what parties of a joint job were told of blocks."""
    if not counted_apart(job):
        return []
    return [
        "All counts that the parties were told are those of one block of columns: which values of different blocks "
        "are one record's none of them was told of other parties' records. But each can take its own rows out of the "
        "counts, and so can several together: where all that is left of a group have the same, the counts tell "
        f"{of_a_part(job)} beside the rest. `risk.linked` is of readers, who take nothing out, and so of fewer "
        "records; how many of its own the others together can link each party's own account says."
    ]


def of_led_sums(task: Task, result: Any) -> Sentences:
    """Horizontal, as published."""
    return {"protection": _of_sums(task.job, _leader_words(task.job))}


def _of_sums(job: Job, on_the_way: list[str]) -> list[str]:
    """Say what was protected, from whom, under which assumptions; ``on_the_way``: what became known."""
    return [
        f"No party sent {'' if job.names('plain') else 'a row or '}an uncombined count to another party.",
        _origin(job),
        "The parties are assumed to follow the protocol (semi-honest) and the certificates to be the right ones.",
        *on_the_way,
        f"Toward a party, K counts others: it can subtract its own rows from the table. {_colluders(job)}",
    ]


def _origin(job: Job) -> str:
    if not job.names("plain"):
        return "The table is the sum of all parties' counts: no row carries its origin."
    to, sealed = (
        ("every party", "") if job.deliver == "all" else ("the coordinator", "sealed to its key and ")
    )
    return (
        f"Because of plain columns {to} received the generalized rows themselves. Each party sent them to "
        f"{job.deputy_name}, masked, in slots that {job.leader_name} drew, and only the sum of what all sent shows "
        f"them, {sealed}sorted: no row carries its origin, as long as these two do not collude. "
        f"{job.leader_name} learned how many rows each party has; all learned how long the longest row is, up to the "
        "next power of two."
    )


def _shared_words(job: Job) -> str:
    return (
        f"Every count was split into two shares, one at {job.leader_name}, one at {job.deputy_name} (the compute "
        "pair), and evaluated inside garbled circuits: no count finer than the table was opened to anybody. This "
        "holds as long as these two do not put their shares together."
    )


def _strict_words(job: Job) -> list[str]:
    return [
        _shared_words(job),
        "All that the parties learned on the way follows from the table and the job: which specializations were "
        "considered and not made stayed inside the circuits, and why.",
    ]


def _sealed_words(job: Job) -> list[str]:
    return [
        _shared_words(job),
        "Of the records, finer than the table are only the order and the split points of discarded candidates "
        f"(`discarded`), {_learned_for_score(job, 'all')}and that, of those values of the cut which were never "
        f"taken, {_no_candidate(job)}.",
    ]


def _no_candidate(job: Job) -> str:
    """Say what readers learn about a value that could have been specialized and never was."""
    return job_score(job).no_candidate


def _learned_for_score(job: Job, to: Audience) -> str:
    """Say what became known to these because of how candidates are compared, each with a comma behind it."""
    from jobs.lkc.joint_score import joint_score

    learned = joint_score(job).reveals.get(f"{job.partition}/{job.disclosure}", ())
    return "".join(f"{each.meaning}, " for each in learned if each.to == to)


def _leader_words(job: Job) -> list[str]:
    words = [
        f"The leader, {job.leader_name}, learned {_learned_for_score(job, 'leader')}the global counts of every "
        "candidate, also of discarded ones: finer than the table. `disclosure: sealed` avoids that."
    ]
    if of_all := _learned_for_score(job, "all").removesuffix(", "):
        words.append(f"All parties learned {of_all}.")
    if job.lkc.secure_sum == "ring":
        words.append("Sums went around a ring: a party's two neighbours together learn its counts.")
    return words


def _colluders(job: Job) -> str:
    n, asking = len(job.roster), [entry for entry in entries_of(job) if entry.colluders]
    if n == 2:
        known = "With two parties, what remains is the other's generalized table."
    else:
        known = f"Any {n - 1} parties together know what the remaining one contributed, in generalized form."
    if not asking:
        return known
    of_each = " ".join(
        _remaining([entry for entry in asking if entry.colluders == most])
        for most in sorted({entry.colluders for entry in asking})
    )
    return (
        f"{known} {of_each}, as far as each party counted its own rows rightly. This does not bound more colluders, "
        "nor the compute pair if the two put their shares together."
    )


def _remaining(entries: Sequence[Entry]) -> str:
    """Say what holds of remainders, of entries that ask for as many colluders."""
    options = in_order(option for entry in entries for option in entry.options)
    said = ["K", "C", *dict.fromkeys(key for option in options for key in option.remains)]
    what = f"{', '.join(said[:-1])} and {said[-1]}"
    of_whom = "" if all(entry.of_all for entry in entries) else f" of {'; '.join(e.who for e in entries)}"
    colluders = entries[0].by_key["colluders"]
    return (
        f"`colluders: {colluders.most}`: what remains of any group{of_whom} after {colluders.subtracting} is empty "
        f"or meets {what}, too"
    )


def of_sealed_scores(task: Task, result: Any) -> Sentences:
    """Vertical, sealed."""
    return {"protection": _of_scores(task.job, _sealed_scores(task.job))}


def of_told_scores(task: Task, result: Any) -> Sentences:
    """Vertical, as published."""
    told = "As published, every party told all others its best score in every iteration."
    return {"protection": _of_scores(task.job, told)}


def _of_scores(job: Job, on_the_way: str) -> list[str]:
    """Say what was protected, from whom, under which assumptions; ``on_the_way``: what became known."""
    return [
        "Records were matched by keyed ids: every party learned which of its own ids all parties have, and how many "
        "ids each has, but no other id.",
        "Every party knows, for each matched person, the generalized record and the class: the table's own values, "
        "but with the person attached. Raw values of other parties' columns were told to nobody.",
        "L and K do not bound what a party infers about a person it has matched: its cell (all generalized "
        "quasi-identifiers and the class) may be small or hold one sensitive value only; `exposed_to_parties` counts "
        f"the records in such cells. {_insider(job)}",
        "Sensitive and plain columns were sent to the coordinator by their holder, in random order inside each cell: "
        f"nobody can link them to a person{_nor_to_others(job)}, unless all records of the cell have the same "
        "values.",
        *_together(job),
        _class(job),
        _discarded(job),
        "The parties are assumed to follow the protocol (semi-honest) and the certificates to be the right ones.",
        on_the_way,
    ]


def _nor_to_others(job: Job) -> str:
    return ", or one holder's to another's (`risk.linked`)" if unlinked(job) else ""


def _inferences(job: Job) -> list[Inference]:
    """Return what some requirement asks of sensitive columns."""
    entries = entries_of(job)
    of_c = Inference("C", "a protected value is above its C", "no protected value is above its C")
    asked = [of_c] if any(entry.bounded for entry in entries) else []
    return [*asked, *dict.fromkeys(each for option in options_asked(job) for each in option.inferences)]


def _together(job: Job) -> list[str]:
    """Of which columns somebody may rule values out."""
    blocks, entries = blocks_of(job), entries_of(job)
    if len(blocks) < 2 or not any(entry.looks_together for entry in entries):
        return []
    return [
        "`ruled_out`, and `diversity` above 2, look at the sensitive columns of each holder by themselves "
        f"({in_words(blocks)}): who has values of one holder that give away another's may infer more."
    ]


def _discarded(job: Job) -> str:
    """Say what is known of a candidate that failed, and to whom."""
    reasons = [each.failed for each in _inferences(job)]
    if not reasons:
        return "A candidate that was discarded is known to its owner alone: some finer group would be smaller than K."
    return (
        "A candidate that was discarded is known to its owner, and so is why it failed: some finer group would be "
        f"smaller than K, or in one {' or '.join(reasons)}. The holder of a sensitive column saw which value of "
        "whose column was tested against it, and when. Nobody else was told."
    )


def _insider(job: Job) -> str:
    asked = _inferences(job)
    if job.lkc.insider:
        held = " and ".join(each.held for each in asked) or "nothing is asked of sensitive values"
        return f"`insider: true`: in every cell {held}."
    if not asked:
        return "No requirement bounds what groups tell about sensitive columns."
    return f"`insider: true` would hold every cell to {' and '.join(each.name for each in asked)}."


def _class(job: Job) -> str:
    for name in job.names("class"):
        giver = job.columns[name].shared_by
        if giver is not None:
            return f"{giver} gave the class ({name}) of every matched person to the other parties."
        return f"All parties hold the class ({name}); that they agree was found out without sending it."
    return "The job has no class."


def _sealed_scores(job: Job) -> str:
    pair = f"{job.leader_name} and {job.deputy_name}"
    words = (
        f"Scores were compared inside a garbled circuit of {pair}: only whose candidate is the best came out."
    )
    return words if len(job.roster) == 2 else f"{words} This holds as long as these two do not collude."
