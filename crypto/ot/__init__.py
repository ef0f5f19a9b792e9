"""Oblivious transfer: base transfers in a prime-order group, and their extension to millions."""
