"""Job file: its shape, columns, values, and the bundle made from the file."""
