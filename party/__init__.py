"""The daemon each data holder runs: config, data, policy, sessions, transport."""

import os
from importlib.metadata import version

# gRPC's own notes, e.g. on every handshake that failed, are no lines of our log.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

__version__ = version("jointcut")
