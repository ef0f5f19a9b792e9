"""LKC-privacy: requirement, validity, the single holder's run, and the independent check."""
