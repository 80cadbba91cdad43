"""Tool calls that wait for their results."""

from __future__ import annotations

from collections import deque

from sessions.importers.wire import Block

_Key = tuple[str, str]


class Unanswered:
    """The calls in a context without results, first in first out: by id, by tool, or any."""

    def __init__(self) -> None:
        self._waiting: dict[_Key, deque[Block]] = {}
        self._taken: dict[int, Block] = {}

    def add(self, call: Block) -> None:
        """A call was made. Senders may state ids and names that are no texts."""
        for key in (("id", str(call["id"])), ("name", str(call.get("name"))), _ANY):
            self._waiting.setdefault(key, deque()).append(call)

    def has_id(self, stated: str) -> bool:
        """Whether a call of this id waits."""
        return self._first(("id", stated)) is not None

    def take(self, stated: str | None) -> Block | None:
        """The call that a result answers, by its id, else its tool, or the first of all if it
        states none; from now on it has one."""
        keys: tuple[_Key, ...] = (("id", str(stated)), ("name", str(stated))) if stated else (_ANY,)
        call = next((call for key in keys if (call := self._first(key)) is not None), None)
        if call is not None:
            self._taken[id(call)] = call
        return call

    def _first(self, key: _Key) -> Block | None:
        waiting = self._waiting.get(key)
        while waiting and id(waiting[0]) in self._taken:
            waiting.popleft()
        return waiting[0] if waiting else None


_ANY: _Key = ("any", "")
