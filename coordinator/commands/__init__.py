"""The commands of who asks for a joint table, each imported when it is called."""
