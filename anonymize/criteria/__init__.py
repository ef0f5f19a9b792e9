"""Criteria for every group of records, each written once."""
