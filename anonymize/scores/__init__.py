"""What makes a candidate the best one: a file for each score."""
