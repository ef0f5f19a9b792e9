"""Scores in joint runs: a file for each score, and the table of scores by name."""
