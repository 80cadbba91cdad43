"""Tests that the page recipe works; run by test_recipes.py in a copy with its files."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.sessions.pages import page_of, signed_in
from tests.sessions.web.addresses import AT_LARGE, PRIVATE


@pytest.mark.django_db
def test_the_navigation_shows_it() -> None:
    assert page_of(signed_in(), "/imports/").links["Models used"] == "/models-used/"


@pytest.mark.django_db
def test_the_access_matrix_sees_it() -> None:
    found = {one.method: one for one in PRIVATE if one.route == "models-used/"}
    assert found.keys() == {"GET", "POST"} and "models-used/" in AT_LARGE
    assert (found["GET"].needs, found["POST"].takes) == ("read", False)
    assert Client().get("/models-used/").status_code == 403
    assert signed_in().post("/models-used/").status_code == 405
