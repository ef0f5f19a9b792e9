"""Options of an entry of an LKC requirement beside L, K and C: one file an option."""
