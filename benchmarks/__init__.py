"""Benchmarks: each module measures one area; `make bench` and `make bench-crypto` run them."""
