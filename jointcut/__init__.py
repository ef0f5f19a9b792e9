"""Start of the installed programs: `launcher`, then `isolated`. This file runs before both and imports nothing."""
