"""The JSON API at /api/v1."""
