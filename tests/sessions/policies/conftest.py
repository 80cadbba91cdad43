"""Fixtures that tests of this folder share."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.sessions.pages import signed_in


@pytest.fixture
def browser() -> Client:
    return signed_in()
