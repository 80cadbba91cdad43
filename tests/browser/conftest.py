"""Fixtures that tests of this folder share."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.replays import token_of


@pytest.fixture
def token(page: Any) -> str:
    page.set_default_timeout(20_000)
    return token_of(page)
