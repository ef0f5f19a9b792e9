"""Where the installed programs start: `launcher`, then `isolated`. This file runs before them and imports nothing."""
