"""Cost of anonymity for a learner from a table: measured by the table's owner, on the owner's console."""
