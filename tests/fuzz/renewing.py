"""`python -m tests.fuzz.renewing`: write signatures, statements and releases of the corpus anew.

Needed when their form has changed: a parser would refuse all inputs at the first check.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from coordinator.single import run_single
from jobs.data.sources import Csv
from jobs.dp.counts import COUNTS
from jobs.release.csv import REPORT, TABLE
from jobs.release.signatures import Signed, signature_fields
from jobs.release.sums import SUMS
from party.owner.identity import make_credentials
from party.owner.signing import der_of, sign
from tests.fuzz.mutation import BETWEEN, CORPUS
from tests.fuzz.targets import _OURS, _task
from tests.support.jobs import write_csv
from tests.support.joint import sample_rows
from tests.support.samples import COLUMNS
from tests.support.wards import movements
from tests.support.wards import table as wards_table

N_ROWS = 40


def signed(party: str) -> Signed:
    """Return what a party says at the end of the run of `targets`."""
    keys = make_credentials(party)
    (peer,) = set("ab") - {party}
    links = {peer: bytes(32).hex()}
    statement = replace(_OURS, party=party, sent=links, received=links)
    return Signed(statement, sign(keys, statement.encoded), der_of(keys.certificate))


def release(kind: str, name: str, table: Csv, folder: Path) -> bytes:
    """Return the files of a release of one holder as one input."""
    run_single(_task(kind), table, folder / kind)
    return BETWEEN.join((folder / kind / file).read_bytes() for file in (name, REPORT, SUMS))


def renewed(folder: Path) -> dict[str, bytes]:
    """Return the inputs by their path in the corpus."""
    a, b = signed("a"), signed("b")
    fields: dict[str, Any] = signature_fields([a, b])
    other = {**fields, "parties": fields["parties"] | {"a": fields["parties"]["a"] | {"certificate": "AAAA"}}}
    statement = len(b.signature).to_bytes(2, "little") + b.signature + b.statement.encoded
    sample = Csv(write_csv(folder / "sample.csv", sample_rows(N_ROWS), COLUMNS))
    wards = wards_table(folder, *chain.from_iterable(movements(N_ROWS)))
    return {
        "signatures/0": json.dumps(fields).encode(),
        "signatures/1": json.dumps(other).encode(),
        "signatures/2": json.dumps({**fields, "parties": []}).encode(),
        "statement/0": statement,
        "statement/2": statement[:-90],
        "verify/0": release("single", TABLE, sample, folder),
        "verify_dp/0": release("single-dp", COUNTS, sample, folder),
        "verify_sequences/0": release("sequences", TABLE, wards, folder),
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for place, content in renewed(Path(made)).items():
            (CORPUS / place).write_bytes(content)
