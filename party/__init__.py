"""Daemon of a data holder: the session table, its actions, the network, the owner's files."""

import os

# gRPC's own notes, e.g. on every failed handshake, are no lines of our log.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
