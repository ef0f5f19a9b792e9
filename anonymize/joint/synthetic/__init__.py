"""A synthetic table from noisy marginals, of several holders: what they measure and choose together."""
