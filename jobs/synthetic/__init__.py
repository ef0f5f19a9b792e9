"""A synthetic table with differential privacy: what is asked, released and reported."""
