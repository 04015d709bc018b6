"""Data only: SQL migrations and named queries, read through `importlib.resources`."""
