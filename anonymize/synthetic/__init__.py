"""Synthetic table from noisy marginals: the public side, and a single holder."""
