"""Forms of a release of an LKC job: a file for each form, and the table of all forms."""
