"""The side that triggers a job: bundle, submit, watch, collect, report, verify."""
