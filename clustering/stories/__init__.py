"""Stories: the three passes over the window, and reading what they made."""
