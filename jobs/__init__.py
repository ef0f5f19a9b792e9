"""Jobs and job results: for daemons, coordinators and single holders alike."""
