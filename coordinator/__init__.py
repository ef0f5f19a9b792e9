"""Start of a job: bundle, submit, watch, collect, report, verify."""
