"""`python -m party`."""

from party.cli import main

main()
