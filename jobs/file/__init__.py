"""The job file: its shape, its columns, its values, and the bundle that it becomes."""
