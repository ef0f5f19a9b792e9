"""Algorithms on one table, pure: taxonomies, cuts, scores, privacy models, single-holder loops."""
