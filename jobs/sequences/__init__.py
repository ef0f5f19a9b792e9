"""LKC-privacy of sequences: the requirement of a job, the reading of its table, and the results ([T] chapter 4)."""
