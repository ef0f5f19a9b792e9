"""Differential privacy: DiffGen, noise, and the account of the budget."""
