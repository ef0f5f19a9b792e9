"""Tables of holders: sources, coders, pass 1 and pass 2."""
