"""The cascade that folds copies of an article into one."""
