"""The owner's page: what a daemon shows its owner in a browser on the same machine, and what is decided there.

Starlette and uvicorn (the extra `web`) are imported here alone, when a page is configured.
"""
