"""LKC-privacy of sequences: what a job asks, how its table is read, and what comes of it ([T] chapter 4)."""
