"""What an entry of an LKC requirement may ask for beside L, K and C: one file an option."""
