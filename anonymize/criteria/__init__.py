"""Criteria that every group of records must meet, each written once."""
