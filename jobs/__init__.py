"""What is asked and what comes of it: for daemons, coordinators and single holders alike."""
