"""What the owner of the data decides: configuration, identity, peers."""
