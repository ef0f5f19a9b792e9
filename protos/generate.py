"""Generate the stubs from jointcut.proto: `make generate`. The tests check that what is committed is current."""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).resolve().parent


def generate(out: Path) -> None:
    """Write the stubs into ``out``/protos."""
    arguments = [
        "protoc",
        f"-I{HERE.parent}",
        f"--python_out={out}",
        f"--pyi_out={out}",
        f"--grpc_python_out={out}",
        str(HERE / "jointcut.proto"),
    ]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent)
