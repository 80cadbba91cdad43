"""What our server has of a conversation, so that only what is new is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from contextlab.client.connection import OverBudget, Paused, Refused
from contextlab.client.events import encoded
from contextlab.client.shown import Message, blocks_of

T = TypeVar("T")


class _Sent(NamedTuple):
    """Hashes of the messages that are stored and of what is sent beside them, and the number of
    the last message in the session."""

    messages: Sequence[bytes]
    setup: bytes
    last: int


class StoredHistory:
    """Sends the messages of a history that our server lacks; on doubt, all of them.

    On doubt: at first, after a failure, and where a history does not begin with what is stored. A
    server to which others sent messages of the session refuses the rest of a history (`after`).
    """

    def __init__(self) -> None:
        self._known: _Sent | None = None

    def send(
        self,
        messages: Sequence[Message],
        setup: Mapping[str, Any],
        append: Callable[..., T],
        last_of: Callable[[T], int | None],
    ) -> T:
        """Send what is new of a history and of its `setup`, which is tools and system prompt.

        `append` takes messages and fields of the API's append; `last_of` its answer gives the
        number of the last message that it stored, None if it stored none.
        """
        known, self._known = self._known, None
        hashes, set_up = [hash_of(message) for message in messages], _hash(setup)
        if known is not None and known.messages == hashes[: len(known.messages)]:
            changed = {} if known.setup == set_up else setup
            new = messages[len(known.messages) :]
            try:
                made = append(new, history=False, after=known.last, **changed)
            except (OverBudget, Paused):
                raise
            except Refused:
                known = None
            else:
                self._known = _Sent(hashes, set_up, last_of(made) or known.last)
                return made
        made = append(messages, history=True, **setup)
        if last := last_of(made):
            self._known = _Sent(hashes, set_up, last)
        return made

    def forget(self) -> None:
        """Send the whole history the next time."""
        self._known = None

    def append(self, message: Message, append: Callable[[], int | None]) -> None:
        """Send a message that follows; `append` returns its number."""
        known, self._known = self._known, None
        last = append()
        if known is not None and last == known.last + 1:
            self._known = _Sent([*known.messages, hash_of(message)], known.setup, last)


def hash_of(message: Message) -> bytes:
    """A hash of what a message says, however it was sent."""
    content = message.get("content")
    return _hash(
        {**message, "content": blocks_of(content)} if isinstance(content, str) else message
    )


def _hash(value: Any) -> bytes:
    data = encoded(value, ordered=True)
    if b"cache_control" in data or b"null" in data:
        data = encoded(_bare(value), ordered=True)
    return sha256(data).digest()


def _bare(value: Any) -> Any:
    """A value without what may differ between sends: breakpoints move, and nulls come and go."""
    if isinstance(value, dict):
        kept = ((name, one) for name, one in value.items() if name != "cache_control")
        return {name: _bare(one) for name, one in kept if one is not None}
    return [_bare(one) for one in value] if isinstance(value, list) else value
