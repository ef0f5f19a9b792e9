"""The same algorithms over several holders: generators that `yield from` crypto; still no I/O."""
