"""Scores in joint runs: a file for each, and the one row that gives it to a goal."""
