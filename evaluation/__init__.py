"""The cost of anonymity for somebody who learns from a table: measured by its owner, on its owner's console."""
