"""LKC-privacy over several holders."""
