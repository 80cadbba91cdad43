"""Fixtures that tests of this folder share."""

from __future__ import annotations

import pytest

from sessions.models import Team
from tests.sessions.reviewing import team


@pytest.fixture
def ours() -> Team:
    return team()
