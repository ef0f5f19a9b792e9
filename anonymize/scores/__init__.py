"""Scores, which choose the best candidate: a file for each score."""
