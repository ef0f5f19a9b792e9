"""Commands for requesting a joint table, each imported on call."""
