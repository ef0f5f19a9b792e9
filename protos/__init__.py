"""The wire contract and its generated stubs."""
