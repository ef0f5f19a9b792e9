"""Outcome of a run: results, reports, folders, digests and signatures."""
