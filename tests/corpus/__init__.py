"""Jobs of every kind with what comes of them, recorded: what is observable stays while the arrangement changes."""
