"""Differential privacy: DiffGen, noise and its account."""
