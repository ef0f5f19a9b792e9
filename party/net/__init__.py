"""Talk between parties and coordinators: links, streams, and the only gRPC of the project."""

import os

# TLS 1.3 and nothing older. gRPC's Python API has no setting for that; but its list of cipher suites is that of 1.2
# (those of 1.3 are not in question), and a suite that needs a shared key, which nobody has, comes about with no peer.
# gRPC reads the variable with the first credentials, so the line stands here, before any import of gRPC.
os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-PSK-CHACHA20-POLY1305"

# gRPC's handlers of forks may crash a process that is forked beside a call, before the process executes a program.
# Spark forks to start Java. No process of ours uses gRPC behind a fork. gRPC reads the variable as it starts.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
