"""Jobs and what comes of them: for daemons, coordinators and single holders alike."""
