from __future__ import annotations

import pytest
from told import Told
from worlds import World


@pytest.fixture
def world(session) -> World:
    return World(session)


@pytest.fixture
def told(session) -> Told:
    return Told(session)
