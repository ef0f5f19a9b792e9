"""The owner's side: policy, ledger, accounts, and what a job is refused for."""
