"""Sequences of several holders, horizontally partitioned."""
