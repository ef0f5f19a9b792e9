"""Synthetic table from noisy marginals of several holders: their common measurements and choices."""
