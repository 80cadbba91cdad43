"""What our server has of a conversation, so that only what is new is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from contextlab.client.connection import Refused
from contextlab.client.events import encoded
from contextlab.client.shown import Message, blocks_of

T = TypeVar("T")


class End(NamedTuple):
    """Where a session ends after an append: the number of the last message that it stored, None if
    it stored none, and the revision of the recorded context, None if the server names none."""

    last: int | None = None
    revision: int | None = None


def end_of(appended: Mapping[str, Any] | None) -> End:
    """The end of a session in the answer to an append; unknown if nothing was sent."""
    if appended is None:
        return End()
    return End(appended["last_seq"], appended.get("recorded_revision"))


class _Sent(NamedTuple):
    """Hashes of the messages that are stored and of what is sent beside them, and the end of the
    session, which has a message."""

    messages: Sequence[bytes]
    setup: bytes
    end: End

    def follows(self, end: End) -> End:
        """The end after another append, where that stored or said nothing as before."""
        last = self.end.last if end.last is None else end.last
        return End(last, self.end.revision if end.revision is None else end.revision)


class StoredHistory:
    """Sends the messages of a history that our server lacks; on doubt, all of them.

    On doubt: at first, after a failure, and where a history does not begin with what is stored. A
    server where others added to the session or took something back refuses the rest of a history
    (`after` and `recorded_revision`). Another refusal would meet all of it, too.
    """

    def __init__(self) -> None:
        self._known: _Sent | None = None

    def send(
        self,
        messages: Sequence[Message],
        setup: Mapping[str, Any],
        append: Callable[..., T],
        end_of: Callable[[T], End],
    ) -> T:
        """Send what is new of a history and of its `setup`, which is tools and system prompt.

        `append` takes messages and fields of the API's append; `end_of` its answer is the end of
        the session.
        """
        known, self._known = self._known, None
        hashes, set_up = [hash_of(message) for message in messages], _hash(setup)
        if known is not None and known.messages == hashes[: len(known.messages)]:
            changed = {} if known.setup == set_up else setup
            end = {"after": known.end.last, "recorded_revision": known.end.revision}
            new = messages[len(known.messages) :]
            try:
                made = append(new, history=False, **end, **changed)
            except Refused as refused:
                if not _is_other_end(refused):
                    raise
            else:
                self._known = _Sent(hashes, set_up, known.follows(end_of(made)))
                return made
        made = append(messages, history=True, **setup)
        if (stored := end_of(made)).last is not None:
            self._known = _Sent(hashes, set_up, stored)
        return made

    def forget(self) -> None:
        """Send the whole history the next time."""
        self._known = None

    def append(self, message: Message, append: Callable[[], End]) -> None:
        """Send a message that follows; `append` returns the end of the session."""
        known, self._known = self._known, None
        end = append()
        if known is not None and end == End((known.end.last or 0) + 1, known.end.revision):
            self._known = _Sent([*known.messages, hash_of(message)], known.setup, end)


def _is_other_end(refused: Refused) -> bool:
    """Whether a server refuses the rest of a history, since the session ends elsewhere."""
    errors = refused.problem.get("errors") or ()
    return any(one.get("pointer") in ("/after", "/recorded_revision") for one in errors)


def hash_of(message: Message) -> bytes:
    """A hash of what a message says, however it was sent."""
    content = message.get("content")
    return _hash(
        {**message, "content": blocks_of(content)} if isinstance(content, str) else message
    )


def _hash(value: Any) -> bytes:
    data = encoded(value, ordered=True)
    # As fields: in a text, their quotes are escaped.
    if b'"cache_control":' in data or b'":null' in data:
        data = encoded(_bare(value), ordered=True)
    return sha256(data).digest()


def _bare(value: Any) -> Any:
    """A value without what may differ between sends: breakpoints move, and nulls come and go."""
    if isinstance(value, dict):
        kept = ((name, one) for name, one in value.items() if name != "cache_control")
        return {name: _bare(one) for name, one in kept if one is not None}
    return [_bare(one) for one in value] if isinstance(value, list) else value
