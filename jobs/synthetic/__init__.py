"""Synthetic table with differential privacy: request, release and report."""
