"""Options of an entry of an LKC requirement beside L, K and C: a file for each option."""
