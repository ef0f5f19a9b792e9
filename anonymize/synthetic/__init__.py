"""A synthetic table from noisy marginals: what is public of it, and one holder."""
