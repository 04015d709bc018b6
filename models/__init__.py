"""Data only: model cards, calibrations and language offsets, read through `importlib.resources`."""
