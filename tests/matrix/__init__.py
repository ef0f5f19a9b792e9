"""The fault matrix: each fault, at each role, in each phase of a job between real daemons.

`python -m tests.matrix --out table.md` runs all cells and writes the table; `tests/matrix/test_matrix.py` runs a few
cells each time, drawn by a digest of library and tests.
"""
