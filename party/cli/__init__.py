"""The command line of a data holder."""
