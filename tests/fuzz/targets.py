"""Every parser of what others write: files of jobs and tables, messages of peers, certificates, releases.

A target takes bytes. It may raise the documented errors and nothing else.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from anonymize.errors import AnonymizeError
from anonymize.taxonomy import from_arx_csv
from coordinator.verify import verify_folder
from crypto.errors import RemoteProtocolError
from jobs.data.sources import Csv
from jobs.dp.counts import COUNTS, read_counts
from jobs.dp.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.errors import PartyError, Problem, json_object, problem_of
from jobs.file.clusters import read_model
from jobs.file.yaml_text import parse_yaml
from jobs.lkc.forms.form import GROUPS, SENSITIVE
from jobs.loading import decode_task, load_task
from jobs.release.csv import REPORT, TABLE, csv_header, read_csv
from jobs.release.signatures import Statement, _read, read_signatures
from jobs.release.sums import SUMS
from jobs.task import Task
from party.net import conversions
from party.net.link import ABORT, MAX_MESSAGE_BYTES, RunKey, _Assembly, check_envelope
from party.owner.config import PartyConfig, load_config
from party.owner.identity import common_name, fingerprint, load_peer, signs_itself
from party.owner.signing import check_signed
from protos import jointcut_pb2 as pb
from tests.fuzz.mutation import BETWEEN
from tests.support import jobs
from tests.support.dp_jobs import dp_joint, dp_single
from tests.support.samples import PARTIES, joint_job, single_job
from tests.support.synthetic_jobs import synthetic_joint, synthetic_single
from tests.support.wards import joint_wards_job, wards_job

Target = Callable[[bytes], object]
DOCUMENTED = (PartyError, AnonymizeError, RemoteProtocolError)
_KEY = RunKey(bytes(32), bytes(16))


@cache
def _made() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of this process: it goes when the process ends."""
    return tempfile.TemporaryDirectory(prefix="fuzz-")


def _folder() -> Path:
    return Path(_made().name)


def _file(name: str, use: Callable[[Path], object]) -> Target:
    def target(data: bytes) -> object:
        path = _folder() / name
        path.write_bytes(data)
        return use(path)

    return target


def _message(kind: Any, use: Callable[[Any], object]) -> Target:
    """A message of gRPC, which itself refuses what is none."""

    def target(data: bytes) -> object:
        message = kind()
        try:
            message.ParseFromString(data)
        except DecodeError:
            return None
        return use(message)

    return target


def _link(data: bytes) -> None:
    """Envelopes, each with its length before it in two bytes, through all that a link does with them."""
    assembly, sequence = _Assembly("b", MAX_MESSAGE_BYTES), 0
    while data:
        size, data = int.from_bytes(data[:2], "little"), data[2:]
        message = pb.Envelope()
        try:
            message.ParseFromString(data[:size])
        except DecodeError:
            return
        data = data[size:]
        envelope = conversions.to_envelope(message)
        check_envelope(envelope, _KEY, "b", "a", sequence)
        sequence += 1
        payload = assembly.add(envelope)
        if payload is not None and envelope.step == ABORT:
            _problem(payload)


def _problem(data: bytes) -> None:
    problem = Problem.told(data, "b")
    assert str(problem).isprintable()
    json.loads(problem.for_others())
    assert problem.exit_code


def _certificate(path: Path) -> None:
    pem = path.read_bytes()
    fingerprint(pem)
    common_name(pem)
    signs_itself(pem)
    load_peer("b", path, None)


_OURS = Statement(
    "a",
    bytes(32).hex(),
    bytes(16).hex(),
    dict.fromkeys("ab", bytes(32).hex()),
    {"b": bytes(32).hex()},
    {"b": bytes(32).hex()},
    bytes(32).hex(),
)


def _signatures(data: bytes) -> None:
    """Of a report, certificates and all."""
    check_signed(read_signatures(json_object(data), bytes(32), ("a", "b")), {})


