"""Decisions of the owner of the data: configuration, identity, peers."""
