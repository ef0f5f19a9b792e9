"""Command line of a data holder."""
