"""Outcome of a cell: the same table, a clean abort, or a defect."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from jobs.release.csv import TABLE
from jobs.release.sums import SUMS
from tests.matrix.cells import ABORTS, COORDINATOR, Cell
from tests.matrix.faults import FAULTS
from tests.matrix.site import COMPILER, NODES, Defect, Rehearsal, Site, until
from tests.support.commands import invoke
from tests.support.samples import PARTIES

SAME, ABORT, WINDOW, DEFECT, NOT_RUN = "same table", "clean abort", "window", "DEFECT", "not run"
_BINDING = ("deliver", "commit")
"""Phases in which a party may be in the window of party/agreement.py."""


def outcome(site: Site, cell: Cell) -> str:
    """Run a cell and the job after it; return what came of it."""
    if reason := why_not(site, cell):
        return f"{NOT_RUN}: {reason}"
    site.n += 1
    name, after = f"cell-{site.n}", f"after-{site.n}"
    logs = {party: len(site.daemons.log(party)) for party in PARTIES}
    children = {party: children_of(site.daemons.running[party].process.pid) for party in PARTIES}
    try:
        with site.rehearsing(cell.phase, name) as run:
            said = _struck(site, run, cell)
        made = (site.outs / name).exists()
        _works_again(site, name, after)
        _no_process_is_left(site, children)
        return _judged(site, cell, name, said, logs, made=made)
    except Defect as defect:
        return f"{DEFECT}: {defect}"
    finally:
        _clear(site)


def why_not(site: Site, cell: Cell) -> str:
    """Return why a cell cannot be run here; empty if it can."""
    if cell.has_clock and not COMPILER:
        return "there is no C compiler"
    if cell.fault in ("disk full", "read-only") and not os.path.ismount(site.disk_of(cell.victim)):
        return "this machine does not let us mount a small disk"
    return ""


def _struck(site: Site, run: Rehearsal, cell: Cell) -> str:
    """Let the fault strike, the job end, and the fault be mended; return what the coordinator said."""
    fault, frozen = FAULTS[cell.fault], (cell.victim, cell.fault) == (COORDINATOR, "stop")
    fault.strike(site, run, cell.victim)
    try:
        if frozen:
            site.works(f"beside-{site.n}")  # the parties do not wait for a frozen coordinator
        elif run.process.poll() is None:
            run.go_on()
            run.end()
        if cell.fault == "stop" and not frozen:
            for party in set(PARTIES) - {cell.victim}:
                until(partial(_is_free, site, party), f"{party} waits for {cell.victim}")
    finally:
        fault.mend(site, run, cell.victim)
    if frozen:
        run.go_on()
        run.end()
    return _said(run)


def _works_again(site: Site, name: str, after: str) -> None:
    """Run the next job, to the place of the last one if that is free: what it left there is swept."""
    made = site.outs / name
    if made.exists():
        site.works(after)
        return
    site.works(after, made)
    made.rename(site.outs / after)


def _is_free(site: Site, party: str) -> bool:
    lines = site.daemons.log_of_this_life(party)
    return not lines or not lines[-1]["message"].startswith("started by")


def _said(run: Rehearsal) -> str:
    """Return the error of a coordinator, empty if it succeeded, and `killed`."""
    code = run.process.returncode
    if code == -9:
        return "killed"
    lines = run.said()
    errors = [line for line in lines if "error" in line and "exit_code" in line]
    if code == 0 and not errors:
        return ""
    if len(errors) != 1 or errors[0] != lines[-1] or errors[0]["exit_code"] != code:
        raise Defect(f"the coordinator ends with {code}, and says {errors}")
    return str(errors[0]["error"])


def children_of(pid: int) -> frozenset[int]:
    """Return the processes that a process has started, and those that they have."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rsplit(")", 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return frozenset(found - {pid})


def _no_process_is_left(site: Site, before: dict[str, frozenset[int]]) -> None:
    """A daemon has as many processes as before; of a daemon that was killed none is left."""
    for party, children in before.items():
        pid, most = site.daemons.running[party].process.pid, max(len(children), 1)
        until(partial(_has_at_most, pid, most), f"{party} has more than {most} processes of its own")
        until(partial(_are_gone, children - children_of(pid)), f"a process of {party} is left")


