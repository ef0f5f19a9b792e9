"""Multidimensional generalization: every group of records is cut by itself (semantics §11)."""
