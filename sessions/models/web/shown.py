"""What a reader is shown of content: as it is stored, or masked.

Content is masked where it is read from the store, so that what is derived from it (previews, diffs,
excerpts, hits of a search) is made of masks, too. Outside of a request that only reads, and for
programs that write, everything is as stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol
from uuid import UUID

from django.db import models


class MaskedView(Protocol):
    """How a reader sees content. Nothing is masked unless one of the reader's teams wants it."""

    @property
    def on(self) -> bool:
        """Whether anything is masked."""

    @property
    def seal(self) -> str:
        """Names the rules by which content is masked; empty if none is."""

    def contents(self, team: UUID, found: Mapping[str, bytes]) -> dict[str, bytes]:
        """Stored bytes of a team by hash, with masks."""

    @property
    def masked(self) -> Set[str]:
        """Hashes of what was read with masks."""

    def value(self, value: Any) -> Any:
        """A text or another JSON value with masks."""


CUT = "…"
"""Where `wire.preview` cut a line."""

_view: ContextVar[MaskedView | None] = ContextVar("masked_view", default=None)


@contextmanager
def shown_to(view: MaskedView | None) -> Iterator[None]:
    """Read content as this reader sees it; None: as stored."""
    before = _view.set(view)
    try:
        yield
    finally:
        _view.reset(before)


@contextmanager
def as_stored() -> Iterator[None]:
    """Read content as stored, for what outlives the request: caches, and states of contexts."""
    with shown_to(None):
        yield


def view() -> MaskedView | None:
    """The reader's view if it masks anything."""
    found = _view.get()
    return found if found is not None and found.on else None


def seal() -> str:
    """Tells apart what was made under different masks; empty without."""
    found = view()
    return found.seal if found is not None else ""


def contents(team: UUID, found: dict[str, bytes]) -> dict[str, bytes]:
    """Stored bytes by hash, as the reader sees them."""
    masking = view()
    return found if masking is None else masking.contents(team, found)


def value(given: Any) -> Any:
    """A text or another JSON value, as the reader sees it."""
    masking = view()
    return given if masking is None else masking.value(given)


def is_masked(shas: Iterable[str]) -> bool:
    """Whether any of these contents was read with masks."""
    masking = view()
    return masking is not None and not masking.masked.isdisjoint(shas)


def cut_text(text: str) -> str:
    """A line cut in places, as the reader sees it. Words that were cut go: no rule
    finds a secret that lacks a part."""
    masking = view()
    if masking is None or not text:
        return text
    words = text.split(" ")
    return str(masking.value(" ".join(CUT if CUT in word else word for word in words)))


def cut_value(given: Any) -> Any:
    """A JSON value with lines cut in places, as the reader sees it."""
    if isinstance(given, str):
        return cut_text(given)
    if isinstance(given, list):
        return [cut_value(one) for one in given]
    if isinstance(given, dict):
        return {name: cut_value(one) for name, one in given.items()}
    return given


def holding(rows: Any, field: str, text: str) -> Any:
    """The rows of a queryset whose column has a text as the reader sees it: what is masked cannot
    be searched for, so that an answer does not tell whether it is there."""
    found = rows.filter(**{f"{field}__icontains": text})
    if view() is None:
        return found
    seen = found.order_by().values_list("pk", field)[:MOST_CHECKED]
    kept = [pk for pk, shown in seen if text.casefold() in str(shown).casefold()]
    return rows.filter(pk__in=kept)


MOST_CHECKED = 500
"""Rows that `holding` compares."""


class ContentColumn:
    """A column with content: what is read of it is as the reader sees it."""

    seen: Callable[[Any], Any] = staticmethod(value)

    def from_db_value(self, stored: Any, expression: Any, connection: Any) -> Any:
        """The value of a row."""
        read: Callable[..., Any] | None = getattr(super(), "from_db_value", None)
        found = read(stored, expression, connection) if read is not None else stored
        return self.seen(found) if found else found

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        """As the field of Django, which is how it is stored."""
        name, _, args, kwargs = super().deconstruct()  # type: ignore[misc]
        return name, f"django.db.models.{type(self).__mro__[2].__name__}", args, kwargs


class ShownText(ContentColumn, models.TextField):
    """Text with content."""


class ShownChars(ContentColumn, models.CharField):
    """A short text with content."""


class ShownJSON(ContentColumn, models.JSONField):
    """JSON with content."""


class ShownCut(ShownChars):
    """A line made of content, cut in places."""

    seen = staticmethod(cut_text)

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        """As the field of Django, which is how it is stored."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs
