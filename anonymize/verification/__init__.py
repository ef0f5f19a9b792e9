"""Independent checks of released tables, by definition. They share no code with what makes the tables."""
