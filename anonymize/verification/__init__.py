"""Independent checks of released tables, by definition, without shared code with the makers of the tables."""
