"""What a release of an LKC job is written as: a file for each form, and the table of all of them."""
