"""Linked columns: sensitive columns in blocks. The release links a record's values only inside a block.

Some requirements look at several columns together (`ruled_out`, `diversity` above 2). In a single holder's table
such a requirement holds for all columns together, even against a reader who can link the blocks again. In a joint
job the requirement holds block by block, as every receiver can check.

In a vertical job the sensitive columns of each holder are a block, and the requirement holds block by block: nobody
has values of two holders side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobs.file.fields import DEFAULT_LEVEL
from jobs.file.job import Job

if TYPE_CHECKING:
    from anonymize.linked_columns import Blocks


def blocks_of(job: Job) -> Blocks:
    """Return the blocks of linked columns: columns in job order inside a block, blocks by their first columns."""
    names = job.names("sensitive")
    if job.partition == "vertical":
        return _of_holders(job)
    if job.lkc.link is None:
        return (names,) if names else ()
    named = job.lkc.link if isinstance(job.lkc.link, tuple) else ()
    alone = ((name,) for name in names if not any(name in block for block in named))
    sorted_blocks = (tuple(sorted(block, key=names.index)) for block in (*named, *alone))
    return tuple(sorted(sorted_blocks, key=lambda block: names.index(block[0])))


def _of_holders(job: Job) -> Blocks:
    """Return the sensitive columns of every holder with a sensitive column."""
    names = job.names("sensitive")
    held = (_held(job, party, "sensitive") for party in job.roster)
    return tuple(sorted((block for block in held if block), key=lambda block: names.index(block[0])))


def _held(job: Job, party: str, role: str) -> tuple[str, ...]:
    return tuple(name for name in job.names(role) if name in job.contributed_by(party))


def unlinked(job: Job) -> Blocks:
    """Return the blocks that are shuffled apart, if several; empty if the release links everything.

    In a vertical job a block is a holder's sent columns: the sensitive columns, or else the plain columns.
    """
    if job.partition == "vertical":
        sent = (_held(job, party, "sensitive") or _held(job, party, "plain") for party in job.roster)
        blocks = tuple(
            sorted((block for block in sent if block), key=lambda block: job.published.index(block[0]))
        )
    else:
        blocks = blocks_of(job) if job.lkc.link is not None else ()
    return blocks if len(blocks) > 1 else ()


def parts_apart(job: Job) -> Blocks:
    """Return the parts that a release does not link in its groups; empty if everything is linked.

    The parts are the separate blocks, and each column beside the quasi-identifiers. An anatomy has the class beside
    a single block, too.
    """
    parted = job.lkc.release is not None or bool(unlinked(job))
    if job.partition == "vertical" or not parted:
        return unlinked(job)
    beside = (name for name in job.published if name not in job.names("qid", "sensitive"))
    parts = (*((name,) for name in beside), *blocks_of(job))
    return parts if len(parts) > 1 else ()


def told_beside_groups(job: Job) -> tuple[str, ...]:
    """Return further common columns of the rows of a shuffle, besides the group's: in vertical jobs the class."""
    return job.names("class") if job.partition == "vertical" else ()


def ruled_together(job: Job) -> Blocks:
    """Return the columns that a requirement looks at together: all, or in joint jobs block by block."""
    names = job.names("sensitive")
    return blocks_of(job) if job.roster else ((names,) if names else ())


def counted_apart(job: Job) -> Blocks:
    """Return the blocks with separate shared counts among parties of a horizontal job; empty for a single block."""
    blocks = blocks_of(job)
    return blocks if job.partition == "horizontal" and len(blocks) > 1 else ()


def linked_columns(job: Job, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the parts of some columns of a table with visible links between the values of a record.

    Without blocks: a single part of all columns. With blocks: the columns without the sensitive columns; and for
    each block the quasi-identifiers with the block.
    """
    blocks = counted_apart(job)
    if not blocks:
        return (tuple(names),)
    beside = [name for name in names if name not in job.names("sensitive")]
    qid = [name for name in names if name in job.names("qid")]
    return (tuple(beside), *((*qid, *block) for block in blocks))


def is_parted(job: Job) -> bool:
    """Return True if the job asks for a release without some links between the values of a record."""
    return job.lkc.link is not None or job.lkc.release is not None


def check(job: Job) -> None:
    """Refuse impossible blocks. Raises ValueError."""
    _check_columns(job)
    if job.partition == "vertical":
        raise ValueError(
            "`link` is not for vertical jobs: there, the sensitive columns of each holder are a block, shuffled "
            "inside every cell, and no requirement looks at columns of several holders together"
        )
    if counted_apart(job):
        _check_joint(job)


def _check_joint(job: Job) -> None:
    if job.disclosure != DEFAULT_LEVEL:
        raise ValueError(
            f"`link` in joint jobs needs `disclosure: {DEFAULT_LEVEL}`, which counts block by block; with "
            f"`disclosure: {job.disclosure}` parties count the values of each record together, so every party "
            f"would learn the links that the table hides: say `disclosure: {DEFAULT_LEVEL}`, or leave `link` out"
        )
    for name in job.names("plain"):
        raise ValueError(
            f"columns.{name}: a joint job with `link` has no plain columns: plain columns are mixed with whole "
            "rows, and so with linked values; leave out the column, or `link`"
        )


def _check_columns(job: Job) -> None:
    names = job.names("sensitive")
    if job.lkc.link is not None and not names:
        raise ValueError("`link` is for sensitive columns, and the job has no sensitive columns")
    seen: list[str] = []
    for name in (
        (name for block in job.lkc.link if isinstance(job.lkc.link, tuple) for name in block)
        if job.lkc.link
        else ()
    ):
        if name not in names:
            raise ValueError(f"`link` names {name!r}, which is not a column with `role: sensitive`")
        if name in seen:
            raise ValueError(f"`link` names {name!r} twice: write the column in a single block")
        seen.append(name)


def in_words(blocks: Sequence[Sequence[str]]) -> str:
    """Return blocks as sentences name the blocks: "diagnosis with drug; outcome"."""
    return "; ".join(" with ".join(block) for block in blocks)
