"""Ids that stand in every log line of some work: of its request, of its job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

_NONE: Mapping[str, str] = MappingProxyType({})
_ids: ContextVar[Mapping[str, str]] = ContextVar("ids", default=_NONE)


def ids() -> Mapping[str, str]:
    """The ids of the work in this thread or task."""
    return _ids.get()


@contextmanager
def with_ids(**more: str) -> Iterator[None]:
    """Add ids to the lines logged inside."""
    token = _ids.set({**_ids.get(), **more})
    try:
        yield
    finally:
        _ids.reset(token)
