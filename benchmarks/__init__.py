"""Benchmarks: each module measures one area; `make bench AREA=NAME` runs the modules of an area."""
