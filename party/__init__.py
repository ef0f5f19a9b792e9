"""The daemon each data holder runs: config, data, policy, sessions, transport."""
