"""Tests that the log format recipe works; run by test_recipes.py in a copy with its files."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import call_command

from sessions.models import Session
from tests.sessions.pages import page_of, signed_in

SAMPLES = Path(__file__).parents[2] / "sessions" / "importers" / "samples"


@pytest.mark.django_db
def test_it_is_imported_and_the_pages_name_it() -> None:
    call_command("import_logs", str(SAMPLES / "chat-lines"))
    session = Session.objects.get(external_id="c1")
    assert (session.source, session.step_count) == ("chat-lines", 2)
    assert "Chat lines" in page_of(signed_in(), "/imports/").text
