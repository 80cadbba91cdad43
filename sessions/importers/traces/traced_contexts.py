"""Model calls of traces as sessions: every call repeats its history, which is stored once.

What becomes of calls depends on all calls of their group, and not on the order in which they come:
the store puts new ones between those that it has, and asks again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sessions.importers.records import Log, Message, Rewind, Session
from sessions.importers.traces.said import TraceMessage, digest_of
from sessions.importers.traces.traced_calls import TracedCall, counted_calls, in_groups
from sessions.importers.traces.unanswered import Unanswered
from sessions.importers.wire import Block

TOOLS = "tools"
"""The opening of the context of tool calls, in a group without model calls."""

TOOLS_KEY = "tools-"
"""How keys of messages with the tools begin."""

_SPAN = "span-"

_ADDED = "+"

OPENING = "opening"
"""Where a session's metadata names its opening."""


MOST_CONTEXTS = 200
"""Sessions of a conversation or trace."""


def write_sessions(log: Log, calls: Iterable[TracedCall]) -> Log:
    """Add the sessions of calls to a log."""
    log.traced = list(calls)
    found = [contexts_of(one) for one in in_groups(log.traced).values()]
    return log.close(one.session for contexts in found for one in contexts)


def contexts_of(
    calls: Iterable[TracedCall], known: Mapping[str, TracedContext] | None = None
) -> list[TracedContext]:
    """The contexts of calls of one group, the first of them first.

    `known` are stored contexts of the group by opening, which the calls continue. Calls of contexts
    beyond MOST_CONTEXTS are steps of the first: one transaction writes all again.
    """
    contexts = dict(known or {})
    for one in counted_calls(calls):
        opening = _opening(one, contexts.values())
        context = contexts.get(opening)
        first = next(iter(contexts.values()), None)
        if first is not None and context is None and len(contexts) >= MOST_CONTEXTS:
            context = first
        if context is None:
            named = one.group if first is None else f"{one.group}/{opening}"
            parent = None if first is None else first.session.external_id
            session = Session(named, agent=one.agent, parent=parent, meta={OPENING: opening})
            context = contexts[opening] = TracedContext(session)
            context.after = None if first is None else first.began
        context.take(one)
    return list(contexts.values())


def span_opening(span: str) -> str:
    """The opening of calls that say nothing, within a span."""
    return f"{_SPAN}{span}"


def span_in(opening: str) -> str:
    """The span of an opening; empty if it names none."""
    return opening.removeprefix(_SPAN) if opening.startswith(_SPAN) else ""


def is_added(key: str) -> bool:
    """Whether a message, by its key, is of a prompt that leaves its history out."""
    return key.startswith(_ADDED)


def is_tools(key: str) -> bool:
    """Whether a message, by its key, has the tools."""
    return key.startswith(TOOLS_KEY)


def _opening(one: TracedCall, contexts: Iterable[TracedContext]) -> str:
    """What a call has in common with all others of its context: instructions and first message.

    A prompt of tools' results alone continues the context that asked for them.
    """
    if not one.is_model:
        return TOOLS
    if one.said and one.said[0].role != "tool":
        roles = [said.role for said in one.said]
        first = next((place for place, role in enumerate(roles) if role != "system"), len(roles))
        return digest_of("".join(said.digest for said in one.said[: first + 1]))
    answered = {block.get("tool_use_id") for said in one.said for block in said.blocks}
    asking = (context for context in contexts if not answered.isdisjoint(context.asked))
    context = next(asking, None)
    return str(context.session.meta[OPENING]) if context else span_opening(one.parent)


class TracedContext:
    """One context: digests and keys of the messages in it, and what its session gets.

    What it gets should be later than `after`; if it is not, it is `early`.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.asked: set[str] = set()
        self.after: int | None = None
        self.early = False
        self._digests: list[str] = []
        self._keys: list[str] = []
        self._used: Counter[str] = Counter()
        self._tools = ""
        self._unanswered = Unanswered()
        self._unread = 0

    @property
    def began(self) -> int | None:
        """When the first call of a stored context began; None of others."""
        return None

    def _fill(self) -> None:
        """Read the `_unread` messages that precede those in the lists, of a stored context."""

    def take(self, one: TracedCall) -> None:
        """Add what is new in a prompt, and the answer."""
        self.early = self.early or self.after is not None and (one.at or 0) <= self.after
        tools = digest_of(repr(one.tools)) if one.tools else ""
        if tools and tools != self._tools:
            self._tools = tools
            blocks: list[Block] = [{"type": "tools", "tools": one.tools}]
            key = self._unused(f"{TOOLS_KEY}{tools}")
            message = Message("system", blocks, key=key, at=one.at, line=one.line)
            self.session.records.append(message)
        if one.is_model:
            self._prompt(one)
        for said in one.answer:
            self._write(said, one, call=one.id)
        for said in () if one.is_model else one.said:
            self._write(said, one, call=None)
        self.session.model = one.model or self.session.model
        if one.is_model:
            self.session.records.append(one.record)

    def _prompt(self, one: TracedCall) -> None:
        only_new = bool(one.said) and one.said[0].role == "tool"
        if not only_new:
            self._fill()
        common = len(self._digests) if only_new else self._shared(one.said)
        if common < len(self._digests):
            dropped = tuple(self._keys[common:])
            key = self._unused(f"rewind-{one.id}")
            self.session.records.append(Rewind(dropped, at=one.at, key=key, line=one.line))
            del self._digests[common:], self._keys[common:]
        for said in one.said if only_new else one.said[common:]:
            # The past of a context whose first call is not in the trace.
            self._write(said, one, call=None, mark=_ADDED if only_new else "")

    def _shared(self, said: list[TraceMessage]) -> int:
        """How many messages at the start of a prompt are those in the context."""
        count = 0
        for held, one in zip(self._digests, said, strict=False):
            if held != one.digest:
                break
            count += 1
        return count

    def _write(self, said: TraceMessage, one: TracedCall, call: str | None, mark: str = "") -> None:
        digest = said.digest
        # By place and content: a key stays when spans that came earlier arrive later.
        place = self._unread + len(self._digests) if one.is_model else one.id
        key = self._unused(f"{mark}{place}-{digest}")
        self._digests.append(digest)
        self._keys.append(key)
        blocks = [dict(block) for block in said.blocks]
        self._pair(blocks, key)
        self.session.records.append(
            Message(
                said.role,
                blocks,
                key=key,
                call=call,
                at=one.at,
                kind="system" if said.role == "system" else None,
                human=said.role == "user",
                line=one.line,
            )
        )

    def _pair(self, blocks: list[Block], key: str) -> None:
        """Give tool calls and results without usable ids those of each other.

        A result without an id belongs to the first call of its tool that has none, or of any.
        """
        for place, block in enumerate(blocks):
            if block.get("type") == "tool_use":
                block["id"] = block.get("id") or f"{key}.{place}"
                self.asked.add(block["id"])
                self._unanswered.add(block)
            elif block.get("type") == "tool_result":
                call = self._waiting(block.get("tool_use_id"))
                if call is not None:
                    block["tool_use_id"] = call["id"]

    def _waiting(self, stated: str | None) -> Block | None:
        """The tool call that a result answers, by its id, else its tool; from now on it has one."""
        return self._unanswered.take(stated)

    def _unused(self, key: str) -> str:
        self._used[key] += 1
        return key if self._used[key] == 1 else f"{key}.{self._used[key]}"


def digest_in(key: str) -> str:
    """The digest of a message, from its key."""
    return key.rpartition("-")[2].partition(".")[0]
