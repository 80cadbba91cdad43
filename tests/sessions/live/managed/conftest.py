"""Fixtures that tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compaction.proposals.plan import Span
from sessions.actions.live import folds
from tests import provider as at
from tests.sessions.live.managed.summarized import MODEL, span_of, talk_of


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[at.Provider]:
    """The provider, found by the SDK through the environment."""
    with at.provider() as it:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", it.url)
        yield it
        assert it.refused == []


@pytest.fixture
def asked_for(there: at.Provider, settings: Any) -> Iterator[at.Provider]:
    """The provider as settings name it for sessions, which no fold remembers."""
    folds.forget_all()
    settings.SUMMARIZER_MODEL, settings.SUMMARIZER_SECONDS = MODEL, 20
    yield there
    folds.forget_all()


@pytest.fixture
def span() -> Span:
    return span_of(talk_of(*("def parse(text):\n    return text.split()\n" * 40,) * 4))