def _has_at_most(pid: int, n: int) -> bool:
    return len(children_of(pid)) <= n


def _are_gone(pids: Iterable[int]) -> bool:
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def _judged(site: Site, cell: Cell, name: str, said: str, logs: dict[str, int], *, made: bool) -> str:
    _nothing_hidden_is_left(site)
    _logs_are_clean(site, logs)
    holders = [party for party in PARTIES if _released(site, party, name)]
    _all_have_the_same_table(
        site, [*(_released(site, p, name) for p in holders), *([site.outs / name] if made else [])]
    )
    _ledgers_and_audits_are_whole(site, name, holders)
    if said == "" and not made:
        raise Defect("the coordinator succeeds without a release")
    if said not in ("", "killed") and made:
        raise Defect(f"the coordinator fails with {said}, and has a release")
    if len(holders) == len(PARTIES):
        return SAME + (f"; coordinator: {said}" if said else "")
    without = [party for party in PARTIES if party not in holders]
    if holders and (without != [cell.victim] or cell.phase not in _BINDING):
        raise Defect(f"{' and '.join(holders)} keep a release that {' and '.join(without)} have not")
    if holders:
        return f"{WINDOW}: all but the {cell.role}" + (f"; coordinator: {said}" if said else "")
    if made:
        raise Defect("the coordinator has a release that no party has")
    if said not in ABORTS[cell.fault] | {"killed"}:
        raise Defect(f"ends with {said}")
    return f"{ABORT} ({said})"


def _released(site: Site, party: str, name: str) -> Path | None:
    """Return the folder of a party's release of a job."""
    found = [
        path
        for path in site.net.releases(party)
        if path.name.startswith(f"{name}-") and (path / SUMS).exists()
    ]
    return found[0] if found else None


def _nothing_hidden_is_left(site: Site) -> None:
    """Hidden folders are work that goes on; none stays."""

    def hidden() -> list[str]:
        places = [site.outs, *(site.disk_of(party) / "releases" for party in PARTIES)]
        return [str(path) for place in places for path in place.glob("**/.*")]

    until(lambda: not hidden(), f"left behind: {hidden()}")


def _logs_are_clean(site: Site, since: dict[str, int]) -> None:
    for party, place in since.items():
        for line in site.daemons.log(party)[place:].splitlines():
            try:
                fields = json.loads(line)
            except ValueError:
                raise Defect(f"{party} logs {line!r}") from None
            if fields.get("error_id") == "bug" or fields["message"].startswith("Unexpected ["):
                raise Defect(f"{party} logs a bug: {fields['message']}")


def _all_have_the_same_table(site: Site, folders: Sequence[Path | None]) -> None:
    kept = [folder for folder in folders if folder is not None]
    if any(site.table_of(folder) != site.usual for folder in kept):
        raise Defect("another table than undisturbed")
    if len({(folder / TABLE).read_bytes() for folder in kept}) > 1:
        raise Defect("files that differ")


def _ledgers_and_audits_are_whole(site: Site, name: str, holders: Sequence[str]) -> None:
    for party in PARTIES:
        until(partial(_has_ends, site, party), f"the ledger of {party} has no end of a run")
        entries = [entry for entry in site.net.config(party).ledger.entries() if entry.job == name]
        if len(entries) > 1:
            raise Defect(f"{party} was charged {len(entries)} times")
        for entry in entries:
            if (entry.state == "released") != (party in holders):
                raise Defect(f"the ledger of {party} says {entry.state}, and a release is {party in holders}")
        ran = invoke("party", "audit", "verify", "--config", site.net.config_path(party))
        if ran.code != 0:
            raise Defect(f"the audit of {party}: {ran.err.strip()}")


def _has_ends(site: Site, party: str) -> bool:
    """Each run of a ledger is released, given back, or has an end."""
    entries = site.net.config(party).ledger.entries()
    return all(entry.ended or entry.state in ("released", "returned") for entry in entries)


def _clear(site: Site) -> None:
    """Take releases away, so that a thousand cells fit on small disks."""
    for node in NODES:
        place = site.outs if node == COORDINATOR else site.disk_of(node) / "releases"
        for path in place.iterdir() if place.exists() else ():
            shutil.rmtree(path, ignore_errors=True)
