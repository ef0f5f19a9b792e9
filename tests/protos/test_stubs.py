"""The committed stubs are those of the committed contract."""

from __future__ import annotations

from pathlib import Path

from protos.generate import HERE, generate


def test_the_stubs_are_current(tmp_path: Path) -> None:
    generate(tmp_path)
    fresh = {path.name: path.read_text() for path in (tmp_path / "protos").iterdir()}
    assert set(fresh) == {"jointcut_pb2.py", "jointcut_pb2.pyi", "jointcut_pb2_grpc.py"}
    for name, text in fresh.items():
        assert (HERE / name).read_text() == text, f"{name} is out of date: make generate"
