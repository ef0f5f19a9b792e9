"""Differential privacy over several holders."""
