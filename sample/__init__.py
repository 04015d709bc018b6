"""Data only: the sample day, invented for this project, read through `importlib.resources`."""
