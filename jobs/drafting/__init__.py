"""A first job file from a table: roles and domains are guessed, and every guess is commented.

A draft becomes a public job. So no guess hands on a value of fewer than :data:`jobs.drafting.counting.RARE` records,
an end of a range that is so rare, a column that names single people, or a count.
"""
