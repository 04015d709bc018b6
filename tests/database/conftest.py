from __future__ import annotations

import pytest
from worlds import World


@pytest.fixture
def world(session) -> World:
    return World(session)
