"""kd over several holders of records."""
