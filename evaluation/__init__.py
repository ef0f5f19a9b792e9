"""What anonymity costs whoever wants to learn from a table: measured by its owner, on its owner's console."""
