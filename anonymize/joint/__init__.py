"""Algorithms over several holders: generators that `yield from` crypto, without I/O."""
