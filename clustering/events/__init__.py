"""Stories about one running affair are linked into events, which last days."""
