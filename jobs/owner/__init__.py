"""Owner's side: policy, ledger, accounts, and reasons for refusing a job."""
