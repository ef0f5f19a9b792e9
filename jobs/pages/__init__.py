"""`report.html`: what a report says, for people. Made from the job and its `report.json` alone."""
