"""The context of a Claude Code log, reconstructed from its tree of parents."""

from __future__ import annotations

from dataclasses import dataclass

Parents = dict[str, str | None]
"""The parent of every line with a uuid; shared by all agents of a file."""


@dataclass(frozen=True, slots=True)
class TreeMessage:
    """What the tree needs to know about a message in context.

    `call` is the response it belongs to, `answers` are the responses whose tool calls it answers,
    and `loose` marks attachments and reminders, which only follow another message.
    """

    call: str | None = None
    answers: tuple[str, ...] = ()
    loose: bool = False


class TreeContext:
    """The messages in context of one agent, in order.

    A response is written as several lines, and parallel tool calls fork the tree at each of them;
    such forks remove nothing. Anything else that a new prompt or response abandons is a rewind or a
    retry.
    """

    def __init__(self, parents: Parents) -> None:
        self._parents = parents
        self._places: dict[str, TreeMessage] = {}
        self._first_of_call: dict[str, str] = {}
        self._cleared = False
        self._treeless = False

    def add(self, key: str, place: TreeMessage) -> None:
        """Append a message to the context."""
        self._places[key] = place
        if place.call is not None:
            self._first_of_call.setdefault(place.call, key)

    def compact(self, keep: tuple[str, ...]) -> tuple[str, ...]:
        """Remove everything except these keys; return those that were in context."""
        wanted = set(keep)
        kept = tuple(key for key in self._places if key in wanted)
        self._drop([key for key in self._places if key not in wanted])
        self._cleared = True
        return kept

    def segment(self, head: str, tail: str) -> tuple[str, ...]:
        """The keys in context from head to tail, inclusive; empty unless both are in context."""
        keys = list(self._places)
        if head not in self._places or tail not in self._places:
            return ()
        return tuple(keys[keys.index(head) : keys.index(tail) + 1])

    def retry(self, parent: str | None) -> tuple[str, ...]:
        """Remove and return the keys of failed responses that a new response replaces.

        Only responses without tool results can be replaced this way. If results would be removed as
        well, the writer does not keep a tree (some attach every response to the prompt), and
        nothing is removed.
        """
        anchor = None if self._treeless else self._anchor(parent)
        dropped = self._left_behind(anchor) if anchor is not None else []
        if any(self._places[key].call is None for key in dropped):
            self._treeless = True
            return ()
        self._drop(dropped)
        return tuple(dropped)

    def rewind(self, parent: str | None, *, root: bool) -> tuple[str, ...]:
        """Remove and return the keys that a prompt with this parent abandons.

        `root` means that the prompt explicitly has no parent: the conversation starts over.
        """
        anchor = self._anchor(parent)
        if anchor is None:
            # A parent that is missing from the file, or from before a compaction, proves nothing:
            # keep everything.
            dropped = list(self._places) if root and not self._cleared else []
        else:
            dropped = self._left_behind(anchor)
        self._drop(dropped)
        return tuple(dropped)

    def _anchor(self, node: str | None) -> str | None:
        seen: set[str] = set()
        while node is not None and node not in self._places and node not in seen:
            seen.add(node)
            node = self._parents.get(node)
        return node if node in self._places else None

    def _left_behind(self, anchor: str) -> list[str]:
        later: list[str] = []
        for key in reversed(self._places):
            if key == anchor:
                break
            later.append(key)
        after = set(later)
        dropped: dict[str, None] = {}
        for key in reversed(later):
            if not self._stays(key, after, dropped):
                dropped[key] = None
        return list(dropped)

    def _stays(self, key: str, later: set[str], dropped: dict[str, None]) -> bool:
        place = self._places[key]
        if place.call is not None:
            first = self._first_of_call[place.call]
            return first not in later
        if place.answers:
            return any(self._first_of_call.get(call, key) not in dropped for call in place.answers)
        if place.loose:
            holder = self._anchor(self._parents.get(key))
            return holder is not None and holder not in dropped
        return False

    def _drop(self, keys: list[str]) -> None:
        if not keys:
            return
        for key in keys:
            del self._places[key]
        left = {place.call for place in self._places.values() if place.call is not None}
        firsts = self._first_of_call.items()
        self._first_of_call = {call: key for call, key in firsts if call in left}
