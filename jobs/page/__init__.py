"""A release for people: `report.html` beside `report.json`.

A page is a function of job, report and published table. So nothing stands on the page that a reader of the release
could not find out, and `coordinator verify` makes the page again and compares.
"""
