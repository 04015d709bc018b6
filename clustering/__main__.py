"""`python -m clustering` is the command `stories`."""

from __future__ import annotations

from clustering.cli import main

if __name__ == "__main__":
    main()
