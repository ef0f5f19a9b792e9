"""The installed programs start here: `launcher`, then `isolated`. This file runs before them and imports
nothing.
"""
