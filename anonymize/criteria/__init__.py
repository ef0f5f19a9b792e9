"""What every group of records must meet, each criterion written once."""
