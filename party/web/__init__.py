"""The owner's page of a daemon, for a browser on the machine of the daemon."""