def _csv_source(path: Path) -> object:
    return _task("joint").load(Csv(path), PARTIES[0])


def _verify(kind: str, name: str) -> Target:
    def target(data: bytes) -> object:
        folder = _folder() / kind
        folder.mkdir(exist_ok=True)
        parts = [*data.split(BETWEEN), b"", b""]
        for file, content in zip((name, REPORT, SUMS), parts, strict=False):
            (folder / file).write_bytes(content)
        return verify_folder(_task(kind), folder)

    return target


def _anatomy(data: bytes) -> object:
    """Both files of an anatomy, without report and digests."""
    folder = _folder() / "anatomy"
    folder.mkdir(exist_ok=True)
    for file, content in zip((GROUPS, SENSITIVE), [*data.split(BETWEEN), b""], strict=False):
        (folder / file).write_bytes(content)
    return verify_folder(_task("anatomy"), folder)


def _synthetic(data: bytes) -> object:
    """Table and marginals, without report and digests."""
    folder = _folder() / "synthetic"
    folder.mkdir(exist_ok=True)
    for file, content in zip((SYNTHETIC_TABLE, MARGINALS), [*data.split(BETWEEN), b""], strict=False):
        (folder / file).write_bytes(content)
    return verify_folder(_task("single-synthetic"), folder)


@cache
def _task(kind: str) -> Task:
    """The public jobs that results and releases are read by."""
    fields = {
        "joint": lambda: joint_job(disclosure="sealed"),
        "dp": lambda: dp_joint("horizontal"),
        "single": lambda: single_job(score="infogain"),
        "single-dp": dp_single,
        "synthetic": lambda: synthetic_joint("vertical"),
        "single-synthetic": synthetic_single,
        "sequences": wards_job,
        "anatomy": lambda: single_job(goal="general", release="anatomy"),
        "joint-sequences": joint_wards_job,
    }[kind]
    return jobs.task_of(fields())


def _result(kind: str) -> Target:
    return lambda data: _task(kind).model.decode(_task(kind), data, "b")


TARGETS: Mapping[str, Target] = {
    "anatomy": _anatomy,
    "bundle": decode_task,
    "certificate": _file("certificate.pem", _certificate),
    "config": _file("party.yaml", lambda path: load_config(PartyConfig, path)),
    "counts": lambda data: read_counts(data, _task("single-dp").job.published),
    "csv_source": _file("table.csv", _csv_source),
    "dp_result": _result("dp"),
    "envelope": _message(
        pb.Envelope, lambda m: check_envelope(conversions.to_envelope(m), _KEY, "b", "a", 1)
    ),
    "event": _message(pb.Event, lambda m: conversions.to_event(m, "b")),
    "hierarchy": lambda data: from_arx_csv(data.decode("utf-8", "replace"), "c", missing_leaf=True),
    "job": _file("job.yaml", load_task),
    "link": _link,
    "model": lambda data: read_model(data.decode("utf-8", "replace"), "model.json"),
    "problem": _problem,
    "release": lambda data: (
        csv_header(data) if data[:1] == b"#" else read_csv(data, _task("single").job.published)
    ),
    "request": _message(pb.Request, conversions.to_request),
    "result": _result("joint"),
    "sequences_result": _result("joint-sequences"),
    "signatures": _signatures,
    "synthetic_result": _result("synthetic"),
    "statement": lambda data: _read(data, "b", _OURS),
    "verify": _verify("single", TABLE),
    "verify_dp": _verify("single-dp", COUNTS),
    "verify_synthetic": _synthetic,
    "verify_sequences": _verify("sequences", TABLE),
    "yaml": lambda data: parse_yaml(data.decode("utf-8", "surrogateescape"), "x"),
}


def handed(target: Target, data: bytes) -> str:
    """Hand an input to a target; the id of the documented error, if it raised one. Raises all others."""
    try:
        target(data)
    except DOCUMENTED as error:
        found = problem_of(error).error_id
        assert found != "bug"
        return found
    return ""
